"""What it gains to ask a worker about a task: a function of the task and of p(right) that grows with p(right)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from voxpop.active.values import beyond, error_reduction, noise, said
from voxpop.numerics import simplex

WIDE = 1 << 22  # numbers in one piece of work


class Gain(Protocol):
    """It must not fall when p(right) rises: the search for the best pairs rests on that."""

    def of(self, tasks: Tensor, right: Tensor) -> Tensor:
        """The gain on some tasks (B) by workers with these chances of being right (B or B,M)."""


@dataclass(frozen=True, eq=False)
class Worth:
    """What the task is worth times p(right): paper 002's choice of the doubtful task and of its expert, as one."""

    value: Tensor  # N, zero or more

    def of(self, tasks: Tensor, right: Tensor) -> Tensor:
        value = self.value[tasks]
        return right * (value if right.dim() == 1 else value[:, None])


@dataclass(frozen=True, eq=False)
class Information:
    """I(vote; truth) in nats, for this worker on this task (``values.information``)."""

    belief: Tensor  # N,K

    def of(self, tasks: Tensor, right: Tensor) -> Tensor:
        wide = 1 if right.dim() == 1 else right.shape[1]
        rows = max(1, WIDE // max(wide * self.belief.shape[1], 1))
        parts = [self._of(t, r) for t, r in zip(torch.split(tasks, rows), torch.split(right, rows), strict=True)]
        return torch.cat(parts) if parts else right.clone()

    def _of(self, tasks: Tensor, right: Tensor) -> Tensor:
        belief = self.belief[tasks] if right.dim() == 1 else self.belief[tasks][:, None, :]
        K = self.belief.shape[1]
        right = right.clamp(1 / K, 1)
        return beyond(simplex.entropy(said(belief, right)), noise(right, K))


@dataclass(frozen=True, eq=False)
class Rise:
    """By how much this worker's votes are expected to raise the chance that the consensus is right, a vote."""

    belief: Tensor  # N,K
    ahead: int

    def of(self, tasks: Tensor, right: Tensor) -> Tensor:
        if right.dim() == 1:
            return error_reduction(self.belief[tasks], right, self.ahead)
        rows = tasks.repeat_interleave(right.shape[1])
        return error_reduction(self.belief[rows], right.reshape(-1), self.ahead).view_as(right)


@dataclass(frozen=True, eq=False)
class Unequal:
    """A gain whose ties are broken: each task's counts a little more or less."""

    gain: Gain
    weight: Tensor  # N, near one

    def of(self, tasks: Tensor, right: Tensor) -> Tensor:
        weight = self.weight[tasks]
        return self.gain.of(tasks, right) * (weight if right.dim() == 1 else weight[:, None])
