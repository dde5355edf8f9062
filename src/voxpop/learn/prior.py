"""A classifier's predictions as the prior on the truths: to the engines a prior of one row a task."""

from __future__ import annotations

import torch
from torch import Tensor

from voxpop.priors.classes import ClassPrior, Pi


class NetworkPrior(ClassPrior):
    """``pi["log"]`` is log p(truth | x), B,K. The engines keep it: the network itself is trained elsewhere."""

    def logp(self, pi: Pi) -> Tensor:
        return pi["log"]

    def stats(self, belief: Tensor) -> Tensor:
        return belief.new_zeros(0)

    def update(self, totals: Tensor, pi: Pi | None) -> Pi:
        assert pi is not None, "a network's predictions are given, not found from the belief"
        return pi

    def penalty(self, pi: Pi) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device=pi["log"].device)


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
