"""Parquet: columns that have types, read as text some rows at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.problems import shown
from voxpop.io.source import Source
from voxpop.io.table import Block

ROWS = 1 << 20  # in a block
T = TypeVar("T")


class Parquet:
    """A Parquet file as a table of text."""

    def __init__(self, source: Source) -> None:
        self.source, self.name = source, source.name
        origin = source.origin if source.head.startswith(b"PAR1") else source.whole()
        file = io.BytesIO(origin) if isinstance(origin, bytes) else origin
        self._lazy = self._do(lambda: pl.scan_parquet(file, glob=False))
        self._schema = self._do(self._lazy.collect_schema)
        self.columns = tuple(self._schema)

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        """These columns, some rows at a time."""
        wanted = self._lazy.select(self._text(column) for column in columns)
        total = self._do(lambda: int(self._lazy.select(pl.len()).collect().item()))
        if not total:
            raise BadInput(f"{self.name} has columns but no rows; it should hold one vote a row")
        for first in range(0, total, ROWS):
            yield Block(self._do(wanted.slice(first, ROWS).collect), first + 1)

    def records(self) -> Iterator[dict[str, Any]]:
        return self._do(self._lazy.collect).iter_rows(named=True)

    def typed(self) -> pl.DataFrame:
        """All of it, each column in its own type."""
        frame: pl.DataFrame = self._do(self._lazy.collect)
        return frame

    def _text(self, column: str) -> pl.Expr:
        """A column as text: whole numbers without a decimal point, not-a-number and empty text as missing."""
        cell, dtype = pl.col(column), self._schema[column]
        if dtype.is_nested() or dtype == pl.Binary:
            raise BadInput(f"{self.name}: column {shown(column)} holds {dtype}; it needs one number or text a cell")
        text = cell.cast(pl.String)
        if dtype.is_float():
            number = cell.cast(pl.Float64).fill_nan(None)
            whole = number.cast(pl.Int64, strict=False)
            text = pl.when(number == whole).then(whole.cast(pl.String)).when(number.is_not_null()).then(text)
        return pl.when(text != "").then(text).alias(column)

    def _do(self, work: Callable[[], T]) -> T:
        """Polars at work, its errors in plain words."""
        try:
            return work()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
            remedy = "it may have broken off: write or download it again"
            raise BadInput(f"{self.name} is not a whole Parquet file ({reason}); {remedy}") from None
