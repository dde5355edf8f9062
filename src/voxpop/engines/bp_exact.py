"""Belief propagation for one coin and two classes, exactly.

Liu, Peng, Ihler (2012), section 3.1: a Beta prior on one coin sees only how many votes were right. The
distribution of that number among a worker's votes is built by convolution, one vote is taken out by
the inverse of its own convolution, from the side on which that is stable. Time O(V r), r the votes of
the busiest worker; memory O(V + M r).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.numerics.segments import offsets_of
from voxpop.votes import Batch


@dataclass(frozen=True, eq=False)
class OneCoinExact:
    """The factor of a worker with right ~ Beta(a, b), K = 2."""

    batch: Batch
    a: float
    b: float

    def messages(self, incoming: Tensor) -> Tensor:
        batch = self.batch
        order = batch.order_by_worker
        worker = batch.worker.long()  # V
        right = incoming.double().gather(1, batch.label[:, None].long())[:, 0]  # V: p(this vote is right)
        many = batch.worker_offsets.diff()  # M
        place = torch.empty_like(order)
        place[order] = torch.arange(batch.V, device=order.device) - offsets_of(many)[:-1].repeat_interleave(many)
        padded = torch.full(
            (batch.M, int(many.max()) if batch.V else 0), -1.0, dtype=torch.float64, device=incoming.device
        )
        padded[worker, place] = right

        number = self._number_right(padded)  # M,r+1
        if_right, if_wrong = self._leave_out(number, right, worker, many)
        own = if_right / (if_right + if_wrong)  # V
        out = torch.stack([1 - own, own], 1)
        flipped = torch.stack([own, 1 - own], 1)
        return torch.where(batch.label[:, None] == 1, out, flipped).log().float()  # V,2

    def _number_right(self, padded: Tensor) -> Tensor:
        """Distribution of the number of right votes of each worker."""
        M, r = padded.shape
        number = torch.zeros(M, r + 1, dtype=torch.float64, device=padded.device)
        number[:, 0] = 1
        for column in padded.unbind(1):
            p = column.clamp_min(0)[:, None]  # a padded vote is never right: nothing moves
            number = torch.cat([number[:, :1] * (1 - p), number[:, 1:] * (1 - p) + number[:, :-1] * p], 1)
        return number

    def _leave_out(self, number: Tensor, right: Tensor, worker: Tensor, many: Tensor) -> tuple[Tensor, Tensor]:
        """sum_c P(c others right) E[coin^(c+1) (1-coin)^(r-1-c)], and the same with this vote wrong (c, r-c)."""
        r = many[worker]  # V
        psi = self._psi(many, number.shape[1])  # M,r+1
        small = right <= 0.5  # then divide by 1 - right, going up; else by right, going down
        if_right, if_wrong = torch.zeros_like(right), torch.zeros_like(right)
        up, down = torch.zeros_like(right), torch.zeros_like(right)
        steps = number.shape[1] - 1
        for i in range(steps):
            up = torch.where(small, (number[worker, i] - right * up) / (1 - right), 0.0).clamp(0, 1)
            c = (r - 1 - i).clamp_min(0)  # going down from r - 1 others
            down = torch.where(small, 0.0, (number[worker, c + 1] - (1 - right) * down) / right).clamp(0, 1)
            count = torch.where(small, torch.full_like(c, i), c)
            p = torch.where(i < r, torch.where(small, up, down), 0.0)
            if_right += p * psi[worker, count + 1]
            if_wrong += p * psi[worker, count]
        return if_right, if_wrong

    def _psi(self, many: Tensor, width: int) -> Tensor:
        """E[coin^c (1 - coin)^(r - c)] of each worker up to a factor, c = 0..r."""
        c = torch.arange(width, dtype=torch.float64, device=many.device)
        left = (many[:, None] - c).clamp_min(0)
        log = torch.lgamma(self.a + c) + torch.lgamma(self.b + left)
        log = torch.where(c <= many[:, None], log, -torch.inf)
        return (log - log.amax(1, keepdim=True)).exp()
