"""Small helpers for nested exports that may lack any of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voxpop.errors import BadOption
from voxpop.io.importers.imported import Ask


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def each(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in a list, if it is one."""
    return (v for v in value if isinstance(v, dict)) if isinstance(value, list) else iter(())


def refuse_task(tool: str, ask: Ask) -> None:
    """For exports that name their tasks in one way only."""
    if ask.task is not None:
        raise BadOption(f"an export of {tool} names its tasks itself; leave out task={ask.task!r}")


def no_questions(ask: Ask) -> None:
    """For tables with one label column."""
    if ask.question is not None:
        raise BadOption(f"a table with one label column has no questions; leave out question={ask.question!r}")
