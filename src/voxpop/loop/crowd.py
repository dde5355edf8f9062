"""A table of workers: worker, and where there are such columns cost, capacity and available."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from voxpop.io.columns import open_table
from voxpop.io.problems import Problems, missing_columns, shown
from voxpop.io.source import Source
from voxpop.loop.store import WORKER

YES, NO = {"yes", "true", "1", "y"}, {"no", "false", "0", "n"}


def read_workers(path: str | Path) -> pl.DataFrame:
    """worker, cost (1 where not said), capacity (null: any), available (yes where not said)."""
    table = open_table(Source.of(path))
    if "worker" not in table.columns:
        raise missing_columns(table.name, ["worker"], table.columns, "name the column of workers so")
    problems, rows, seen = Problems(), [], set()
    columns = [name for name in WORKER if name in table.columns]
    for block in table.blocks(columns):
        places = block.places(range(len(block.frame)))
        for place, row in zip(places, block.frame.iter_rows(named=True), strict=True):
            where = f"{table.name}, {place}"
            if row["worker"] is None:
                problems.add(f"{where}: no worker; fill it in, or leave the row out")
            elif row["worker"] in seen:
                problems.add(f"{where}: worker {shown(row['worker'])} a second time; keep one row a worker")
            seen.add(row["worker"])
            rows.append((row["worker"], *(_value(row.get(name), name, where, problems) for name in READERS)))
    problems.check()
    return pl.DataFrame(rows, schema=WORKER, orient="row")


def _cost(text: str) -> float | None:
    value = float(text)
    return value if 0 <= value < float("inf") else None


def _capacity(text: str) -> int | None:
    value = int(text)
    return value if value >= 0 else None


def _available(text: str) -> bool | None:
    word = text.strip().lower()
    return word in YES if word in YES | NO else None


# column -> how it is read (None: it is not), what it must be, what an empty cell means
READERS: dict[str, tuple[Callable[[str], Any], str, Any]] = {
    "cost": (_cost, "a number, zero or more", 1.0),
    "capacity": (_capacity, "a whole number of at least 0, or nothing for any", None),
    "available": (_available, "yes or no", True),
}


def _value(text: str | None, name: str, where: str, problems: Problems) -> Any:
    read, rule, empty = READERS[name]
    if text is None:
        return empty
    try:
        value = read(text)
    except ValueError:
        value = None
    if value is None:
        problems.add(f"{where}: {name} is {shown(text)}; give {rule}")
    return value
