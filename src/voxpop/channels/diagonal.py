"""Right with some probability, otherwise any wrong label alike: one coin per worker, or one per worker and class.

Nothing of size K x K is made, so a thousand classes and many workers fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Channel, Stats, Theta, table_fits
from voxpop.numerics.segments import scatter_sum, segment_sum
from voxpop.votes import Batch


@dataclass(frozen=True, eq=False)
class Diagonal(Channel):
    """p(label | truth) = right[worker, truth] if label = truth else (1 - right) / (K - 1), with a Beta(1 + a, 1 + b) prior."""

    classes: int
    one_coin: bool  # the same chance for every truth
    pseudo_right: float = 0.0
    pseudo_wrong: float = 0.0

    def loglik(self, batch: Batch, theta: Theta) -> Tensor:
        wrong = theta["log_wrong"][batch.worker.long()].expand(-1, batch.K).clone()  # V,K
        own = batch.label[:, None].long()
        right = theta["log_right"].expand(-1, batch.K)[batch.worker.long(), batch.label.long()]
        return wrong.scatter_(1, own, right[:, None])

    def evidence(self, batch: Batch, theta: Theta) -> Tensor:
        base = batch.workers_by_task.sum(theta["log_wrong"])  # B,1 or B,K
        gain = (theta["log_right"] - theta["log_wrong"]).expand(-1, batch.K)  # M,K
        own = gain[batch.worker.long(), batch.label.long()]  # V
        out = base.expand(-1, batch.K).reshape(-1).clone()
        return out.index_add_(0, batch.cell, own).view(batch.B, batch.K)

    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        hit = belief.reshape(-1)[batch.cell]  # V
        if self.one_coin:
            right = scatter_sum(hit, batch.worker, batch.M)[:, None]  # M,1
            total = torch.bincount(batch.worker, minlength=batch.M).double()[:, None]
            return {"right": right, "total": total}
        pair = scatter_sum(hit, batch.pair, batch.M * batch.K).view(batch.M, batch.K)
        total = segment_sum_of_rows(belief, batch)
        return {"right": pair, "total": total}  # M,K

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        right = stats["right"] + self.pseudo_right
        wrong = (stats["total"] - stats["right"]).clamp_min(0) + self.pseudo_wrong
        mass = right + wrong
        p = torch.where(mass > 0, right / mass.clamp_min(1e-300), 1 / self.classes)
        return self.at(p)

    def at(self, p: Tensor) -> Theta:
        """The parameters of these chances of being right: M,1 or M,K."""
        p = p.double()
        spread = torch.log1p(-p) - torch.log(torch.tensor(max(self.classes - 1, 1), dtype=torch.float64))
        return {"log_right": p.log().float(), "log_wrong": spread.float(), "right": p}

    def penalty(self, theta: Theta) -> Tensor:
        right = theta["right"]
        a = self.pseudo_right * right.log() if self.pseudo_right else torch.zeros_like(right)
        b = self.pseudo_wrong * torch.log1p(-right) if self.pseudo_wrong else torch.zeros_like(right)
        return (a + b).sum()

    def table(self, theta: Theta) -> Tensor | None:
        M, K = theta["right"].shape[0], self.classes
        if not table_fits(M, K):
            return None
        right = theta["right"].float().expand(M, K)  # M,K
        out = ((1 - right) / max(K - 1, 1))[:, :, None].repeat(1, 1, K)
        return out.diagonal_scatter(right, dim1=1, dim2=2)  # M,K,K


def segment_sum_of_rows(belief: Tensor, batch: Batch) -> Tensor:
    """Sum over each worker's votes of the belief about their tasks: M,K, float64."""
    from voxpop.numerics.segments import Segments

    index = batch.task[batch.order_by_worker]
    return Segments(index.long(), batch.worker_offsets).sum_exact(belief)


__all__ = ["Diagonal", "segment_sum"]
