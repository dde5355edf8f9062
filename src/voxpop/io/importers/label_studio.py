"""Label Studio: the JSON export (nested), and JSON_MIN, CSV and TSV (one annotation a row)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from voxpop.io.importers.imported import CANCELLED, NO_ANSWER, Ask, Gathering, Imported
from voxpop.io.importers.shapes import each, mapping
from voxpop.io.table import Table
from voxpop.io.values import as_label, several

BESIDES = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "was_cancelled")
REGIONS = "marked regions"  # boxes and spans are answers about a part of the task
REGION_KEYS = {"x", "start", "points", "rle"}
HANDED_OUT = {"task", "assignee"}  # data of tasks that 'voxpop ask' wrote: Label Studio gives them ids of its own


def recognises(columns: set[str]) -> bool:
    return bool({"annotations", "completions"} & columns) or {"annotator", "annotation_id"} <= columns


def read(table: Table, ask: Ask) -> Imported:
    gathering = Gathering(table.name, ask)
    if {"annotations", "completions", "predictions"} & set(table.columns):
        for task in table.records():
            _task(task, gathering)
    else:
        _rows(table, gathering)
    return gathering.chosen()


def _task(task: Mapping[str, Any], out: Gathering) -> None:
    """One task with its annotations and, if they are asked for, its predictions."""
    data = mapping(task.get("data"))
    field = _field(set(data), out.ask)
    name = task.get("id") if field is None else data.get(field)
    for annotation in each(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled"):
            out.drop(CANCELLED)
            continue
        for question, answer in _answers(annotation.get("result"), out):
            if annotation.get("ground_truth"):
                out.gold(question, name, answer)
            else:
                out.vote(question, name, _person(annotation.get("completed_by")), answer)
    if out.ask.predictions:
        for prediction in each(task.get("predictions")):
            for question, answer in _answers(prediction.get("result"), out):
                out.vote(question, name, prediction.get("model_version") or "predictions", answer)


def _field(data: set[str], ask: Ask) -> str | None:
    """Which of a task's data is its name; None: its id is."""
    return ask.task or ("task" if data >= HANDED_OUT else None)


def _answers(result: Any, out: Gathering) -> Iterator[tuple[str, str | None]]:
    """One answer for each question (``from_name``): the values of several items are one set."""
    if not result:
        out.drop(NO_ANSWER)
    found: dict[str, list[str]] = defaultdict(list)
    for item in each(result):
        question = str(item.get("from_name") or item.get("type") or "label")
        labels = _labels(mapping(item.get("value")))
        if labels is None:
            out.drop(REGIONS, question)
        else:
            found[question] += labels
    for question, labels in found.items():
        yield question, several(labels)


def _labels(value: Mapping[str, Any]) -> list[str] | None:
    """The labels in one value; None if it is not an answer about the whole task."""
    if REGION_KEYS & set(value) or any(key.endswith("labels") for key in value):
        return None
    for kind in ("choices", "taxonomy"):
        if kind in value:
            return [_path(choice) for choice in _listed(value[kind])]
    for kind in ("number", "selected", "rating", "text"):
        if kind in value:
            return [label for v in _listed(value[kind]) if (label := as_label(v)) is not None]
    return None


def _path(choice: Any) -> str:
    """A nested choice from its root to its leaf."""
    return "/".join(_path(part) for part in choice) if isinstance(choice, list) else as_label(choice) or ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _person(completed_by: Any) -> Any:
    who = mapping(completed_by)
    return (who.get("email") or who.get("id")) if isinstance(completed_by, dict) else completed_by


def _rows(table: Table, out: Gathering) -> None:
    """One annotation a row. The questions stand between the task's id and the annotator."""
    questions, field = _questions(list(table.columns), out.ask), _field(set(table.columns), out.ask)
    for row in table.records():
        if str(row.get("was_cancelled")).lower() in ("true", "1"):
            out.drop(CANCELLED)
            continue
        for question in questions:
            out.vote(question, row.get(field or "id"), _person(row.get("annotator")), _cell(row.get(question)))


def _questions(columns: list[str], ask: Ask) -> list[str]:
    candidates = [c for c in columns if c not in BESIDES and c != _field(set(columns), ask)]
    if ask.question in candidates or not {"id", "annotator"} <= set(columns):
        return candidates
    between = columns[columns.index("id") + 1 : columns.index("annotator")]
    return [c for c in candidates if c in between] or candidates


def _cell(cell: Any) -> Any:
    """A cell of a flat export: plain text for one choice, else JSON in the shape of the nested export."""
    if isinstance(cell, str) and cell[:1] in ("{", "["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    if not isinstance(cell, dict | list):
        return cell
    labels = [_labels(mapping(item)) if isinstance(item, dict) else [_path(item)] for item in _listed(cell)]
    return several(label for found in labels for label in found or [])
