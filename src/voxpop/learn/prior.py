"""A classifier's predictions as the prior on the truths: to the engines a prior of one row a task."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.priors.classes import ClassPrior, Pi


@dataclass(frozen=True, eq=False)
class NetworkPrior(ClassPrior):
    """log p(truth | x) as the network has it now, B,K; the network itself is trained elsewhere."""

    log: Tensor

    def logp(self, pi: Pi) -> Tensor:
        return self.log

    def stats(self, belief: Tensor) -> Tensor:
        return belief.new_zeros(0)

    def update(self, totals: Tensor, pi: Pi | None) -> Pi:
        return {"log": self.log}

    def penalty(self, pi: Pi) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device=self.log.device)


def clip(p: Tensor, most: float) -> Tensor:
    """Paper 001, section 3.3: no class over ``most``; its excess goes evenly to the classes still below.

    For more than two classes that may lift another class over the limit, so it is repeated; in at most K
    rounds nothing is over. ``most`` must be at least 1 / K.
    """
    K = p.shape[1]
    out = p
    for _ in range(K):
        over = out > most
        if not bool(over.any()):
            break
        excess = torch.where(over, out - most, 0.0).sum(1, keepdim=True)  # B,1
        below = out < most
        room = below.sum(1, keepdim=True).clamp_min(1)
        out = torch.where(over, most, torch.where(below, out + excess / room, out))
    return out
