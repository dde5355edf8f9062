"""What is wrong with a file: collected while it is read, raised together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from voxpop.errors import BadInput

LISTED = 1000  # problems that one error lists at most


class Problems:
    """Plain lines that say what is wrong, where, and what to do."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.lines)

    @property
    def enough(self) -> bool:
        return len(self.lines) >= LISTED

    def add(self, line: str) -> None:
        if not self.enough:
            self.lines.append(line)

    def check(self) -> None:
        """Raise what was found, if anything was."""
        if self.lines:
            raise BadInput(*self.lines)


def shown(value: object) -> str:
    """A value as it can stand in one line of a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:56] + "...'"


def missing_columns(name: str, wanted: Collection[str], have: Sequence[str], remedy: str) -> BadInput:
    """The error for columns that are not there, with the nearest that are."""
    listed = ", ".join(shown(c) for c in have[:12]) + (", ..." if len(have) > 12 else "")
    lower = {c.lower(): c for c in have}
    lines = []
    for column in wanted:
        near = get_close_matches(column.lower(), list(lower), n=1)
        hint = f"did you mean {shown(lower[near[0]])}? {remedy}" if near else f"add a header if there is none, {remedy}"
        lines.append(f"{name} has no column {shown(column)}; it has {listed or 'none'}; {hint}")
    return BadInput(*lines)
