"""What the spreadsheets of MTurk and Toloka share: columns with a prefix for inputs and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voxpop.errors import BadInput, unknown
from voxpop.io.table import Table
from voxpop.io.values import as_json


def with_prefix(table: Table, prefix: str) -> dict[str, str]:
    """The columns with this prefix: short name -> column."""
    return {c.removeprefix(prefix): c for c in table.columns if c.startswith(prefix)}


def task_columns(table: Table, inputs: Mapping[str, str], chosen: str | None, own: str | None = None) -> Sequence[str]:
    """The columns that name the task: a chosen one, the tool's own id, or else all inputs together."""
    if chosen is not None:
        if chosen in table.columns or chosen in inputs:
            return [inputs.get(chosen, chosen)]
        raise unknown("column", chosen, table.columns)
    if own in table.columns:
        return [str(own)]
    if inputs:
        return list(inputs.values())
    raise BadInput(
        f"{table.name} has no column that names the task; it needs one of the inputs, or task= to choose a column"
    )


def task_name(row: Mapping[str, Any], columns: Sequence[str]) -> str | None:
    """The cell of one column as it is, the cells of several as a JSON list."""
    cells = [row.get(c) for c in columns]
    if len(cells) == 1:
        return cells[0]
    return as_json(cells) if any(cells) else None
