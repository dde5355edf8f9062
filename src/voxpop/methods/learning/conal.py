"""Chu, Ma & Wang (2021), "Learning from crowds by modeling common confusions": CoNAL.

Noise that everybody shares and noise of one's own: p(label | x) = w p A_common + (1 - w) p A_m, where an auxiliary
network says how much of it is common, w = sigmoid(u_m . v(x)) with both vectors of length one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.learn.crowd import Confusions, Mixture
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective
from voxpop.learn.parts import parts_of
from voxpop.methods.learning.descent import Counted
from voxpop.options import at_least, option, whole
from voxpop.votes import Batch


class TwoLayers(Mixture):
    """Cross-entropy of the two noise layers together, less ``apart`` times the distance between them."""

    def __init__(
        self, network: nn.Module, crowd: Confusions, data: Data, *, apart: float, size: int, **common: Any
    ) -> None:
        super().__init__(network, crowd, data, **common)
        self.apart = apart
        self.parts = parts_of(network, data.votes.K)
        self.shared = nn.Parameter(crowd.common.detach().clone())  # K,1,K as [label, all, truth]
        self.item = nn.Linear(self.parts.width, size)
        self.person = nn.Parameter(torch.randn(data.votes.M, size))  # M,S
        self._last: tuple[Tensor, Tensor] | None = None  # the rows that were asked about last, and their features

    def logp(self, x: Tensor) -> Tensor:
        features = self.parts.body(x)
        self._last = x, features.detach()
        logits: Tensor = self.parts.head(features)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(1)

    def _features(self, x: Tensor) -> Tensor:
        """Those of ``logp`` where it was just asked about these rows: the network runs once."""
        if self._last is None or self._last[0] is not x:
            self.logp(x)
        assert self._last is not None
        return self._last[1]

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        loss = super().of(logp, x, batch)
        if self.apart == 0:
            return loss
        who, place = batch.by_whom
        between = self.crowd.of(who).softmax(0) - self.shared.softmax(0)  # K,U,K
        return loss - self.apart * self.workers.mean(torch.linalg.vector_norm(between, dim=(0, 2))[place], batch)

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        logits = self._common(x, batch)  # V
        shared = self.shared.log_softmax(0)[batch.label.long(), 0]  # V,K
        own = self.crowd.given(batch)
        return torch.logaddexp(F.logsigmoid(logits)[:, None] + shared, F.logsigmoid(-logits)[:, None] + own)

    def _common(self, x: Tensor, batch: Batch) -> Tensor:
        """How much of each vote's noise is common, as a logit: V."""
        item = F.normalize(self.item(self._features(x)), dim=1)[batch.task.long()]  # V,S
        person = F.normalize(self.person[batch.worker.long()], dim=1)  # V,S
        return (item * person).sum(1)

    def learned_by_crowd(self) -> list[nn.Parameter]:
        return [*super().learned_by_crowd(), self.shared, self.person]

    def log_table(self) -> Tensor | None:
        return None  # what a vote says depends on the item

    def table(self) -> Tensor | None:
        """With as much common noise as the middle of all: w = 1/2."""
        return (self.crowd.log().exp() + self.shared.softmax(0)[:, 0].t()).detach() / 2


@dataclass(repr=False, eq=False)
class CoNAL(Counted):
    """A confusion matrix that all workers share and one of each worker's own, mixed by item and worker."""

    apart: float = option(1e-5, at_least(0), "reward for the distance between the common and the own matrices")
    size: int = option(20, whole(1), "of the vectors of items and workers that say what is common")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        settings: dict[str, Any] = {"apart": self.apart, "size": self.size}
        return TwoLayers(net, self.confusions(data), data, **settings, **self.common)
