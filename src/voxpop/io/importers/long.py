"""Long tables under other column names: crowd-kit (also its pairs) and the JSONL of LLM judges."""

from __future__ import annotations

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.importers.imported import NO_ANNOTATOR, NO_ANSWER, NO_TASK, Ask, Imported, imported
from voxpop.io.importers.shapes import no_questions
from voxpop.io.problems import LISTED, missing_columns
from voxpop.io.table import Table, in_full
from voxpop.io.values import NOT_A_NUMBER

PAIR = ("left", "right")


def is_crowd_kit(columns: set[str]) -> bool:
    return {"task", "performer", "label"} <= columns or {*PAIR, "label"} <= columns


def is_judges(columns: set[str]) -> bool:
    return {"item", "judge", "label"} <= columns


def crowd_kit(table: Table, ask: Ask) -> Imported:
    """task, worker (or performer), label; or pairs: worker, left, right, label, where the label is one of the two."""
    worker = "performer" if "performer" in table.columns and "worker" not in table.columns else "worker"
    if ask.task is None and "task" not in table.columns and set(PAIR) <= set(table.columns):
        return _pairs(table, worker, ask)
    return _long(table, ask, ask.task or "task", worker)


def judges(table: Table, ask: Ask) -> Imported:
    """item, judge, label."""
    return _long(table, ask, ask.task or "item", "judge")


def _long(table: Table, ask: Ask, task: str, worker: str) -> Imported:
    no_questions(ask)
    frame = _columns(table, (task, worker, "label")).select(task=task, worker=worker, label="label")
    return _whole(table.name, frame)


def _pairs(table: Table, worker: str, ask: Ask) -> Imported:
    """The task is the pair, the label says which side was preferred."""
    no_questions(ask)
    frame = _columns(table, (worker, *PAIR, "label"))
    left, right, label = (pl.col(c) for c in (*PAIR, "label"))
    neither = frame.with_row_index("row", 1).filter((label != left) & (label != right))
    if len(neither):
        where = neither.select("row", "label", *PAIR).head(LISTED).iter_rows()
        raise BadInput(
            *(f"{table.name}, row {r}: label {a!r} is neither {b!r} nor {c!r}; name one side" for r, a, b, c in where)
        )
    side = pl.when(label == left).then(pl.lit("left")).when(label == right).then(pl.lit("right"))
    return _whole(table.name, frame.select(task=left + " | " + right, worker=worker, label=side))


def _columns(table: Table, columns: tuple[str, ...]) -> pl.DataFrame:
    absent = [c for c in columns if c not in table.columns]
    if absent:
        raise missing_columns(table.name, absent, table.columns, "rename it, or name another source")
    return in_full(table, columns)


def _whole(name: str, frame: pl.DataFrame) -> Imported:
    """The rows that have all three; the others are counted."""
    frame = frame.with_columns(label=pl.when(~pl.col("label").is_in(list(NOT_A_NUMBER))).then("label"))
    dropped = {}
    for column, reason in (("task", NO_TASK), ("worker", NO_ANNOTATOR), ("label", NO_ANSWER)):
        gaps = frame[column].null_count()
        if gaps:
            dropped[reason] = gaps
            frame = frame.drop_nulls(column)
    return imported(name, frame, dropped=dropped)
