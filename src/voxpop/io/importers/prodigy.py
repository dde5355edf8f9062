"""Prodigy ``db-out``: one line for each task and annotator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxpop.io.importers.imported import Ask, Gathering, Imported
from voxpop.io.table import Table
from voxpop.io.values import several

CHOICE, BINARY = "choice", "binary"
SPANS = "marked spans"  # many answers in one text, not one


def recognises(columns: set[str]) -> bool:
    return {"_input_hash", "answer"} <= columns


def read(table: Table, ask: Ask) -> Imported:
    """Two questions at most: ``choice`` among options, and ``binary`` (accept or reject the label that is shown)."""
    gathering = Gathering(table.name, ask)
    for line in table.records():
        answer = line.get("answer")
        worker = line.get("_annotator_id") or line.get("_session_id")
        if answer == "ignore":
            gathering.drop("ignored")
        elif line.get("options"):
            if answer == "reject":
                gathering.drop("rejected", CHOICE)
            else:
                gathering.vote(CHOICE, line.get(ask.task or "_input_hash"), worker, _accepted(line))
        elif line.get("spans") and "label" not in line:
            gathering.drop(SPANS)
        else:
            gathering.vote(BINARY, line.get(ask.task or "_task_hash"), worker, answer)
    return gathering.chosen()


def _accepted(line: Mapping[str, Any]) -> str | None:
    accepted = line.get("accept")
    return several(str(option) for option in accepted) if isinstance(accepted, list) else None
