"""Tanno et al. (2019), "Learning from noisy labels by regularized estimation of annotator confusion".

With ``rank`` the confusion depends on the item as well: Zhang et al. (2020), "Disentangling human error from ground
truth in segmentation of medical images" (paper 003). With ``log`` the form that paper 001 derives from DeepMF (eq. 35).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from voxpop.learn.crowd import Confusions, Mixture
from voxpop.learn.data import Data
from voxpop.learn.fused import foretold, picked
from voxpop.learn.learner import Variants
from voxpop.learn.objective import Objective, per_task
from voxpop.learn.parts import parts_of
from voxpop.methods.learning.descent import Counted, weights_to_try
from voxpop.options import at_least, flag, option, optional, whole
from voxpop.votes import Batch


class ByItem(nn.Module):
    """What an item adds to a worker's weights: some matrices made of its features, as much as moves this worker."""

    def __init__(self, width: int, workers: int, classes: int, rank: int) -> None:
        super().__init__()
        self.classes = classes
        self.scale = nn.LayerNorm(width, elementwise_affine=False)
        self.matrices = nn.Linear(width, rank * classes * classes)
        nn.init.zeros_(self.matrices.weight)
        nn.init.zeros_(self.matrices.bias)
        self.moved = nn.Parameter(1 + 0.1 * torch.randn(workers, rank))  # M,R

    def forward(self, features: Tensor) -> Tensor:
        """The matrices of some items: B,R,K,K."""
        made: Tensor = self.matrices(self.scale(features.detach()))
        return made.view(len(made), -1, self.classes, self.classes)

    def moves(self, made: Tensor, batch: Batch) -> Tensor:
        """What they add to the weights of each vote's worker: K,V,K."""
        return torch.einsum("vr,vrkl->lvk", self.moved[batch.worker.long()], made[batch.task.long()])


class Traced(Mixture):
    """The loss of CCEM, and ``weight`` times the trace of the average confusion, which is to be small."""

    def __init__(
        self, network: nn.Module, crowd: Confusions, data: Data, *, weight: float, log: bool, rank: int, **common: Any
    ) -> None:
        super().__init__(network, crowd, data, **common)
        self.weight, self.log = weight, log
        self.parts = parts_of(network, data.votes.K)
        self.by_item = ByItem(self.parts.width, data.votes.M, data.votes.K, rank) if rank else None

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        made = self._made(x)
        weights, place = self._weights(made, batch)
        given = picked(weights, place, batch)  # V,K
        if self.log:
            fitted = (logp.exp()[batch.task.long()] * given).sum(1)  # V; paper 001, eq. 34
        else:
            fitted = foretold(logp, given, batch)
        loss = self.per_vote(-fitted, batch) + self.weight * self._trace(weights, place, batch)
        if made is None:
            return loss
        # an item has the prior that a worker has, or its features would explain its votes without any truth
        return loss + per_task(self.pull / 2 * made.square().sum((1, 2, 3)), batch)

    def _trace(self, weights: Tensor, place: Tensor, batch: Batch) -> Tensor:
        if self.log:  # paper 001, eq. 35: weight is 1 - alpha_kk, in votes
            logs = weights.log_softmax(0).diagonal(dim1=0, dim2=2).sum(1)  # U: sum of log A[k, k]
            return self.workers.active / max(self.votes, 1) * self.workers.mean(logs[place], batch)
        right = weights.softmax(0).diagonal(dim1=0, dim2=2)  # U,K: A[k, k]
        return self.workers.mean(right.sum(1)[place], batch)

    def _made(self, x: Tensor) -> Tensor | None:
        return None if self.by_item is None else self.by_item(self.parts.body(x))

    def _weights(self, made: Tensor | None, batch: Batch) -> tuple[Tensor, Tensor]:
        """Some free weights, K,U,K, and which of them are each vote's: V."""
        who, place = batch.by_whom
        weights = self.crowd.of(who)
        if made is None or self.by_item is None:
            return weights, place
        moved = weights.index_select(1, place) + self.by_item.moves(made, batch)
        return moved, torch.arange(batch.V, device=batch.device)

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return picked(*self._weights(self._made(x), batch), batch)

    def log_table(self) -> Tensor | None:
        return super().log_table() if self.by_item is None else None


@dataclass(repr=False, eq=False)
class TraceReg(Counted):
    """Confusion matrices with as small a trace on average as explains the votes; they may depend on the item."""

    weight: float | None = option(None, optional(at_least(0)), "of the trace; none: held-out votes decide")
    rank: int = option(0, whole(0), "matrices that an item's features move a worker by; 0: items are alike")
    log: bool = option(False, flag(), "the logarithm inside mean and trace (paper 001, eq. 35)")

    def variants(self, data: Data) -> Variants:
        return weights_to_try("weight", self.weight, (0.0, 0.01, 0.1), "weight of the trace")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        settings: Mapping[str, Any] = {"weight": self.weight or 0.0, "log": self.log, "rank": self.rank}
        return Traced(net, self.confusions(data), data, **settings, **self.common)
