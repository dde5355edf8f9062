"""One confusion matrix per worker, as a distribution: a Dirichlet for each row, and what VB needs of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Stats, TableChannel, Theta
from voxpop.numerics import dirichlet


def prior_rows(classes: int, right: float, wrong: float) -> Tensor:
    """Parameters K,K of the rows' Dirichlets: ``right`` on the diagonal, ``wrong`` shared by the other labels."""
    rest = wrong / max(classes - 1, 1)
    return torch.full((classes, classes), rest, dtype=torch.float64).fill_diagonal_(right)


@dataclass(frozen=True, eq=False)
class DirichletConfusion(TableChannel):
    """q(Lambda[worker, truth, :]) = Dir(alpha + expected counts); ``log`` holds E[log Lambda]."""

    alpha: Tensor  # K,K (all workers alike) or M,K,K, as [(worker,) label, truth]

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        return posterior(self.alpha.to(stats["counts"].device) + stats["counts"])

    def penalty(self, theta: Theta) -> Tensor:
        return -kl_of_rows(theta["posterior"], self.alpha.to(theta["posterior"].device))

    def draw(self, stats: Stats, theta: Theta, rng: torch.Generator) -> Theta:
        return draw_rows(self.alpha.to(stats["counts"].device) + stats["counts"], rng)


def posterior(alpha: Tensor) -> Theta:
    """Parameters M,K,K as [worker, label, truth], and E[log] of each entry along the labels."""
    expected = torch.digamma(alpha) - torch.digamma(alpha.sum(1, keepdim=True))
    return {"posterior": alpha, "log": expected.float()}


def kl_of_rows(q: Tensor, p: Tensor) -> Tensor:
    """Sum of KL(q || p) over workers and truths, the labels along axis 1."""
    return dirichlet.kl(q.transpose(1, 2), p.transpose(-1, -2)).sum()


def draw_rows(alpha: Tensor, rng: torch.Generator) -> Theta:
    """A draw of every row, parameters as for ``posterior``."""
    log = dirichlet.log_sample(alpha.transpose(1, 2).contiguous(), rng)
    return {"log": log.transpose(1, 2).float().contiguous()}
