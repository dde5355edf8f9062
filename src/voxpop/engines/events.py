"""Progress: engines emit it, whoever listens draws it. Nothing here prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    stage: str  # what is running
    step: int  # how far it is
    steps: int  # how far it may go
    value: float | None = None  # the bound, where there is one


Listener = Callable[[Progress], None]
_listener: ContextVar[Listener | None] = ContextVar("voxpop_listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the progress of everything that runs in this block to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def emit(stage: str, step: int, steps: int, value: float | None = None) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(Progress(stage, step, steps, value))
