"""Argilla v2: records with nested responses (their status is lost there), or flat ones (``question.responses``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from voxpop.io.importers.imported import Ask, Gathering, Imported
from voxpop.io.importers.shapes import each, mapping
from voxpop.io.table import Table

LEFT_OUT = ("draft", "discarded")  # what a person did not submit
RESPONSES, SUGGESTION = ".responses", ".suggestion"


def recognises(columns: set[str]) -> bool:
    return {"responses", "fields"} <= columns or any(c.endswith(RESPONSES) for c in columns)


def read(table: Table, ask: Ask) -> Imported:
    gathering = Gathering(table.name, ask)
    for record in table.records():
        name = _task(record, ask.task)
        for question, answer, user, status in (*_nested(record), *_flat(record)):
            if status in LEFT_OUT:
                gathering.drop(status, question)
            else:
                gathering.vote(question, name, None if user == "None" else user, answer)
        for question, answer, agent in (*_nested_suggestions(record), *_flat_suggestions(record)):
            if ask.predictions:
                gathering.vote(question, name, agent or "suggestions", answer)
    return gathering.chosen()


def _task(record: Mapping[str, Any], field: str | None) -> Any:
    if field is None:
        return record.get("id")
    places = (record, mapping(record.get("fields")), mapping(record.get("metadata")))
    return next((place[field] for place in places if field in place), None)


def _nested(record: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Question, answer, user, status of each response."""
    for question, responses in mapping(record.get("responses")).items():
        for response in each(responses):
            yield question, response.get("value"), response.get("user_id"), response.get("status")


def _flat(record: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    for key, answers in record.items():
        if key.endswith(RESPONSES):
            parts = (answers, record.get(f"{key}.users"), record.get(f"{key}.status"))
            for answer, user, status in zip_longest(*(part if isinstance(part, list) else () for part in parts)):
                yield key.removesuffix(RESPONSES), answer, user, status


def _nested_suggestions(record: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Question, answer, agent of each suggestion."""
    for question, suggestion in mapping(record.get("suggestions")).items():
        found = mapping(suggestion)
        if found.get("value") is not None:
            yield question, found["value"], found.get("agent")


def _flat_suggestions(record: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key, answer in record.items():
        if key.endswith(SUGGESTION) and answer is not None:
            yield key.removesuffix(SUGGESTION), answer, record.get(f"{key}.agent")
