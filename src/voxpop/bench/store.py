"""Finished cells in a file, one JSON object a line, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from voxpop.bench.experiment import Cell
from voxpop.errors import BadInput


@dataclass(frozen=True)
class Row:
    cell: Cell
    measures: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None  # why the cell failed, if it did


class Store:
    """Rows of one experiment with one setting; without a path they are only kept in memory."""

    def __init__(self, path: Path | None, facts: dict[str, Any]) -> None:
        self.path = path
        self.rows: dict[Cell, Row] = {}
        if path is None:
            return
        if path.exists():
            self._read(path, facts)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append(facts)

    def add(self, row: Row) -> None:
        self.rows[row.cell] = row
        self._append(asdict(row))

    def _append(self, document: dict[str, Any]) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(document) + "\n")

    def _read(self, path: Path, facts: dict[str, Any]) -> None:
        text = path.read_text(encoding="utf-8")
        whole = text.rpartition("\n")[0]  # a line that was cut off when the run was killed is done again
        if len(whole) + 1 < len(text):
            path.write_text(whole + "\n" if whole else "", encoding="utf-8")
        lines = whole.splitlines()
        if not lines:
            self._append(facts)
            return
        try:
            first, *rest = map(json.loads, lines)
            found = [Row(Cell(**row.pop("cell")), **row) for row in rest]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BadInput(f"{path} is no file of finished cells; name another directory with -o") from None
        if first != facts:
            other = ", ".join(
                f"{name} {first.get(name)} there, {facts[name]} here"
                for name in facts
                if first.get(name) != facts[name]
            )
            raise BadInput(
                f"{path} is of a run with other settings ({other}); name another directory with -o, or remove it"
            )
        self.rows = {row.cell: row for row in found if row.error is None}  # what failed is tried again
