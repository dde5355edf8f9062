"""Toloka: the TSV of assignments, with INPUT, OUTPUT and GOLDEN columns."""

from __future__ import annotations

from voxpop.errors import BadInput
from voxpop.io.importers.imported import Ask, Gathering, Imported
from voxpop.io.importers.tabular import task_columns, task_name, with_prefix
from voxpop.io.table import Table

WORKER, STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:status"
GOOD = ("", "submitted", "approved")


def recognises(columns: set[str]) -> bool:
    return WORKER in columns


def read(table: Table, ask: Ask) -> Imported:
    """The inputs name the task, as the export has no id for it; control tasks carry their gold answer."""
    if WORKER not in table.columns:
        raise BadInput(f"{table.name} has no column {WORKER!r}; it is not an export of Toloka assignments")
    outputs, golden = with_prefix(table, "OUTPUT:"), with_prefix(table, "GOLDEN:")
    names = task_columns(table, with_prefix(table, "INPUT:"), ask.task)
    gathering = Gathering(table.name, ask)
    for row in table.records():
        task = task_name(row, names)
        for question, column in golden.items():
            gathering.gold(question, task, row.get(column))
        status = str(row.get(STATUS) or "").lower()
        if status not in GOOD:
            gathering.drop(status)
            continue
        for question, column in outputs.items():
            gathering.vote(question, task, row.get(WORKER), row.get(column))
    return gathering.chosen()
