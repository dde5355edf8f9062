"""What it gains to ask a worker about a task: a function of the task and of p(right) that grows with p(right)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from voxpop.active.values import noise, said
from voxpop.numerics import simplex


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
        belief = self.belief[tasks] if right.dim() == 1 else self.belief[tasks][:, None, :]
        K = self.belief.shape[1]
        right = right.clamp(1 / K, 1)
        return (simplex.entropy(said(belief, right)) - noise(right, K)).clamp_min(0)
