"""Confusion tables [worker, truth, label] of many sorts of workers; rows sum to one. All draw from a generator."""

from __future__ import annotations

import torch
from torch import Tensor

from voxpop.numerics import dirichlet


def from_accuracy(right: Tensor) -> Tensor:
    """The chance of being right for each worker and truth (M,K); the wrong labels share the rest evenly."""
    K = right.shape[1]
    tables = ((1 - right) / (K - 1))[:, :, None].repeat(1, 1, K)
    tables.diagonal(dim1=1, dim2=2).copy_(right)
    return tables  # M,K,K


def from_f1(score: Tensor, prior: Tensor) -> Tensor:
    """Workers (M) whose precision and recall of the second of two classes are both their score; else their accuracy."""
    right = score[:, None].repeat(1, prior.numel())  # M,K
    if prior.numel() == 2:
        right[:, 0] = 1 - (prior[1] * (1 - score) / prior[0].clamp_min(1e-6)).clamp_max(1)  # as many false as missed
    return from_accuracy(right)


def one_coin(M: int, K: int, alpha: tuple[float, float], generator: torch.Generator) -> Tensor:
    """One accuracy a worker, from Beta(right, wrong)."""
    return from_accuracy(_beta((M, 1), alpha, generator).expand(M, K))


def two_coin(M: int, K: int, alpha: tuple[float, float], generator: torch.Generator) -> Tensor:
    """One accuracy for each worker and truth, from Beta(right, wrong)."""
    return from_accuracy(_beta((M, K), alpha, generator))


def dirichlet_rows(M: int, K: int, alpha: tuple[float, float], generator: torch.Generator) -> Tensor:
    """Each row from a Dirichlet: ``right`` for the true label, and the wrong ones share ``wrong``."""
    right, wrong = alpha
    parameters = torch.full((K, K), wrong / (K - 1)).fill_diagonal_(right)
    return dirichlet.sample(parameters.expand(M, K, K), generator)


def hammers(M: int, K: int) -> Tensor:
    """Always right."""
    return torch.eye(K).repeat(M, 1, 1)


def uniform_spammers(M: int, K: int) -> Tensor:
    """Any label, whatever the truth."""
    return torch.full((M, K, K), 1 / K)


def constant_spammers(label: Tensor, K: int) -> Tensor:
    """Always the same label: one for each worker (M)."""
    return torch.eye(K)[label][:, None, :].repeat(1, K, 1)


def marginal_spammers(M: int, prior: Tensor) -> Tensor:
    """A random label that follows the class frequencies: hard to tell from a worker by its labels alone."""
    return prior.float().expand(M, prior.numel(), -1).clone()


def adversaries(M: int, K: int, right: float) -> Tensor:
    """Right with this chance; otherwise all of them say the same wrong label, the next one."""
    lie = torch.eye(K).roll(1, 1)
    return (right * torch.eye(K) + (1 - right) * lie).repeat(M, 1, 1)


def class_experts(M: int, K: int, classes: int, right: float, generator: torch.Generator) -> Tensor:
    """Right with this chance in some classes, drawn for each worker; a guess in the others."""
    knows = torch.rand(M, K, generator=generator).argsort(1) < classes
    return from_accuracy(torch.where(knows, right, 1 / K))


def biased(tables: Tensor, favourite: Tensor, bias: float) -> Tensor:
    """Workers who say their favourite label (M) with the chance ``bias`` instead of what they think."""
    return (1 - bias) * tables + bias * constant_spammers(favourite, tables.shape[1])


def _beta(shape: tuple[int, ...], alpha: tuple[float, float], generator: torch.Generator) -> Tensor:
    return dirichlet.sample(torch.tensor(alpha).expand(*shape, 2), generator)[..., 0]
