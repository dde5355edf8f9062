"""The most doubtful tasks, and who says what about them with how much weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import torch
from torch import Tensor

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
    truth: Any = None  # where it is known
    weights: tuple[Weight, ...] = ()
    adds_up: bool = False
    picture: bytes | None = None

    @property
    def right(self) -> bool:
        return bool(self.truth == self.label)


def most_doubtful(found: Consensus, truth: Any = None) -> list[Doubt]:
    """The tasks with votes and the least confidence: what to ask about next."""
    known = found.votes.truth(truth)
    return [_doubt(found, task, sure, known) for task, sure in _least_sure(found, 1, LISTED)]


def contested(found: Consensus, truth: Any = None, picture: Picture | None = None) -> list[Doubt]:
    """The most doubtful of the tasks that several workers voted on, with the weight of each vote."""
    if found.votes.K < 2 or found.evidence is None:
        return []
    known, doubts = found.votes.truth(truth), []
    for task, sure in _least_sure(found, CONTESTED, EXPLAINED):
        doubt = _doubt(found, task, sure, known)
        weights, adds_up = _weights(found, task, doubt.runner_up)
        shown = picture(doubt.task) if picture else None
        doubts.append(replace(doubt, weights=weights, adds_up=adds_up, picture=shown))
    return doubts


def _least_sure(found: Consensus, least_votes: int, count: int) -> list[tuple[int, float]]:
    """Position and confidence of the tasks with the least of it, among those with enough votes."""
    frame = pl.DataFrame({"sure": found.certainty.numpy(), "votes": found.votes.whole.votes_per_task.numpy()})
    frame = frame.with_row_index("task").filter(pl.col("votes") >= least_votes)
    return frame.bottom_k(count, by=["sure", "task"]).sort("sure", "task").select("task", "sure").rows()


def _doubt(found: Consensus, task: int, sure: float, known: Tensor | None) -> Doubt:
    votes, label = found.votes, int(found.label[task])
    truth = -1 if known is None else int(known[task])
    doubt = Doubt(
        votes.tasks[task],
        votes.classes[label],
        sure,
        int(votes.whole.votes_per_task[task]),
        truth=None if truth < 0 else votes.classes[truth] if truth < votes.K else "none of these",
    )
    if votes.K < 2:
        return doubt
    belief = found.belief[task].clone()  # K
    belief[label] = -1.0
    second = int(first_best(belief[None])[0])
    return replace(doubt, runner_up=votes.classes[second], next_best=float(belief[second]))


def _weights(found: Consensus, task: int, runner_up: Any) -> tuple[tuple[Weight, ...], bool]:
    """The votes of one task by their weight, the rest last; and whether they add up to the belief."""
    frame = found.explain(found.votes.tasks[task])
    against = frame[str(runner_up)]
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
