"""Natural-gradient stochastic variational inference: Dirichlet posteriors that follow mini-batches.

Hoffman, Blei, Wang, Paisley (2013), Stochastic variational inference; Li, Huang, Chen (paper 000), eqs. 16 to 18.
The natural gradient of a Dirichlet is prior + expected counts - posterior, so a step of size r is

    posterior <- (1 - r) posterior + r (prior + N/B counts of the batch)

which with r = 1 and the whole data is the conjugate update. A step touches only the workers of its batch: what is
kept are sums without the prior, as ``scale * sums``, and the (1 - r) of everybody else is in the scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from voxpop.channels.dirichlet import posterior
from voxpop.numerics import dirichlet
from voxpop.votes import Batch

SMALLEST = 1e-6  # the scale is brought back to one before float64 would lose anything


@dataclass
class Naturals:
    """q(Lambda[worker, truth, :]) = Dir(prior + scale * sums), q(pi) = Dir(alpha + classes). ``step`` changes it."""

    prior: Tensor  # K,K as [label, truth], float64
    alpha: float
    sums: Tensor  # M*K,K: row worker * K + label, a column for each truth; float64
    totals: Tensor  # M,K: the sums over labels
    classes: Tensor  # K
    scale: float = 1.0

    @classmethod
    def at_prior(cls, workers: int, prior: Tensor, alpha: float) -> Naturals:
        """No votes seen yet."""
        K = len(prior)
        zeros = torch.zeros(workers * K, K, dtype=torch.float64)
        return cls(prior.double(), alpha, zeros, zeros.new_zeros(workers, K), zeros.new_zeros(K))

    def to(self, device: torch.device) -> Naturals:
        return self if self.sums.device == device else self.moved(lambda tensor: tensor.to(device))

    def moved(self, move: Callable[[Tensor], Tensor]) -> Naturals:
        prior, sums, totals, classes = map(move, (self.prior, self.sums, self.totals, self.classes))
        return replace(self, prior=prior, sums=sums, totals=totals, classes=classes)

    def step(self, batch: Batch, belief: Tensor, rate: float, share: float) -> None:
        """Eqs. 17, 18 in place: a step of size ``rate`` along the natural gradient, from the belief in a batch (B,K)
        that is ``share`` = B/N of the tasks."""
        belief = belief.double()
        gain = rate / share
        self.classes = (1 - rate) * self.classes + gain * belief.sum(0)
        self.scale *= 1 - rate
        if self.scale < SMALLEST:
            self._rescale()
        said = belief[batch.task.long()] * (gain / self.scale)  # V,K: eq. 18, each vote's belief beside its label
        self.sums.index_add_(0, batch.pair.long(), said)
        self.totals.index_add_(0, batch.worker.long(), said)

    def _rescale(self) -> None:
        self.sums *= self.scale
        self.totals *= self.scale
        self.scale = 1.0

    # -- what it knows ----------------------------------------------------------------------------

    def evidence(self, batch: Batch) -> Tensor:
        """Sum over the votes of each task of E[log Lambda[worker, truth, label]], the last term of eq. 14: B,K."""
        if len(self.sums) <= batch.V:  # the whole table is less work
            return batch.by_task.sum(posterior(self.of_workers)["log"].flatten(0, 1))
        own, rows = self._of_votes(batch)
        return batch.over_tasks(torch.digamma(own) - torch.digamma(rows)).float()

    def likelihood(self, batch: Batch) -> Tensor:
        """E[Lambda[worker, truth, label]] of each vote: V,K."""
        own, rows = self._of_votes(batch)
        return (own / rows).float()

    def _of_votes(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The parameter of each vote's label under each truth, and the sum of its row: V,K each."""
        label, worker = batch.label.long(), batch.worker.long()
        own = self.prior[label] + self.scale * self.sums[batch.pair.long()]
        return own, self.prior.sum(0) + self.scale * self.totals[worker]

    @property
    def of_classes(self) -> Tensor:
        """Parameters of q(pi): K."""
        return self.classes + self.alpha

    def log_classes(self) -> Tensor:
        """E[log pi], eq. 19: K."""
        return dirichlet.expected_log(self.of_classes).float()

    @property
    def of_workers(self) -> Tensor:
        """Parameters of q(Lambda): M,K,K as [worker, label, truth]."""
        K = len(self.prior)
        return self.prior + self.scale * self.sums.view(-1, K, K)

    def classes_kl(self) -> float:
        """KL(q(pi) || p(pi))."""
        return float(dirichlet.kl(self.of_classes, torch.full_like(self.of_classes, self.alpha)))
