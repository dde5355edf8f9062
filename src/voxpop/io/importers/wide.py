"""A matrix: rows are tasks, columns annotators. Empty, NaN and -1 mean no vote."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.delimited import Delimited
from voxpop.io.importers.imported import Ask, Imported, imported
from voxpop.io.importers.shapes import no_questions, refuse_task
from voxpop.io.problems import Problems
from voxpop.io.table import Table, in_full

NO_VOTE = ("", "NaN", "nan", "-1", "-1.0")
NAMES = ("task", "item", "id", "")  # headers of a first column that names the tasks
NUMBER = re.compile(r"-?\d+(\.\d*)?|nan|NaN|")


def read(table: Table, ask: Ask) -> Imported:
    """Tasks are named by a first column task, item or id, else counted from 0; so are annotators without a header."""
    refuse_task("wide", ask)
    no_questions(ask)
    if not table.columns:
        raise BadInput(f"{table.name} is not a table; a matrix has one column an annotator")
    frame = _matrix(table)
    first, *others = frame.columns
    misplaced = [c for c in others if c.lower() in NAMES[:3]]
    if misplaced:
        raise BadInput(f"{table.name}: column {misplaced[0]!r} would be an annotator; put the names of the tasks first")
    if first.lower() in NAMES:
        if not others:
            raise BadInput(f"{table.name} has no column but {first!r}; a matrix has one column an annotator")
        tasks, workers = frame[first], others
    else:
        tasks, workers = pl.int_range(len(frame), eager=True).cast(pl.String), frame.columns
    columns = [pl.DataFrame({"task": tasks, "worker": [w] * len(frame), "label": frame[w]}) for w in workers]
    votes = pl.concat(columns).filter(~pl.col("label").is_in(list(NO_VOTE)))  # drops null too
    unnamed = votes["task"].null_count()
    if unnamed:
        raise BadInput(f"{table.name}: {unnamed} votes stand in rows without a task; fill in the first column")
    return imported(table.name, votes.with_columns(label=_without_points(votes["label"])))


def _matrix(table: Table) -> pl.DataFrame:
    """One column an annotator, under their names or numbers."""
    if not isinstance(table, Delimited):
        return in_full(table)
    if len(table.header) == 1 and len(table.header[0].split()) > 1:
        return _between_blanks(table)
    return in_full(table.without_header() if _is_data(table.header) else table)


def _between_blanks(table: Delimited) -> pl.DataFrame:
    """Cells with any number of blanks between them, as numpy writes them."""
    lines = [line.split() for line in table.source.text().splitlines()]
    width = len(table.header[0].split())
    problems = Problems()
    for number, cells in enumerate(lines, 1):
        if cells and len(cells) != width:
            problems.add(
                f"{table.name}, line {number}: {len(cells)} cells where the first has {width}; write -1 for no vote"
            )
    problems.check()
    rows = [cells for cells in lines if cells]
    names = [str(i) for i in range(width)] if _is_data(rows[0]) else rows.pop(0)
    if len(set(names)) < width:
        raise BadInput(f"{table.name}: the first line names an annotator twice; names must differ")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _is_data(header: Sequence[str]) -> bool:
    """A first row of nothing but numbers is data, unless it counts the columns: 0, 1, 2, ..."""
    counts = len(header) > 2 and list(header) == [str(i) for i in range(len(header))]
    return not counts and all(NUMBER.fullmatch(cell.strip()) for cell in header)


def _without_points(labels: pl.Series) -> pl.Series:
    """Whole numbers lose the ".0" that a column with gaps gave them."""
    if labels.str.contains(r"^-?\d+\.0$").all():
        return labels.str.strip_suffix(".0")
    return labels
