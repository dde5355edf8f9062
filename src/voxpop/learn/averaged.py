"""Several networks of one method, from different draws, averaged: less depends on luck, and doubt is seen.

Lakshminarayanan, Pritzel, Blundell (2017), "Simple and scalable predictive uncertainty estimation using deep
ensembles". Each member learns its own network and its own crowd; what is averaged are probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from voxpop.learn.dropout import mean_of
from voxpop.learn.objective import Objective
from voxpop.votes import Batch


class Average(nn.Module):
    """Rows in, the log of the members' mean probability of each class out."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        logs = torch.stack([network(x).float().log_softmax(1) for network in self.networks])  # E,B,K
        return mean_of(logs)


class Averaged(Objective):
    """Trained objectives as one. It answers, and is kept; it is not trained any more."""

    def __init__(self, members: Sequence[Objective]) -> None:
        super().__init__(Average([member.classifier() for member in members]))
        self.each = tuple(members)
        self.members = nn.ModuleList(members)

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        raise NotImplementedError("the members were trained one by one")

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return mean_of(torch.stack([member.given(x, batch) for member in self.each]))

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        return torch.stack([member.combine(x, batch, prior) for member in self.each]).mean(0)

    def prior_of(self, x: Tensor) -> Tensor:
        return mean_of(torch.stack([member.prior_of(x).log_softmax(1) for member in self.each]))

    def table(self) -> Tensor | None:
        return _mean([member.table() for member in self.each])

    def believed(self) -> Tensor | None:
        return _mean([member.believed() for member in self.each])

    # -- kept and brought back ----------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        return {f"{number}.{name}": t for number, m in enumerate(self.each) for name, t in m.state().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        for number, member in enumerate(self.each):
            start = f"{number}."
            member.restore({name.removeprefix(start): t for name, t in state.items() if name.startswith(start)})


def _mean(each: Sequence[Tensor | None]) -> Tensor | None:
    known = [tensor for tensor in each if tensor is not None]
    return torch.stack(known).mean(0) if len(known) == len(each) else None
