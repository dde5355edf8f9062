"""Which pairs of task and worker may be asked, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.active.expertise import Expertise
from voxpop.active.gains import Gain


@dataclass(frozen=True, eq=False)
class Problem:
    """Choose pairs with the largest sum of gain - price, under all of these limits. N tasks, M workers."""

    gain: Gain
    expertise: Expertise
    price: Tensor  # M: what a vote costs, in the unit of the gain
    capacity: Tensor  # M, int64: votes that a worker can still give; 0: not available
    room: Tensor  # N, int64: votes that a task may still get
    taken: Tensor  # sorted keys task * M + worker of pairs that must not be asked (again)
    fade: Tensor | None = None  # N: the n-th vote of the batch on a task gains fade^(n-1) of what it would alone
    topic: Tensor | None = None  # N: tasks of one topic tell the same
    crowding: float = 0.0  # the n-th vote of the batch on a topic counts (n-1) times this less
    budget: float | None = None  # the most that the batch may cost, in the unit of the price
    least: float = 0.0  # pairs with gain - price at or below this are not worth asking

    @property
    def M(self) -> int:
        return len(self.price)

    def gains(self, tasks: Tensor) -> Tensor:
        """The gain of all pairs of these tasks, -inf where a pair must not be asked: B,M."""
        out: Tensor = self.gain.of(tasks, torch.sigmoid(self.expertise.block(tasks)))
        out = out.masked_fill(self.capacity[None, :] <= 0, -torch.inf)
        first = torch.searchsorted(self.taken, tasks * self.M)
        last = torch.searchsorted(self.taken, (tasks + 1) * self.M)
        count = last - first  # B
        row = torch.repeat_interleave(torch.arange(len(tasks)), count)
        start = torch.repeat_interleave(first - (count.cumsum(0) - count), count)
        key = self.taken[start + torch.arange(len(row))]
        out[row, key - tasks[row] * self.M] = -torch.inf
        return out


def keys(tasks: Tensor, workers: Tensor, M: int) -> Tensor:
    """Pairs as sorted distinct numbers."""
    out: Tensor = torch.unique(tasks.long() * M + workers.long())
    return out
