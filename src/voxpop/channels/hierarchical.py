"""Confusion matrices that are drawn around the crowd's own, with a strength that is learned.

A worker with few votes is judged like the crowd, one with many like himself. Rows of a worker are
Dir(alpha[:, truth]) with alpha shared by all workers: its direction is the crowd's confusion matrix
and its sum the strength of the pooling, one for each truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Stats, TableChannel, Theta
from voxpop.channels.dirichlet import draw_rows, kl_of_rows, posterior


@dataclass(frozen=True, eq=False)
class HierarchicalConfusion(TableChannel):
    """Dirichlet confusion with a learned common prior.

    With q(Lambda) at its optimum, the bound as a function of alpha is the likelihood of a Polya
    distribution with the expected counts; ``rounds`` of Minka's fixed point raise it. ``start`` (K,K)
    is also a weak Gamma prior's mode for alpha: each cell has ``weight`` * (log alpha - alpha / start).
    """

    start: Tensor  # K,K as [label, truth]
    weight: float = 1.0
    rounds: int = 3

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        counts = stats["counts"]  # M,K,K
        alpha = self.start.to(counts.device) if theta is None else theta["crowd"]  # K,K
        for _ in range(self.rounds):
            alpha = self._raise(counts, alpha)
        return {**posterior(alpha + counts), "crowd": alpha}

    def draw(self, stats: Stats, theta: Theta, rng: torch.Generator) -> Theta:
        """The crowd's own parameters follow the sampled counts by one step of the fixed point."""
        crowd = self._raise(stats["counts"], theta["crowd"])
        return draw_rows(crowd + stats["counts"], rng) | {"crowd": crowd}

    def _raise(self, counts: Tensor, alpha: Tensor) -> Tensor:
        """Minka (2000) eq. 55 with a Gamma prior: the bound's tangent in log alpha, solved for alpha."""
        total = alpha.sum(0)  # K
        up = (torch.digamma(alpha + counts) - torch.digamma(alpha)).sum(0)  # K,K
        down = (torch.digamma(total + counts.sum(1)) - torch.digamma(total)).sum(0)  # K
        start = self.start.to(counts.device)
        return (alpha * up + self.weight) / (down + self.weight / start)

    def penalty(self, theta: Theta) -> Tensor:
        crowd = theta["crowd"]
        prior = self.weight * (crowd.log() - crowd / self.start.to(crowd.device))
        return prior.sum() - kl_of_rows(theta["posterior"], crowd)
