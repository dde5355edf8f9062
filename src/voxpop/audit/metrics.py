"""Krippendorff's alpha for labels that are names, ranks or numbers, as sums over tasks.

[Kr11] Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part C (missing votes are fine).

A task with n_c votes for class c and m in all has the coincidences o_ck = n_c (n_k - [c = k]) / (m - 1). Summed over
the tasks with two votes or more, n_c = sum_k o_ck, n = sum_c n_c, and with the squared distance d_ck of two classes

    alpha = 1 - (n - 1) sum_ck o_ck d_ck / sum_ck n_c n_k d_ck.

A metric turns groups of tasks into rows of sums, and rows into alpha: rows add up, so a bootstrap only weighs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Metric(Protocol):
    def sums(self, counts: Tensor) -> Tensor:
        """A row for each group of tasks: G,n,K votes for each class in float64 (zeros add nothing) -> G,S."""

    def alpha(self, sums: Tensor) -> Tensor:
        """R,S -> R; NaN where all votes name one class."""


class Nominal:
    """d = 1 for two different classes."""

    def sums(self, counts: Tensor) -> Tensor:
        m = counts.sum(2)  # G,n
        apart = (m.square() - counts.square().sum(2)) / _others(m)  # G,n: sum_ck o_ck d_ck
        return torch.cat([apart.sum(1, keepdim=True), counts.sum(1)], 1)  # G,1+K

    def alpha(self, sums: Tensor) -> Tensor:
        observed, n_c = sums[:, 0], sums[:, 1:]
        return _alpha(observed, n_c.sum(1).square() - n_c.square().sum(1), n_c)


@dataclass(frozen=True)
class Interval:
    """d = (v_c - v_k)^2 for classes that are numbers v."""

    values: Tensor  # K, float64, about zero

    def sums(self, counts: Tensor) -> Tensor:
        m = counts.sum(2)  # G,n
        spread = m * (counts @ self.values.square()) - (counts @ self.values).square()  # G,n
        apart = 2 * spread / _others(m)
        return torch.cat([apart.sum(1, keepdim=True), counts.sum(1)], 1)  # G,1+K

    def alpha(self, sums: Tensor) -> Tensor:
        observed, n_c = sums[:, 0], sums[:, 1:]
        spread = n_c.sum(1) * (n_c @ self.values.square()) - (n_c @ self.values).square()
        return _alpha(observed, 2 * spread, n_c)


@dataclass(frozen=True)
class Ordinal:
    """d = (r_c - r_k)^2 for mid-ranks r: what is printed, sum_{g=c..k} n_g - (n_c + n_k) / 2, is r_k - r_c."""

    order: Tensor  # K: the classes, ascending

    def sums(self, counts: Tensor) -> Tensor:
        counts = counts[:, :, self.order]
        weighted = counts / _others(counts.sum(2))[:, :, None]  # G,n,K
        together = weighted.transpose(1, 2) @ counts - torch.diag_embed(weighted.sum(1))  # G,K,K: o
        return together.flatten(1)

    def alpha(self, sums: Tensor) -> Tensor:
        K = self.order.numel()
        together = sums.view(-1, K, K)  # R,K,K
        n_c = together.sum(2)  # R,K
        rank = n_c.cumsum(1) - n_c / 2 - n_c.sum(1, keepdim=True) / 2  # R,K: their mean over the votes is zero
        squares = (n_c * rank.square()).sum(1)  # R
        crossed = torch.einsum("rc,rck,rk->r", rank, together, rank)
        return _alpha(2 * (squares - crossed), 2 * n_c.sum(1) * squares, n_c)


def _others(m: Tensor) -> Tensor:
    """m - 1, and 1 for a task without votes."""
    return (m - 1).clamp_min(1)


def _alpha(observed: Tensor, expected: Tensor, n_c: Tensor) -> Tensor:
    varied = (n_c > 0).sum(1) > 1  # by chance some votes would differ
    return torch.where(varied, 1 - (n_c.sum(1) - 1) * observed / expected, torch.nan)
