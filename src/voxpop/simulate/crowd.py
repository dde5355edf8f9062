"""A crowd votes: who votes on what, and what they say, in blocks of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from voxpop.numerics.seeds import generator
from voxpop.simulate import keys
from voxpop.simulate.answers import Answers, FromTables
from voxpop.simulate.assignments import Assignment, Random
from voxpop.simulate.copying import Copying
from voxpop.simulate.simulated import Simulated
from voxpop.votes import Axis, Votes

_BLOCK = 1 << 18  # about so many votes at a time
_RANDOM = Random()


@dataclass(frozen=True)
class Crowd:
    """Workers, what they answer, and how they share the tasks.

    ``reach`` is the share of all tasks that a worker takes unasked; workers with 0 wait for the assignment.
    Followers (``copying``) go where their sources go. The assignment's votes per task count neither.
    """

    kinds: tuple[str, ...]  # M
    answers: Answers
    assignment: Assignment = _RANDOM
    reach: Tensor | None = None  # M
    copying: Copying | None = None

    @classmethod
    def of(
        cls,
        *groups: tuple[str, Tensor],
        assignment: Assignment = _RANDOM,
        reach: Tensor | None = None,
        copying: Copying | None = None,
    ) -> Crowd:
        """A crowd of groups of workers, each a kind and its tables."""
        kinds = tuple(kind for kind, tables in groups for _ in range(len(tables)))
        return cls(kinds, FromTables(torch.cat([tables for _, tables in groups])), assignment, reach, copying)

    def vote(self, truth: Tensor, seed: int = 0) -> Simulated:
        """Everyone votes on tasks with this truth (N class positions)."""
        M, K = self.answers.size
        columns: tuple[list[Tensor], ...] = ([], [], [])
        for block in self._blocks(truth, seed):
            for column, part in zip(columns, block, strict=True):
                column.append(part)
        task, worker, label = map(_joined, columns)
        axes = (Axis.counting("tasks", truth.numel()), Axis.counting("workers", M), Axis.counting("classes", K))
        return Simulated(Votes(task, worker, label, *axes), truth, self.tables, list(self.kinds))

    @property
    def tables(self) -> Tensor | None:
        """What each worker says to each truth on the whole, copied votes included (M,K,K)."""
        own = self.answers.tables
        return own if own is None or self.copying is None else self.copying.tables(own)

    @cached_property
    def _assigned(self) -> Tensor:
        """Positions of the workers who wait for the assignment."""
        waits = torch.ones(self.answers.size[0], dtype=torch.bool)
        if self.reach is not None:
            waits &= self.reach == 0
        if self.copying is not None:
            waits &= self.copying.source < 0
        return waits.nonzero()[:, 0]

    def _blocks(self, truth: Tensor, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """(task, worker, label) of consecutive tasks, sorted."""
        M, K = self.answers.size
        N, assigned = truth.numel(), self._assigned.numel()
        who, says = generator(seed, "assignment"), generator(seed, "labels")
        draw = self.assignment.begin(N, assigned, who) if assigned else _nobody
        size = self.assignment.votes_of_a_task(assigned) + (0 if self.reach is None else float(self.reach.sum()))
        step = max(1, int(_BLOCK / max(size, 1)))
        for start in range(0, N, step):
            stop = min(start + step, N)
            task, row = keys.split(draw(start, stop), max(assigned, 1))
            worker = self._assigned[row]
            if self.reach is not None:
                task, worker = _with_unasked(task, worker, self.reach, stop - start, who)
            task += start
            label = self.answers.draw(task, worker, truth[task], says)
            if self.copying is not None:
                more = self.copying.votes(task, worker, label, truth[task], self.answers, says)
                task, worker, label = (torch.cat(both) for both in zip((task, worker, label), more, strict=True))
            place, label = keys.split(keys.sort((task * M + worker) * K + label), K)
            task, worker = keys.split(place, M)
            yield task.int(), worker.int(), label.int()


def _with_unasked(
    task: Tensor, worker: Tensor, reach: Tensor, tasks: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The pairs, and those of the workers who take a share of all tasks."""
    eager = reach.nonzero()[:, 0]  # E
    row, column = (torch.rand(tasks, eager.numel(), generator=generator) < reach[eager]).nonzero().unbind(1)
    return torch.cat([task, row]), torch.cat([worker, eager[column]])


def _nobody(start: int, stop: int) -> Tensor:
    return torch.empty(0, dtype=torch.int64)


def _joined(parts: list[Tensor]) -> Tensor:
    """One column; the parts are let go, so that a large simulation is never held twice."""
    whole = torch.cat(parts)
    parts.clear()
    return whole
