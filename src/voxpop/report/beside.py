"""A consensus beside other methods: against the truth where it is known, else against each other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from voxpop.errors import DataWarning
from voxpop.methods.majority import MajorityVote
from voxpop.methods.registry import BY_CLASS
from voxpop.results import Consensus

MOST_CELLS = 100_000_000  # of tasks x classes, above which no majority vote is computed only to be compared


@dataclass(frozen=True)
class Beside:
    """One method: how many labels differ from those found, how sure it is, and how it does against the truth."""

    method: str
    found: bool  # whether it is the one that the report is about
    differ: int
    confidence: float
    scores: Mapping[str, float] | None

    @property
    def wrong(self) -> int:
        return 0 if self.scores is None else round((1 - self.scores["accuracy"]) * self.scores["tasks"])

    @property
    def doubt(self) -> float:
        """The standard error of the accuracy."""
        if self.scores is None:
            return 0.0
        right = self.scores["accuracy"]
        return float((right * (1 - right) / self.scores["tasks"]) ** 0.5)


@dataclass(frozen=True)
class Gain:
    """What the labels found changed of the majority's, on tasks with a known truth."""

    righted: int
    spoiled: int
    fewer: float  # share of the majority's wrong labels that are gone; negative where there are more


def beside(found: Consensus, others: Iterable[Consensus], truth: Any = None) -> list[Beside]:
    """The consensus and the others, the best first where the truth is known."""
    rows = []
    for one in (found, *others):
        scores = None if truth is None else one.evaluate(truth)
        differ = int((one.label != found.label).sum())
        sure = float(one.certainty.double().mean())
        rows.append(Beside(plain_name(one.method), one is found, differ, sure, scores))
    return rows if truth is None else sorted(rows, key=lambda row: row.wrong)


def majority_of(found: Consensus, others: Iterable[Consensus]) -> Consensus | None:
    """The majority vote: the one among these, or a new one; None where that would be too large."""
    for one in (found, *others):
        if one.method == MajorityVote.__name__:
            return one
    if found.votes.N * found.votes.K > MOST_CELLS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # who made the consensus has been warned of the same votes
        return MajorityVote().infer(found.votes)


def gain(found: Consensus, majority: Consensus, truth: Any) -> Gain:
    known = found.votes.truth(truth)
    assert known is not None
    ours, theirs = found.label == known, majority.label == known
    righted = int((ours & ~theirs & (known >= 0)).sum())
    spoiled = int((theirs & ~ours & (known >= 0)).sum())
    before = int((~theirs & (known >= 0)).sum())
    return Gain(righted, spoiled, (righted - spoiled) / max(before, 1))


def plain_name(method: str) -> str:
    """The name on the command line."""
    return BY_CLASS[method].name if method in BY_CLASS else method.lower()


def about(method: str) -> str:
    """What a method does, in a line; nothing for one that is not in the registry."""
    return BY_CLASS[method].summary if method in BY_CLASS else ""
