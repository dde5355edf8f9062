"""A labelling loop rehearsed: every answer that could be had is known, and how good what is learned of them is.

Paper 002, section 5.4 (its figure 5): tasks at random or by doubt, workers at random or by expertise, or both chosen.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.active.ask import WORKER_SCORE, StopAsking, ask
from voxpop.active.items import Items
from voxpop.active.skills import Skills
from voxpop.engines.events import emit
from voxpop.errors import BadInput, BadOption
from voxpop.methods.learning.targeted import Targeted
from voxpop.numerics.seeds import generator
from voxpop.simulate import KINDS, simulate_votes_on
from voxpop.simulate.subsets import on_tasks
from voxpop.votes import Axis, Votes


@dataclass(frozen=True, eq=False)
class Pool:
    """Tasks, and all answers that can be had; a pair of task and worker without one cannot be asked."""

    votes: Votes
    truth: Tensor  # N: positions of classes
    x: Any = None  # N,...: features, where there are some
    x_test: Any = None
    y_test: Any = None  # positions of classes

    def __post_init__(self) -> None:
        if len(self.truth) != self.votes.N or (self.x is not None and len(self.x) != self.votes.N):
            rows = "no" if self.x is None else f"{len(self.x):,}"
            raise BadInput(f"{self.votes.N:,} tasks, {len(self.truth):,} truths and {rows} rows of features do not fit")

    @classmethod
    def answered(
        cls,
        truth: Any,
        classes: int,
        kind: str,
        seed: int = 0,
        *,
        workers: int | None = None,
        x: Any = None,
        **test: Any,
    ) -> Pool:
        """Everyone of a simulated crowd of this kind would answer everything. ``test``: x_test and y_test."""
        options: dict[str, Any] = {}
        if x is not None and kind in KINDS and "features" in KINDS[kind].options:
            options["features"] = np.asarray(x).reshape(len(x), -1)
        crowd = simulate_votes_on(truth, workers, classes, kind, seed, assignment="complete", **options)
        return cls(crowd.votes, crowd.truth, x, **test)

    def first(self, votes: int, seed: int) -> Tensor:
        """Some of the answers at random, to begin with: V, bool."""
        if not 1 <= votes <= self.votes.V:
            raise BadOption(
                f"start={votes}: the first votes are at least 1, and at most the {self.votes.V:,} there are"
            )
        return torch.randperm(self.votes.V, generator=generator(seed, "first votes")) < votes


@dataclass(frozen=True)
class Strategy:
    """What is chosen, and what is left to chance."""

    tasks: bool
    workers: bool


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "random": Strategy(tasks=False, workers=False),
        "active item": Strategy(tasks=True, workers=False),
        "active worker": Strategy(tasks=False, workers=True),
        "both": Strategy(tasks=True, workers=True),
    }
)


class Guide(Protocol):
    """Learns from the votes so far, and says what to ask next."""

    def learn(self, told: Votes) -> None: ...

    def scores(self) -> dict[str, float]:
        """How good it is, by the truth that it is not told."""

    def ask(self, k: int, left: Votes) -> pl.DataFrame:
        """task, worker: pairs among the answers that are left."""


@dataclass(frozen=True)
class Point:
    votes: int
    scores: dict[str, float]


def rehearse(pool: Pool, guide: Guide, heard: Tensor, sizes: Sequence[int]) -> Iterator[Point]:
    """Learn, and ask for so many votes, round by round: a point before each round, and one at the end.

    ``heard``: the answers to begin with (V, bool). It ends early where there is nothing left to ask.
    """
    votes = pool.votes
    pairs = votes.task.long() * votes.M + votes.worker.long()
    for size in (*sizes, 0):
        told = votes.select(heard)
        guide.learn(told)
        yield Point(told.V, guide.scores())
        if not size or bool(heard.all()):
            return
        asked = guide.ask(size, votes.select(~heard))
        if asked.is_empty():
            return
        task, worker = (
            torch.from_numpy(axis.codes(asked[name]).cast(pl.Int64).to_numpy().copy())
            for axis, name in ((votes.tasks, "task"), (votes.workers, "worker"))
        )
        heard = heard | torch.isin(pairs, task * votes.M + worker)


# -- our guides -------------------------------------------------------------------------------


@dataclass(eq=False)
class ByFeatures:
    """A learner that knows who is good at what, trained anew on the tasks that have votes."""

    pool: Pool
    strategy: Strategy
    make: Callable[[], Targeted]
    score: str = "entropy"
    worker_score: str = WORKER_SCORE  # of a strategy that chooses workers
    seed: int = 0

    def learn(self, told: Votes) -> None:
        rows = (told.whole.votes_per_task > 0).nonzero()[:, 0]
        self.told = told
        self.model = self.make().fit(self.pool.x[rows.numpy()], on_tasks(told, rows))

    def scores(self) -> dict[str, float]:
        """Of the belief in all tasks of the pool, with votes or without, and of the classifier on new ones."""
        found = {"consensus": right(self.model.forecast(self.pool.x, self.told), self.pool.truth)}
        if self.pool.x_test is not None:
            found["classifier"] = right(self.model.predict_proba(self.pool.x_test), self.pool.y_test)
        return found

    def ask(self, k: int, left: Votes) -> pl.DataFrame:
        rows, how = chosen(self.strategy, k, left, self.score, self.seed, self.worker_score)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StopAsking)
            return self.model.ask(k, X=self.pool.x[rows.numpy()], tasks=named(left.tasks, rows).names.to_list(), **how)


@dataclass(eq=False)
class ByVotes:
    """A method that sees votes only (anything with ``infer``); a worker is as good as his votes were."""

    pool: Pool
    strategy: Strategy
    method: Any
    score: str = "entropy"
    worker_score: str = WORKER_SCORE  # of a strategy that chooses workers
    seed: int = 0

    def learn(self, told: Votes) -> None:
        self.found = self.method.infer(told)

    def scores(self) -> dict[str, float]:
        return {"consensus": right(self.found.belief, self.pool.truth)}

    def ask(self, k: int, left: Votes) -> pl.DataFrame:
        rows, how = chosen(self.strategy, k, left, self.score, self.seed, self.worker_score)
        votes, belief = self.found.votes, self.found.belief
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StopAsking)
            return ask(
                k,
                items=Items(named(left.tasks, rows), belief[rows]),
                expertise=Skills.of_votes(votes, belief),
                votes=votes,
                **how,
            )


def chosen(
    strategy: Strategy, k: int, left: Votes, score: str, seed: int, worker_score: str = WORKER_SCORE
) -> tuple[Tensor, dict[str, Any]]:
    """The tasks that may be asked about (``k`` at random, or all that are left), and how to ask."""
    rows = (left.whole.votes_per_task > 0).nonzero()[:, 0]
    if not strategy.tasks:
        order = torch.randperm(len(rows), generator=generator(seed, "tasks", left.V))
        rows = rows[order[:k]].sort().values
    how = {
        "score": score if strategy.tasks else torch.ones(len(rows)),
        "worker_score": worker_score if strategy.workers else "random",
        "barred": not_left(left, rows),
        "seed": seed,
    }
    return rows, how


def not_left(left: Votes, rows: Tensor) -> pl.DataFrame | None:
    """The pairs on these tasks that nobody can answer any more."""
    some = on_tasks(left, rows)
    free = torch.zeros(some.N * some.M, dtype=torch.bool)
    free[some.task.long() * some.M + some.worker.long()] = True
    pairs = (~free).nonzero()[:, 0]
    if not len(pairs):
        return None
    task, worker = (pairs // some.M).numpy(), (pairs % some.M).numpy()
    return pl.DataFrame({"task": some.tasks.names.gather(task), "worker": some.workers.names.gather(worker)})


def named(tasks: Axis, rows: Tensor) -> Axis:
    return Axis("tasks", tasks.names.gather(rows.numpy()))


def right(belief: Any, truth: Any) -> float:
    """How often the class with the largest share (N,K) is the true one."""
    return float((np.asarray(belief).argmax(1) == np.asarray(truth)).mean())


# -- curves -----------------------------------------------------------------------------------


def curves(
    pool: Callable[[int], Pool],
    guide: Callable[[Pool, Strategy, int], Guide],
    strategies: Sequence[str] = tuple(STRATEGIES),
    *,
    seeds: int = 3,
    start: int = 100,
    sizes: Sequence[int] = (100,) * 4,
) -> pl.DataFrame:
    """strategy, seed, votes, scores: seed by seed, every strategy from the same first votes on the same pool."""
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        made = pool(seed)
        heard = made.first(start, seed)
        for number, name in enumerate(strategies):
            emit("rehearsals", seed * len(strategies) + number, seeds * len(strategies))
            for point in rehearse(made, guide(made, STRATEGIES[name], seed), heard, sizes):
                rows.append({"strategy": name, "seed": seed, "votes": point.votes, **point.scores})
    return pl.DataFrame(rows)


def votes_to_reach(votes: Sequence[float], scores: Sequence[float], level: float) -> float:
    """How many votes a curve takes to a level, on lines between its points: NaN if it never gets there."""
    for place, score in enumerate(scores):
        if score >= level:
            if place == 0:
                return float(votes[0])
            before, share = scores[place - 1], votes[place] - votes[place - 1]
            return votes[place - 1] + share * (level - before) / (score - before)
    return math.nan
