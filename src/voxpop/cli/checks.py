"""Checks before long work: all that is wrong is found at once, and said in one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voxpop.errors import BadInput, VoxError


def checked(*checks: Callable[[], Any]) -> list[Any]:
    """What each check returns, or an error that lists the problems of all of them."""
    results: list[Any] = []
    problems: list[str] = []
    for check in checks:
        try:
            results.append(check())
        except VoxError as error:
            problems += error.problems
    if problems:
        raise BadInput(*problems)
    return results
