"""Locks between processes. A lock ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ASKING = "ask.lock"
FITTING = "fit.lock"


@contextmanager
def held(directory: Path, name: str, wait: bool = True) -> Iterator[bool]:
    """Whether the lock is ours in this block; without waiting it may not be."""
    with (directory / name).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def taken(directory: Path, name: str) -> bool:
    """Whether somebody holds it now."""
    if not (directory / name).exists():
        return False
    with held(directory, name, wait=False) as ours:
        return not ours
