"""Guan et al. (2018), "Who said what: modeling individual labelers improves classification": DoctorNet.

Each worker is a head of the network, on a body that they share, trained on the worker's own labels. The classifier is
the weighted average of all heads; the weights are trained so that it foretells the shares of the votes (WDN).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from voxpop.channels.base import belief_counts, require_table
from voxpop.learn.crowd import MATRIX, CrowdObjective, certain
from voxpop.learn.data import Data
from voxpop.learn.loop import predictions
from voxpop.learn.objective import Objective, Parcel, own_rows
from voxpop.learn.parts import Parts, parts_of
from voxpop.methods.learning.descent import Descent
from voxpop.numerics.segments import segment_sum
from voxpop.numerics.simplex import log_rows, normalise
from voxpop.votes import Batch

TOGETHER = 256  # workers that are averaged at a time


class Heads(nn.Module):
    """Each worker's last layer: the network's own, plus what is the worker's. And the weight of each in the average."""

    def __init__(self, workers: int, classes: int, width: int) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.zeros(workers, classes, width + 1))  # M,K,D+1: the last is the bias
        self.say = nn.Parameter(torch.zeros(workers))  # M: log weights

    def log(self, logits: Tensor, features: Tensor, own: Tensor) -> Tensor:
        """log p(label) of some workers for each row, from the network's logits and features: B,U,K."""
        more = torch.einsum("bd,ukd->buk", features, own[..., :-1]) + own[..., -1]
        return log_rows(logits[:, None] + more)


class Average(nn.Module):
    """The classifier: log of the weighted average of all heads."""

    def __init__(self, parts: Parts, heads: Heads) -> None:
        super().__init__()
        self.body, self.head, self.heads = parts.body, parts.head, heads

    def forward(self, x: Tensor) -> Tensor:
        features = self.body(x)
        logits = self.head(features)
        say = self.heads.say.log_softmax(0)
        parts = [
            torch.logsumexp(self.heads.log(logits, features, own) + some[:, None], 1)
            for own, some in zip(torch.split(self.heads.own, TOGETHER), torch.split(say, TOGETHER), strict=True)
        ]
        return torch.logsumexp(torch.stack(parts), 0)  # B,K


class Doctors(CrowdObjective):
    """Cross-entropy of each head with its worker's labels, and of the average with the shares of the votes."""

    crowd: Heads
    counts: Tensor

    def __init__(self, network: nn.Module, data: Data, *, crowd_lr: float, pull: float) -> None:
        super().__init__(network)
        M, K = data.votes.M, data.votes.K
        require_table(M, K, MATRIX)
        self.parts = parts_of(network, K)
        self.crowd, self.crowd_lr, self.pull, self.votes = Heads(M, K, self.parts.width), crowd_lr, pull, data.batch.V
        self.register_buffer("counts", torch.zeros(M, K, K))  # as [worker, label, truth], by the trained classifier

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        """Known truths teach the network's own head."""
        loss = self.loss(x, parcel.batch)
        return loss if parcel.gold is None else loss + self.errors(self.network(x).log_softmax(1), parcel.gold)

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        if batch.V == 0:
            return 0 * self.logp(x).sum()
        who, place = batch.by_whom
        features = self.parts.body(x)
        logits = self.parts.head(features)
        own = self.crowd.own[who]  # U,K,D+1
        said = self._said(logits, features, own[place], batch)
        with torch.no_grad():
            log = self.crowd.log(logits, features, own)  # B,U,K
        say = self.crowd.say[who].log_softmax(0)
        average = torch.logsumexp(log + say[:, None], 1)  # B,K: of the batch's workers
        return self.per_vote(-said, batch) + self.per_vote(-average.flatten()[batch.cell], batch)

    def foretell(self, x: Tensor, batch: Batch) -> Tensor:
        """By each worker's own head: V."""
        features = self.parts.body(x)
        return self._said(self.parts.head(features), features, self.crowd.own[batch.worker.long()], batch)

    def together(self, x: Tensor, batch: Batch) -> Tensor:
        """Heads know of no truth that they share: given x, their labels are independent."""
        return segment_sum(self.foretell(x, batch)[:, None], batch.offsets)[:, 0]

    @staticmethod
    def _said(logits: Tensor, features: Tensor, own: Tensor, batch: Batch) -> Tensor:
        """log p(label) of each vote by its worker's head (V,K,D+1): V."""
        task = batch.task.long()
        more = torch.einsum("vd,vkd->vk", features[task], own[..., :-1]) + own[..., -1]
        log = log_rows(logits[task] + more)  # V,K
        return log.gather(1, batch.label.long()[:, None])[:, 0]

    def classifier(self) -> nn.Module:
        return Average(self.parts, self.crowd)

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return own_rows(self._log(), batch)

    def table(self) -> Tensor | None:
        return self._log().exp().transpose(1, 2)

    def log_table(self) -> Tensor | None:
        return self._log().transpose(1, 2)

    def _log(self) -> Tensor:
        """How often each label went with each class of the classifier: M,K,K as [worker, label, truth]."""
        return normalise((self.counts + 1 / self.counts.shape[1]).transpose(1, 2)).log().transpose(1, 2)

    def remember(self, data: Data) -> None:
        """Count what the trained classifier makes of the data's tasks against their votes."""
        p = predictions(self, data, self.counts.device).exp()
        self.counts.copy_(belief_counts(data.batch.to(self.counts.device), certain(p.log(), data.known).exp()))


@dataclass(repr=False, eq=False)
class DoctorNet(Descent):
    """A head for each worker on one body; the classifier is their average, weighted as foretells the votes best."""

    def objective(self, net: nn.Module, data: Data) -> Objective:
        return Doctors(net, data, **self.common)

    def _train(self, data: Data, epochs: int) -> tuple[Objective, list[Any]]:
        objective, history = super()._train(data, epochs)
        assert isinstance(objective, Doctors)
        objective.remember(data)
        return objective, history
