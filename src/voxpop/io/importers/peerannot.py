"""peerannot's answers.json: ``{task: {worker: label}}``, or the other way round."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from voxpop.errors import BadInput
from voxpop.io.importers.imported import Ask, Gathering, Imported
from voxpop.io.importers.shapes import mapping, refuse_task
from voxpop.io.jsons import Json
from voxpop.io.table import Table


def is_answers(value: Any) -> TypeGuard[dict[str, dict[str, Any]]]:
    """Nothing but objects of numbers or text within an object."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(inner, dict) and not any(isinstance(label, dict | list) for label in inner.values())
            for inner in value.values()
        )
    )


def read(table: Table, ask: Ask) -> Imported:
    """A metadata.json beside the file tells tasks from workers by their number; without it, tasks come first."""
    refuse_task("peerannot", ask)
    answers = table.value if isinstance(table, Json) else None
    if isinstance(answers, list) and len(answers) == 1:  # one line read as JSONL
        answers = answers[0]
    if not is_answers(answers):
        raise BadInput(
            f'{table.name} is not an answers.json of peerannot; it should be {{"task": {{"worker": label}}}}'
        )
    gathering = Gathering(table.name, ask)
    inverted = _is_inverted(answers, table)
    for outer, inner in answers.items():
        for name, label in inner.items():
            task, worker = (name, outer) if inverted else (outer, name)
            gathering.vote("label", task, worker, label)
    return gathering.chosen()


def _is_inverted(answers: dict[str, dict[str, Any]], table: Table) -> bool:
    """The number of workers that the metadata gives is that of the outer names, and not of the inner ones."""
    beside = table.source.beside("metadata.json")
    if beside is None:
        return False
    try:
        workers = mapping(json.loads(beside.text())).get("n_workers")
    except (ValueError, RecursionError):
        raise BadInput(f"{beside.name} is not JSON; correct or remove it") from None
    inner = {name for labels in answers.values() for name in labels}
    return workers == len(answers) and workers != len(inner)
