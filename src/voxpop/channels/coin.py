"""Right with some probability, otherwise any wrong label alike: one coin per worker, or one per worker and class.

The chance is a point (maximum a posteriori under a Beta prior) or a Beta distribution (mean-field VB).
Nothing of size K x K is made, so a thousand classes and many workers fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Stats, Theta, table_fits
from voxpop.channels.own_label import add_own, own_belief
from voxpop.channels.tabulated import TabulatedChannel
from voxpop.numerics import dirichlet
from voxpop.numerics.segments import Segments, scatter_sum
from voxpop.votes import Batch


@dataclass(frozen=True, eq=False)
class Coin(TabulatedChannel):
    """p(label | truth) = right[worker, truth] if they are equal, else (1 - right) / (K - 1); right ~ Beta(a, b)."""

    classes: int  # K
    shared: bool  # one coin: the same chance for every truth
    a: float = 1.0
    b: float = 1.0
    variational: bool = False

    def loglik(self, batch: Batch, theta: Theta) -> Tensor:
        worker, label = batch.worker.long(), batch.label.long()
        out = theta["log_wrong"].expand(-1, batch.K)[worker]  # V,K
        right = theta["log_right"].expand(-1, batch.K)[worker, label]  # V
        return out.scatter(1, label[:, None], right[:, None])

    def likelihood(self, batch: Batch, theta: Theta) -> Tensor:
        return self.loglik(batch, self.at(theta["right"])).exp()

    def evidence(self, batch: Batch, theta: Theta) -> Tensor:
        base = batch.workers_by_task.sum(theta["log_wrong"])  # B,1 or B,K
        gain = (theta["log_right"] - theta["log_wrong"]).expand(-1, batch.K)  # M,K
        return add_own(base.expand(-1, batch.K), batch, gain[batch.worker.long(), batch.label.long()])

    def log_table(self, theta: Theta) -> Tensor:
        K = self.classes
        right, wrong = theta["log_right"].expand(-1, K), theta["log_wrong"].expand(-1, K)  # M,K
        return wrong[:, None, :].repeat(1, K, 1).diagonal_scatter(right, dim1=1, dim2=2)

    def stats_of_counts(self, batch: Batch, counts: Tensor) -> Stats:
        right, total = counts.diagonal(dim1=1, dim2=2), counts.sum(1)  # M,K
        if self.shared:
            right, total = right.sum(1, keepdim=True), batch.worker_offsets.diff().double()[:, None]  # M,1
        return {"right": right, "wrong": (total - right).clamp_min(0)}

    def stats_by_vote(self, batch: Batch, belief: Tensor) -> Stats:
        hit = own_belief(batch, belief)  # V
        if self.shared:
            right = scatter_sum(hit, batch.worker, batch.M)[:, None]  # M,1
            total = batch.worker_offsets.diff().double()[:, None]  # M,1
        else:
            right = scatter_sum(hit, batch.pair, batch.M * batch.K).view(batch.M, batch.K)  # M,K
            tasks = batch.task[batch.order_by_worker]
            total = Segments(tasks.long(), batch.worker_offsets).sum_exact(belief)  # M,K
        return {"right": right, "wrong": (total - right).clamp_min(0)}

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        right, wrong = stats["right"] + self.a, stats["wrong"] + self.b
        if self.variational:
            both = torch.stack([right, wrong], -1)  # M,1|K,2
            log_right, log_wrong = dirichlet.expected_log(both).unbind(-1)
            return self._theta(right / (right + wrong), log_right, log_wrong) | {"posterior": both}
        right, wrong = right - 1, wrong - 1  # the mode of the Beta
        mass = right + wrong
        return self.at(torch.where(mass > 0, right / mass.clamp_min(1e-300), 1 / self.classes))

    def draw(self, stats: Stats, theta: Theta, rng: torch.Generator) -> Theta:
        both = torch.stack([stats["right"] + self.a, stats["wrong"] + self.b], -1)
        log_right, log_wrong = dirichlet.log_sample(both, rng).unbind(-1)
        return self._theta(log_right.exp(), log_right, log_wrong)

    def at(self, right: Tensor) -> Theta:
        """The parameters of these chances of being right: M,1 or M,K."""
        right = right.double()
        return self._theta(right, right.log(), torch.log1p(-right))

    def _theta(self, right: Tensor, log_right: Tensor, log_wrong: Tensor) -> Theta:
        if self.classes == 1:  # nothing can be wrong
            log_right = torch.zeros_like(log_right)
        each = log_wrong - math.log(max(self.classes - 1, 1))
        return {"right": right, "log_right": log_right.float(), "log_wrong": each.float()}

    def penalty(self, theta: Theta) -> Tensor:
        right = theta["right"]
        if self.variational:
            prior = torch.tensor([self.a, self.b], dtype=torch.float64, device=right.device)
            return -dirichlet.kl(theta["posterior"], prior.expand_as(theta["posterior"])).sum()
        a = (self.a - 1) * right.log() if self.a != 1 else 0.0 * right
        b = (self.b - 1) * torch.log1p(-right) if self.b != 1 else 0.0 * right
        return (a + b).sum()

    def table(self, theta: Theta) -> Tensor | None:
        return coin_table(theta["right"], self.classes)


def coin_table(right: Tensor, classes: int) -> Tensor | None:
    """Confusion matrices M,K,K of these chances of being right (M,1 or M,K), where they fit."""
    M = right.shape[0]
    if not table_fits(M, classes):
        return None
    right = right.float().expand(M, classes) if classes > 1 else right.new_ones(M, 1).float()
    out = ((1 - right) / max(classes - 1, 1))[:, :, None].repeat(1, 1, classes)
    return out.diagonal_scatter(right, dim1=1, dim2=2)
