"""Priors on the confusion matrix of a worker, by name, by prototypes or by a function that draws them.

``alpha`` = (right, wrong) as in Dir(2, 1) of paper 001; for K > 2 the K - 1 wrong labels share the wrong part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Channel
from voxpop.channels.coin import Coin, coin_table
from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.channels.prototypes import Prototypes
from voxpop.errors import BadOption, unknown
from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator

Draw = Callable[[int, int], Tensor]  # (S, seed) -> S,K,K
NAMES = ("one-coin", "two-coin", "dirichlet")


@dataclass(frozen=True, eq=False)
class WorkerPrior:
    """p(Lambda), and the channel that mean field makes of it."""

    kind: str | Tensor | Draw
    classes: int  # K
    right: float = 2.0
    wrong: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kind, str) and self.kind not in NAMES:
            raise unknown("workers_prior", self.kind, NAMES)

    @property
    def conjugate(self) -> bool:
        return isinstance(self.kind, str)

    def mean_field(self, samples: int, seed: int) -> Channel:
        """The channel whose VB update is the mean field of this prior."""
        if not isinstance(self.kind, str):
            return Prototypes(self.draw(samples, seed))
        if self.kind == "dirichlet":
            return DirichletConfusion(prior_rows(self.classes, self.right, self.wrong))
        return Coin(self.classes, self.kind == "one-coin", self.right, self.wrong, variational=True)

    def draw(self, samples: int, seed: int) -> Tensor:
        """S matrices S,K,K as [sample, truth, label]: draws of the prior, or all of its prototypes."""
        K = self.classes
        if isinstance(self.kind, str):
            rng = generator(seed, "workers prior")
            if self.kind == "dirichlet":
                rows = prior_rows(K, self.right, self.wrong).expand(samples, K, K)
                return dirichlet.sample(rows.contiguous(), rng).float()
            shape = (samples, 1 if self.kind == "one-coin" else K, 2)
            chance = dirichlet.sample(torch.tensor([self.right, self.wrong], dtype=torch.float64).expand(shape), rng)
            table = coin_table(chance[..., 0], K)
            assert table is not None
            return table
        return checked_tables(self.kind(samples, seed) if callable(self.kind) else self.kind, K)


def checked_tables(table: Tensor, classes: int) -> Tensor:
    """Prototypes must be S,K,K and their rows on the simplex."""
    try:
        table = torch.as_tensor(table, dtype=torch.float32)
    except (TypeError, ValueError, RuntimeError):
        raise BadOption(
            f"workers_prior is {table!r}; give one of {', '.join(NAMES)}, numbers S,K,K, or a callable"
        ) from None
    if table.dim() != 3 or tuple(table.shape[1:]) != (classes, classes):
        raise BadOption(
            f"workers_prior has the shape {tuple(table.shape)}; give S,{classes},{classes} as [sample, truth, label]"
        )
    if bool((table < 0).any()) or not torch.allclose(table.sum(2), torch.ones(()), atol=1e-4):
        raise BadOption("workers_prior: each row [sample, truth, :] must be non-negative and sum to 1")
    return table
