"""Reading one label a task: gold answers and truths."""

from __future__ import annotations

import os

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.columns import open_table, read_columns
from voxpop.io.jsons import Json
from voxpop.io.problems import LISTED, missing_columns, shown
from voxpop.io.source import Source
from voxpop.io.values import as_label


def read_labels(path: str | os.PathLike[str], *, task: str = "task", label: str = "label") -> pl.DataFrame:
    """A file with the columns task and label, or a JSON object {task: label}, as a frame of text, one row a task."""
    table = open_table(Source.of(path))
    if isinstance(table, Json) and not table.columns:
        frame = _of_object(table)
    else:
        absent = [c for c in (task, label) if c not in table.columns]
        if absent:
            raise missing_columns(table.name, absent, table.columns, "name the columns of task and label")
        columns = read_columns(table, (task, label), "fill it in, or leave the row out")
        frame = pl.DataFrame([c.cast(pl.String).alias(n) for c, n in zip(columns, ("task", "label"), strict=True)])
    frame = frame.unique(maintain_order=True)
    torn = frame.filter(frame["task"].is_duplicated()).group_by("task", maintain_order=True).agg("label")
    if len(torn):
        raise BadInput(
            *(
                f"{table.name}: task {shown(name)} has different labels, {' and '.join(map(shown, labels))}; keep one"
                for name, labels in torn.head(LISTED).iter_rows()
            )
        )
    return frame


def _of_object(table: Json) -> pl.DataFrame:
    items = table.value.items() if isinstance(table.value, dict) else ()
    rows = [(name, as_label(label)) for name, label in items]
    lacking = [name for name, label in rows if label is None]
    if not rows or lacking or any(isinstance(label, dict | list) for _, label in items):
        where = f"task {shown(lacking[0])} has no label" if lacking else "it is not a table or an object {task: label}"
        raise BadInput(f"{table.name}: {where}; give every task one label")
    return pl.DataFrame(rows, schema={"task": pl.String, "label": pl.String}, orient="row")
