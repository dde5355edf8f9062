"""The loop around a pure step: history, stopping and progress, written once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from voxpop.engines.events import emit
from voxpop.engines.outcome import Status

S = TypeVar("S")


@dataclass(frozen=True)
class Info:
    """What a step has to say: the number that the paper bounds, and how far the belief moved."""

    bound: float
    change: float = math.nan


@dataclass(frozen=True)
class Run(Generic[S]):
    state: S
    history: tuple[Info, ...]
    status: Status

    @property
    def bound(self) -> float:
        return self.history[-1].bound if self.history else -math.inf


def iterate(
    step: Callable[[S], tuple[S, Info]], state: S, *, max_iter: int, tol: float, scale: float, stage: str
) -> Run[S]:
    """Step until the bound gains less than ``tol * scale`` (scale: the number of votes); tol = 0 never stops early.

    An engine without a bound (belief propagation) stops when the belief moves by less than ``tol``.
    """
    history: list[Info] = []
    for count in range(1, max_iter + 1):
        state, info = step(state)
        if math.isnan(info.bound):
            gain = info.change
        else:
            gain = info.bound - history[-1].bound if history else math.inf
        history.append(info)
        emit(stage, count, max_iter, info.bound)
        if tol > 0 and abs(gain) <= tol * scale:
            return Run(state, tuple(history), Status.CONVERGED)
    return Run(state, tuple(history), Status.OUT_OF_STEPS)
