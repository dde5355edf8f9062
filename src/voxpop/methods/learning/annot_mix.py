"""Herde, Lührs, Huseljic & Sick (2024), "Annot-Mix: learning with noisy class labels from multiple annotators via a
mixup extension".

Two votes (x, worker, label) are mixed with shares t and 1 - t: the rows, the workers' weights, the labels. All votes of
a task share a partner, so that the network runs once for each task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from voxpop.learn.crowd import Confusions, Mixture
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective, Parcel
from voxpop.methods.learning.descent import Counted
from voxpop.options import at_least, option
from voxpop.votes import Batch


class Mixed(Mixture):
    """CCEM on mixed votes."""

    def __init__(self, network: nn.Module, crowd: Confusions, data: Data, *, alpha: float, **common: Any) -> None:
        super().__init__(network, crowd, data, **common)
        self.alpha = alpha

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        """Known truths are not mixed."""
        loss = self.loss(x, parcel.batch)
        return loss if parcel.gold is None else loss + self.errors(self.logp(x), parcel.gold)

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        if self.alpha == 0 or batch.V == 0:
            return super().loss(x, batch)
        partner = torch.randint(batch.V, (batch.B,), device=batch.device)  # B: a vote for each task
        share = torch.distributions.Beta(self.alpha, self.alpha).sample((batch.B,)).to(x)  # B
        return self.mixed(x, batch, partner, share)

    def mixed(self, x: Tensor, batch: Batch, partner: Tensor, share: Tensor) -> Tensor:
        """The loss where each task is mixed with this vote's task, in these shares."""
        task = batch.task.long()
        wide = share.view(-1, *[1] * (x.dim() - 1))
        logp = self.logp(wide * x + (1 - wide) * x[task[partner]])[task]  # V,K
        t = share[task].to(logp.dtype)  # V
        other = partner[task]  # V: the vote that each vote is mixed with
        who, place = batch.by_whom
        weights = self.crowd.of(who)
        theirs, ours = weights.index_select(1, place[other]), weights.index_select(1, place)
        table = torch.lerp(theirs, ours, t[:, None]).log_softmax(0)  # K,V,K: of the mixed worker
        said = torch.logsumexp(table + logp, 2).t()  # V,K: log p(label)
        labels = torch.stack([batch.label, batch.label[other]], 1).long()
        ours, theirs = said.gather(1, labels).unbind(1)
        return self.per_vote(-(t * ours + (1 - t) * theirs), batch)


@dataclass(repr=False, eq=False)
class AnnotMix(Counted):
    """Confusion matrices and the network, trained on mixtures of two votes."""

    alpha: float = option(1.0, at_least(0), "shares are drawn from Beta(alpha, alpha); 0: nothing is mixed")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        return Mixed(net, self.confusions(data), data, alpha=self.alpha, **self.common)
