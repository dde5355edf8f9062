"""The most doubtful tasks, and who says what about them with how much weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import torch

from voxpop.numerics.simplex import first_best
from voxpop.results import Consensus

LISTED = 20  # tasks in the list
EXPLAINED = 6  # tasks whose votes are weighed one by one
CONTESTED = 3  # votes that a task needs for that: a single vote needs no explanation
WEIGHED = 8  # votes of a task shown one by one

_LAST_ROW = {"(prior)": "before any vote", "(rest)": "the rest", "(gold)": "known for certain"}

Picture = Callable[[Any], bytes | None]  # a task -> its picture as PNG


@dataclass(frozen=True)
class Weight:
    """A vote, or the prior: how many nats it speaks for the label found rather than for the runner-up."""

    who: str
    says: str | None
    nats: float

    @property
    def share(self) -> float:
        """From -1 to 1: how far a bar reaches."""
        return math.tanh(self.nats / 4)

    @property
    def times(self) -> str:
        """How many times as likely it makes the label that it speaks for."""
        factor = math.exp(min(abs(self.nats), 50.0))
        return "certain" if factor > 1e6 else f"×{factor:,.0f}" if factor >= 9.95 else f"×{factor:.1f}"


@dataclass(frozen=True)
class Doubt:
    task: Any
    label: Any
    confidence: float
    votes: int
    runner_up: Any = None  # the next label, and its belief; None where there is one class only
    next_best: float = 0.0
    weights: tuple[Weight, ...] = ()
    adds_up: bool = False
    picture: bytes | None = None


def most_doubtful(found: Consensus) -> list[Doubt]:
    """The tasks with votes and the least confidence: what to ask about next."""
    return [_doubt(found, task, sure, votes) for task, sure, votes in _least_sure(found, 1, LISTED)]


def contested(found: Consensus, picture: Picture | None) -> list[Doubt]:
    """The most doubtful of the tasks that several workers voted on, with the weight of each vote."""
    return [
        _doubt(found, task, sure, votes, explain=True, picture=picture)
        for task, sure, votes in _least_sure(found, CONTESTED, EXPLAINED)
    ]


def _least_sure(found: Consensus, least_votes: int, count: int) -> list[tuple[int, float, int]]:
    """Position, confidence and votes of the tasks with the least confidence, among those with enough votes."""
    frame = pl.DataFrame({"sure": found.certainty.numpy(), "votes": found.votes.whole.votes_per_task.numpy()})
    frame = frame.with_row_index("task").filter(pl.col("votes") >= least_votes)
    return frame.bottom_k(count, by=["sure", "task"]).sort("sure", "task").select("task", "sure", "votes").rows()


def _doubt(
    found: Consensus, task: int, sure: float, votes: int, explain: bool = False, picture: Picture | None = None
) -> Doubt:
    names, label = found.votes.classes, int(found.label[task])
    plain = Doubt(found.votes.tasks[task], names[label], sure, votes)
    if found.votes.K < 2:
        return plain
    belief = found.belief[task].clone()  # K
    belief[label] = -1.0
    second = int(first_best(belief[None])[0])
    weights, adds_up = _weights(found, task, second) if explain else ((), False)
    return Doubt(
        plain.task,
        plain.label,
        sure,
        votes,
        names[second],
        float(belief[second]),
        weights,
        adds_up,
        picture(plain.task) if picture else None,
    )


def _weights(found: Consensus, task: int, second: int) -> tuple[tuple[Weight, ...], bool]:
    frame = found.explain(found.votes.tasks[task])
    against = frame[:, 3 + second].to_list()
    rows = [
        Weight(who, says, -nats if nats else 0.0)
        for who, says, nats in zip(frame["worker"], frame["vote"], against, strict=True)
    ]
    *votes, rest = rows
    rest = replace(rest, who=_LAST_ROW.get(rest.who, rest.who))
    votes.sort(key=lambda weight: -abs(weight.nats))
    if len(votes) > WEIGHED:
        others = sum(weight.nats for weight in votes[WEIGHED:])
        votes = [*votes[:WEIGHED], Weight(f"{len(votes) - WEIGHED:,} more votes", None, others)]
    return (*votes, rest), frame["how"][0] == "adds up"


def checks_to_halve(found: Consensus) -> tuple[float, int]:
    """Wrong labels to expect, and how many of the most doubtful tasks hold half of them."""
    doubt, _ = (1 - found.certainty.double()).clamp_min(0).sort(descending=True)  # N
    total = float(doubt.sum())
    half = int(torch.searchsorted(doubt.cumsum(0), total / 2)) + 1 if total > 0 else 0
    return total, min(half, len(doubt))
