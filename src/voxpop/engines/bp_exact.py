"""Belief propagation for one coin and two classes, exactly.

Liu, Peng, Ihler (2012), section 3.1: a Beta prior on one coin sees only how many votes were right. The
distribution of that number among a worker's votes is built by convolution, one vote is taken out by
the inverse of its own convolution, from the side on which that is stable. Time: the sum over workers of
their votes squared; memory O(V + M r), r the votes of the busiest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from voxpop.votes import Batch


@dataclass(frozen=True, eq=False)
class OneCoinExact:
    """The factor of a worker with right ~ Beta(a, b), K = 2."""

    batch: Batch
    a: float
    b: float

    def messages(self, incoming: Tensor) -> Tensor:
        """Busy workers and their votes come first, so that those still at work are a prefix."""
        rank, order, many = self._by_busyness  # M, V, M
        label = self.batch.label[order, None].long()
        right = incoming.double()[order].gather(1, label)[:, 0]  # V: p(this vote is right)
        number = self._number_right(right, many)  # M,r+1
        if_right, if_wrong = self._leave_out(number, right, rank[self.batch.worker[order].long()], many)
        own = (if_right / (if_right + if_wrong))[:, None]  # V,1
        out = torch.empty_like(incoming)
        out[order] = torch.cat([1 - own, own], 1).gather(1, torch.cat([1 - label, label], 1)).log().float()
        return out  # V,2

    @cached_property
    def _by_busyness(self) -> tuple[Tensor, Tensor, Tensor]:
        """Rank of each worker (busiest first), the votes in that order, and the number of votes by rank."""
        many = self.batch.worker_offsets.diff()
        workers = torch.argsort(many, descending=True, stable=True)
        rank = torch.empty_like(workers)
        rank[workers] = torch.arange(len(workers), device=workers.device)
        order = torch.argsort(rank[self.batch.worker.long()], stable=True)
        return rank, order, many[workers]

    def _number_right(self, right: Tensor, many: Tensor) -> Tensor:
        """Distribution of the number of right votes of each worker, by rank."""
        longest = int(many.max()) if len(many) else 0
        first = many.cumsum(0) - many  # M: where each worker's votes begin
        number = torch.zeros(len(many), longest + 1, dtype=torch.float64, device=right.device)
        number[:, 0] = 1
        working = _more_than(many, longest)
        for step in range(longest):
            rows = working[step]
            p = right[first[:rows] + step][:, None]  # the step-th vote of each worker still at work
            part = number[:rows, : step + 2].clone()
            number[:rows, : step + 2] = part * (1 - p)
            number[:rows, 1 : step + 2] += part[:, :-1] * p
        return number

    def _leave_out(self, number: Tensor, right: Tensor, worker: Tensor, many: Tensor) -> tuple[Tensor, Tensor]:
        """sum_c P(c others right) E[coin^(c+1) (1-coin)^(r-1-c)], and the same with this vote wrong (c, r-c)."""
        r = many[worker]  # V, descending
        longest = number.shape[1] - 1
        psi = self._psi(many, longest + 1)  # M,r+1
        small = right <= 0.5  # then divide by 1 - right, going up; else by right, going down from r - 1 others
        if_right, if_wrong, others = (torch.zeros_like(right) for _ in range(3))
        working = _more_than(r, longest)
        for step in range(longest):
            v = slice(0, working[step])  # votes whose worker has more than `step` votes
            count = torch.where(small[v], step, r[v] - 1 - step)  # of the other votes, how many are right
            total = number[worker[v], torch.where(small[v], count, count + 1)]
            p, q = torch.where(small[v], right[v], 1 - right[v]), torch.where(small[v], 1 - right[v], right[v])
            others[v] = ((total - p * others[v]) / q).clamp_(0, 1)  # the inverse of total = q others + p others before
            if_right[v] += others[v] * psi[worker[v], count + 1]
            if_wrong[v] += others[v] * psi[worker[v], count]
        return if_right, if_wrong

    def _psi(self, many: Tensor, width: int) -> Tensor:
        """E[coin^c (1 - coin)^(r - c)] of each worker up to a factor, c = 0..r."""
        c = torch.arange(width, dtype=torch.float64, device=many.device)
        left = (many[:, None] - c).clamp_min(0)
        log = torch.lgamma(self.a + c) + torch.lgamma(self.b + left)
        log = torch.where(c <= many[:, None], log, -torch.inf)
        return (log - log.amax(1, keepdim=True)).exp()


def _more_than(descending: Tensor, longest: int) -> list[int]:
    """For each number 0 .. longest - 1, how many entries of a descending list are larger."""
    steps = torch.arange(longest, device=descending.device)
    return (len(descending) - torch.searchsorted(descending.flip(0), steps, right=True)).tolist()
