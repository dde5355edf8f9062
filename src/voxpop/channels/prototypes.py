"""A worker is one of S known confusion matrices, and which one is uncertain: any prior, as draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Stats, TableChannel, Theta


@dataclass(frozen=True, eq=False)
class Prototypes(TableChannel):
    """q(worker is prototype s) in mean field; ``log`` is the expectation of log Lambda under it."""

    tables: Tensor  # S,K,K as [sample, truth, label]

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        weight = self._weight(stats)  # M,S
        log_tables = self._log().to(weight.device)  # S,K*K
        impossible = log_tables == -torch.inf
        expected = weight @ torch.where(impossible, 0.0, log_tables)  # M,K*K
        expected = torch.where(weight @ impossible.double() > 0, -torch.inf, expected)
        return {"log": expected.view_as(stats["counts"]).float(), "weight": weight}

    def draw(self, stats: Stats, theta: Theta, rng: torch.Generator) -> Theta:
        which = torch.multinomial(self._weight(stats), 1, generator=rng)[:, 0]  # M
        log = self._log().to(which.device)[which].view_as(stats["counts"])
        return {"log": log.float()}

    def _weight(self, stats: Stats) -> Tensor:
        """p(worker is prototype s) given expected counts, M,S; one that excludes a vote is out, unless all are."""
        counts = stats["counts"]  # M,K,K as [worker, label, truth]
        flat = counts.reshape(counts.shape[0], -1)  # M,K*K
        log_tables = self._log().to(counts.device)
        impossible = log_tables == -torch.inf
        score = flat @ torch.where(impossible, 0.0, log_tables).t()  # M,S
        score = torch.where(flat @ impossible.double().t() > 1e-9, -torch.inf, score)
        score = torch.where((score == -torch.inf).all(1, keepdim=True), 0.0, score)
        return torch.softmax(score, 1)

    def _log(self) -> Tensor:
        log: Tensor = self.tables.double().log().transpose(1, 2)  # S,K,K as [sample, label, truth]
        return log.reshape(len(log), -1)

    def penalty(self, theta: Theta) -> Tensor:
        weight = theta["weight"]  # minus KL to the uniform prior over prototypes
        entropy: Tensor = torch.special.entr(weight).sum()
        return entropy - weight.shape[0] * math.log(weight.shape[1])

    def table(self, theta: Theta) -> Tensor:
        if "weight" not in theta:
            return theta["log"].exp().transpose(1, 2)
        return torch.einsum("ms,skl->mkl", theta["weight"].float(), self.tables.to(theta["weight"].device))
