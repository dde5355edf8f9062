"""An axis: the names of the tasks, of the workers or of the classes, in the order of their positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from voxpop.errors import BadInput, unknown

Names = pl.Series | Sequence[Any] | Iterable[Any]


class Axis:
    """Distinct names in a fixed order. Text stays text, integers stay integers."""

    def __init__(self, kind: str, names: Names) -> None:
        self.kind = kind
        self.names = as_names(names, kind)
        if self.names.null_count():
            raise BadInput(f"the {kind} axis has a missing name at position {self.names.is_null().arg_max()}")
        if self.names.n_unique() != len(self.names):
            twice = self.names.filter(self.names.is_duplicated())[0]
            raise BadInput(f"the {kind} axis names '{twice}' twice; names must differ")

    @classmethod
    def found_in(cls, kind: str, column: pl.Series) -> Axis:
        """The axis of the names that occur: sorted, numbers numerically, also where they are text."""
        names = column.unique().drop_nulls()
        return cls(kind, sort_names(as_text(names) if isinstance(names.dtype, pl.Categorical) else names))

    @classmethod
    def counting(cls, kind: str, size: int) -> Axis:
        """The axis 0 .. size-1."""
        axis = cls.__new__(cls)
        axis.kind, axis.names = kind, pl.int_range(0, size, eager=True)
        return axis

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, position: int) -> Any:
        return self.names[int(position)]

    def __iter__(self) -> Any:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self.names.dtype == other.names.dtype and self.names.equals(other.names)

    def __hash__(self) -> int:
        return hash((self.kind, len(self)))

    def __repr__(self) -> str:
        shown = ", ".join(str(n) for n in self.names.head(4))
        return f"<{len(self)} {self.kind}: {shown}{', ...' if len(self) > 4 else ''}>"

    def codes(self, column: pl.Series) -> pl.Series:
        """The position of each name (UInt32); null where the name is not on this axis or is missing."""
        if isinstance(column.dtype, pl.Categorical):
            return self._codes_of_distinct(column)
        names, column = alike(self.names, column)
        if names.dtype.is_integer() and self._counts_from_zero:
            on_axis = column.is_between(0, len(names) - 1)
            return column.set(~on_axis.fill_null(False), None).cast(pl.UInt32)
        if names.dtype == pl.String:
            return column.cast(pl.Enum(names), strict=False).to_physical().cast(pl.UInt32)
        table = pl.DataFrame({"name": names}).with_row_index("code")
        return pl.DataFrame({"name": column}).join(table, on="name", how="left", maintain_order="left")["code"]

    def _codes_of_distinct(self, column: pl.Series) -> pl.Series:
        """The same for a column with a dictionary: each distinct name is looked up once."""
        distinct = column.unique().drop_nulls()
        entry = distinct.to_physical().to_numpy()
        code = np.full(int(entry.max(initial=0)) + 1, -1)
        code[entry] = self.codes(as_text(distinct)).cast(pl.Int64).fill_null(-1).to_numpy()
        on_axis = pl.Series(code).replace(-1, None).cast(pl.UInt32)
        return on_axis.gather(column.to_physical())

    @cached_property
    def _counts_from_zero(self) -> bool:
        n = len(self.names)
        return (
            n > 0
            and self.names[0] == 0
            and self.names[-1] == n - 1
            and bool((self.names.diff().drop_nulls() == 1).all())
        )

    def position(self, name: Any) -> int:
        """The position of one name, or an error that names the nearest."""
        code = self.codes(as_names([name], self.kind))[0]
        if code is None:
            raise unknown(SINGULAR.get(self.kind, self.kind), name, self.names.head(100_000))
        return int(code)


SINGULAR = {"tasks": "task", "workers": "worker", "classes": "class"}


def as_names(names: Names, kind: str) -> pl.Series:
    """Names as a polars column of text, integers or booleans (categories become text)."""
    try:
        column = names if isinstance(names, pl.Series) else pl.Series(kind, _listed(names))
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"the {kind} mix types: make them all text or all integers ({error})") from None
    if column.dtype in (pl.Categorical, pl.Enum) or column.dtype == pl.Null:
        return column.cast(pl.String)
    if column.dtype.is_float():
        whole = column.is_nan() | column.is_null() | (column == column.round(0))
        if whole.all():  # pandas turns integers with a gap into floats: 3.0 was 3
            return column.fill_nan(None).cast(pl.Int64)
        return column.fill_nan(None).cast(pl.String)
    if column.dtype.is_integer() or column.dtype in (pl.String, pl.Boolean):
        return column
    return column.cast(pl.String)


def _listed(names: Iterable[Any]) -> Any:
    return names if hasattr(names, "__array__") else list(names)


def alike(a: pl.Series, b: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Two columns of names in one type: text meets integers as text, integers meet integers as Int64."""
    if a.dtype.is_integer() and b.dtype.is_integer():
        return a.cast(pl.Int64), b.cast(pl.Int64)
    if a.dtype == b.dtype:
        return a, b
    return as_text(a), as_text(b)


def as_text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String)


def sort_names(names: pl.Series) -> pl.Series:
    """Sorted; text that is all numbers sorts by value ("9" before "10"), then by spelling."""
    if names.dtype != pl.String or not len(names):
        return names.sort()
    for number in (pl.Int64, pl.Float64):
        value = names.cast(number, strict=False)
        if not value.null_count() and not (number == pl.Float64 and value.is_nan().any()):
            return names.to_frame("name").with_columns(value.alias("value")).sort("value", "name")["name"]
    return names.sort()
