"""Amazon Mechanical Turk: the batch CSV, and the tables that papers published from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.importers.imported import Ask, Gathering, Imported
from voxpop.io.importers.tabular import task_columns, task_name, with_prefix
from voxpop.io.table import Table, in_full
from voxpop.io.values import several

WORKERS = ("WorkerId", "WorkerID")
GOLD = ("true_label", "gold", "gold_label")  # inputs that are the truth
STATUS = "AssignmentStatus"


def recognises(columns: set[str]) -> bool:
    return bool(set(WORKERS) & columns) and any(c.startswith("Answer.") for c in columns)


def read(table: Table, ask: Ask) -> Imported:
    """Task is the HITId, else the inputs. A question's columns are one of text, or a true/false one for each option."""
    worker = next((w for w in WORKERS if w in table.columns), None)
    if worker is None:
        raise BadInput(f"{table.name} has no column 'WorkerId' or 'WorkerID'; it is not an MTurk batch")
    inputs = with_prefix(table, "Input.")
    gold = next((inputs.pop(name) for name in GOLD if name in inputs), None)
    names = task_columns(table, inputs, ask.task, "HITId")
    frame = in_full(table)
    questions = _questions(frame)
    gathering = Gathering(table.name, ask)
    for row in frame.iter_rows(named=True):
        task = task_name(row, names)
        if str(row.get(STATUS)).lower() == "rejected":
            gathering.drop("rejected")
            continue
        for question, options in questions.items():
            gathering.vote(question, task, row[worker], _answer(row, options))
            if gold is not None:
                gathering.gold(question, task, row[gold])
    return gathering.chosen()


def _questions(frame: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Each question's columns by option; a column of text has the option ''."""
    questions: dict[str, dict[str, str]] = {}
    for column in frame.columns:
        if not column.startswith("Answer."):
            continue
        question, _, option = column.removeprefix("Answer.").rpartition(".")
        if question and option != "label" and _ticked(frame[column]):
            questions.setdefault(question, {})[option] = column
        else:
            whole = column.removeprefix("Answer.").removesuffix(".label")
            questions[whole] = {"": column}
    return questions


def _ticked(cells: pl.Series) -> bool:
    """Nothing but true and false."""
    return set(cells.drop_nulls().str.to_lowercase().unique()) <= {"true", "false"}


def _answer(row: Mapping[str, Any], options: Mapping[str, str]) -> str | None:
    if "" in options:
        return row[options[""]]  # type: ignore[no-any-return]
    return several(option for option, column in options.items() if str(row[column]).lower() == "true")
