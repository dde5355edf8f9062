"""How a run ended, as a value with a sentence in it."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """``str(status)`` says what to do about it."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "out of steps"
    DEGENERATE = "degenerate"
    EXACT = "exact"
    TRAINED = "trained"

    def __str__(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Status.CONVERGED: "converged",
    Status.OUT_OF_STEPS: "stopped before it converged: raise max_iter or tol",
    Status.DEGENERATE: "collapsed: the votes name several classes, the answer only one; use consensus(votes)",
    Status.EXACT: "computed in one pass",
    Status.TRAINED: "trained",
}
