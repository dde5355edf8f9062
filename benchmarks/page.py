"""BENCHMARKS.md: a table each, from results that are kept as JSON, so that one can be run again alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.machine import facts

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results"


@dataclass
class Table:
    title: str
    about: str  # what is measured, and how
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)  # what was promised, and whether it is kept


def verdict(kept: bool, words: str) -> str:
    return f"{'met' if kept else 'NOT MET'}: {words}"


def save(name: str, table: Table) -> None:
    RESULTS.mkdir(exist_ok=True)
    result = {"machine": facts(), "table": asdict(table)}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write(names: Iterable[str]) -> None:
    files = [RESULTS / f"{name}.json" for name in names]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    (ROOT / "BENCHMARKS.md").write_text("\n".join(_page(found)) + "\n", encoding="utf-8")


def _page(found: list[dict]) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield "Written by `make bench` (`python -m benchmarks [--quick] [table ...]`): ours beside others, in the same run."
    machines = [_machine(result["machine"]) for result in found]
    same = len(set(machines)) == 1
    if same:
        yield from ("", machines[0])
    for result, machine in zip(found, machines, strict=True):
        yield ""
        yield f"## {result['table']['title']}"
        yield ""
        yield from lines_of(Table(**result["table"]))
        if not same:
            yield from ("", machine)


def _machine(facts: dict[str, str]) -> str:
    return "Machine: " + "; ".join(f"{name} {value}" for name, value in facts.items()) + "."


def lines_of(table: Table) -> Iterator[str]:
    yield table.about
    yield ""
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'---|' * len(table.columns)}"
    for row in table.rows:
        yield f"| {' | '.join(row)} |"
    if table.verdicts:
        yield ""
    for line in table.verdicts:
        yield f"- {line}"
