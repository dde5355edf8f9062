"""A table in a file, whatever the format: its columns, and its rows in blocks of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from voxpop.io.source import Source


@dataclass(frozen=True)
class Block:
    """Some consecutive rows; an empty cell is null. Rows are counted from 1, without the header."""

    frame: pl.DataFrame
    first: int
    lines: Callable[[], Sequence[int]] | None = None  # the line of each row, where the file has lines

    def places(self, rows: Sequence[int]) -> list[str]:
        """Where the reader of a message finds these rows of the block."""
        if self.lines is None:
            return [f"row {self.first + i}" for i in rows]
        lines = self.lines()
        return [f"row {self.first + i} (line {lines[i]})" for i in rows]


class Table(Protocol):
    """What every format offers."""

    source: Source
    name: str  # of the file, for messages
    columns: tuple[str, ...]

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        """These columns, as text."""

    def records(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries, with nested values where the format has them."""


def records_of(table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a flat table, one dictionary of text each."""
    for block in table.blocks(table.columns):
        yield from block.frame.iter_rows(named=True)


def in_full(table: Table, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """All rows of a table (or of some of its columns) in one frame of text."""
    chosen = list(table.columns if columns is None else columns)
    frames = [block.frame for block in table.blocks(chosen)]
    return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(chosen, pl.String))
