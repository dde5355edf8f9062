"""One confusion matrix per worker, as a point: maximum likelihood, or maximum a posteriori."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Stats, TableChannel, Theta
from voxpop.numerics.simplex import normalise


@dataclass(frozen=True, eq=False)
class Confusion(TableChannel):
    """p(label | truth) = Lambda[worker, truth, label], each row with a Dirichlet prior of 1 + ``pseudo`` counts."""

    pseudo: Tensor | float = 0.0  # a number, or M,K,K as [worker, label, truth]

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        counts = stats["counts"] + self.pseudo  # M,K,K
        return self.at(normalise(counts.transpose(1, 2)))

    @staticmethod
    def at(table: Tensor) -> Theta:
        """The parameters that are this table M,K,K as [worker, truth, label]."""
        return {"log": table.double().log().transpose(1, 2).float().contiguous()}

    def penalty(self, theta: Theta) -> Tensor:
        pseudo = torch.as_tensor(self.pseudo, dtype=torch.float64)
        return torch.where(pseudo > 0, pseudo * theta["log"].double(), 0.0).sum()
