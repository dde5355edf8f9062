"""Assignments: which worker votes on which task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import torch
from torch import Tensor

from voxpop.simulate.checks import at_least, chance
from voxpop.simulate.distinct import distinct_workers
from voxpop.simulate.regular import regular_graph

Draw = Callable[[int, int], Tensor]  # (start, stop) -> keys (task - start) * M + worker of those tasks, in any order


class Assignment(Protocol):
    """Says who votes on what; no worker votes twice on a task."""

    def votes_of_a_task(self, workers: int) -> float:
        """How many votes a task gets on average: for choosing a block's size."""

    def begin(self, tasks: int, workers: int, generator: torch.Generator) -> Draw:
        """A function that gives the votes of consecutive blocks of tasks, called in their order."""


@dataclass(frozen=True)
class Random:
    """``votes_per_task`` different workers for each task, or all of them where there are fewer.

    A fraction is the chance of one vote more (1.3: one or two votes). ``varying`` makes it one vote and a
    Poisson number more. The n-th busiest worker is drawn in proportion to n^-skew: with 0 all are alike,
    with 1 a few do most.
    """

    votes_per_task: float = 5
    varying: bool = False
    skew: float = 0.0

    def __post_init__(self) -> None:
        at_least("votes_per_task", self.votes_per_task, 1 if self.varying else 0)
        at_least("skew", self.skew, 0)

    def votes_of_a_task(self, workers: int) -> float:
        return min(self.votes_per_task, workers)

    def begin(self, tasks: int, workers: int, generator: torch.Generator) -> Draw:
        rank = 1.0 + torch.randperm(workers, generator=generator)  # M
        weights = rank.pow(-self.skew)

        def draw(start: int, stop: int) -> Tensor:
            return distinct_workers(self._counts(stop - start, generator).clamp_max_(workers), weights, generator)

        return draw

    def _counts(self, tasks: int, generator: torch.Generator) -> Tensor:
        if self.varying:
            return 1 + torch.poisson(torch.full((tasks,), self.votes_per_task - 1.0), generator=generator).long()
        whole = int(self.votes_per_task)
        more = self.votes_per_task - whole
        if not more:
            return torch.full((tasks,), whole)
        return whole + (torch.rand(tasks, generator=generator) < more).long()


@dataclass(frozen=True)
class Regular:
    """The same number of votes on every task, and the same number of tasks for every worker."""

    votes_per_task: int = 3

    def __post_init__(self) -> None:
        at_least("votes_per_task", self.votes_per_task, 0)

    def votes_of_a_task(self, workers: int) -> float:
        return self.votes_per_task

    def begin(self, tasks: int, workers: int, generator: torch.Generator) -> Draw:
        graph = regular_graph(tasks, workers, self.votes_per_task, generator)  # N,l

        def draw(start: int, stop: int) -> Tensor:
            return (torch.arange(stop - start)[:, None] * workers + graph[start:stop]).view(-1)

        return draw


@dataclass(frozen=True)
class Complete:
    """Everyone votes on everything; with a ``share`` below 1, on each task with that chance."""

    share: float = 1.0

    def __post_init__(self) -> None:
        chance("share", self.share)

    def votes_of_a_task(self, workers: int) -> float:
        return self.share * workers

    def begin(self, tasks: int, workers: int, generator: torch.Generator) -> Draw:
        even = torch.ones(workers)

        def draw(start: int, stop: int) -> Tensor:
            if self.share == 1:
                return torch.arange((stop - start) * workers)
            size = torch.full((stop - start,), float(workers))
            counts = torch.binomial(size, torch.full_like(size, self.share), generator=generator)
            return distinct_workers(counts.long(), even, generator)

        return draw


ASSIGNMENTS: Mapping[str, Callable[[], Assignment]] = MappingProxyType(
    {
        "random": Random,
        "power-law": lambda: Random(skew=1.0),
        "regular": Regular,
        "complete": Complete,
    }
)
