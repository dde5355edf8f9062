"""Columns of names out of a file of any format: text, each distinct name stored once, with no gaps unheard of."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from voxpop.io.delimited import Delimited
from voxpop.io.jsons import Json
from voxpop.io.parquet import Parquet
from voxpop.io.problems import Problems, shown
from voxpop.io.source import Source
from voxpop.io.table import Block, Table
from voxpop.io.values import NOT_A_NUMBER


def open_table(source: Source) -> Table:
    """A file as a table, by its format."""
    if source.kind == "parquet":
        return Parquet(source)
    return Delimited(source) if source.kind == "delimited" else Json(source)


def read_columns(table: Table, columns: Sequence[str], remedy: str | None) -> list[pl.Series]:
    """Columns as text with a dictionary; the last one holds labels, where NaN is missing.

    A missing cell is a problem that the remedy is said for, or a null where there is no remedy to say.
    """
    problems = Problems()
    label = columns[-1]
    kinds = [pl.Categorical(pl.Categories.random()) for _ in columns]  # dictionaries that are freed with the column
    parts: list[list[pl.Series]] = [[] for _ in columns]
    for block in table.blocks(list(dict.fromkeys(columns))):
        frame = block.frame.with_columns(pl.when(~pl.col(label).is_in(list(NOT_A_NUMBER))).then(label))
        if remedy is not None:
            _report_gaps(problems, table.name, block, frame, remedy)
        for part, column, kind in zip(parts, columns, kinds, strict=True):
            part.append(frame[column].cast(kind))
    problems.check()
    return [pl.concat(part, rechunk=True) for part in parts]


def _report_gaps(problems: Problems, name: str, block: Block, frame: pl.DataFrame, remedy: str) -> None:
    gaps = {column: set(frame[column].is_null().arg_true()) for column in frame.columns}
    rows = sorted(set().union(*gaps.values()))
    if problems.enough or not rows:
        return
    for row, place in zip(rows, block.places(rows), strict=True):
        empty = " and ".join(shown(column) for column, found in gaps.items() if row in found)
        problems.add(f"{name}, {place}: nothing (or NaN) in column {empty}; {remedy}")
