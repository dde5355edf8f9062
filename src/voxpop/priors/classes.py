"""Priors on the class of a task that know nothing of the task: uniform, frequencies, Dirichlet.

``logp`` gives K numbers for all rows alike; priors that look at features give B,K.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.numerics import dirichlet
from voxpop.numerics.segments import column_sums
from voxpop.numerics.simplex import normalise

Pi = dict[str, Tensor]  # the parameters of a prior


class ClassPrior(ABC):
    @abstractmethod
    def logp(self, pi: Pi) -> Tensor:
        """log p(truth), K numbers (in VB the expectation)."""

    def stats(self, belief: Tensor) -> Tensor:
        """Expected number of tasks of each class: K, float64."""
        return column_sums(belief)

    @abstractmethod
    def update(self, totals: Tensor, pi: Pi | None) -> Pi:
        """The best parameters given the totals."""

    @abstractmethod
    def penalty(self, pi: Pi) -> Tensor:
        """What the parameters add to the bound."""

    def draw(self, totals: Tensor, rng: torch.Generator) -> Pi:
        """A draw given how many tasks of each class there are; a prior without parameters has nothing to draw."""
        return self.update(totals, None)


@dataclass(frozen=True)
class Uniform(ClassPrior):
    """All classes alike."""

    def logp(self, pi: Pi) -> Tensor:
        return pi["log"]

    def update(self, totals: Tensor, pi: Pi | None) -> Pi:
        return pi or {"log": torch.full_like(totals, -math.log(totals.numel())).float()}

    def penalty(self, pi: Pi) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device=pi["log"].device)


@dataclass(frozen=True)
class Frequencies(ClassPrior):
    """The classes' shares of the belief, with ``pseudo`` tasks added to each."""

    pseudo: float = 0.0

    def logp(self, pi: Pi) -> Tensor:
        return pi["log"]

    def update(self, totals: Tensor, pi: Pi | None) -> Pi:
        return {"log": normalise(totals + self.pseudo).log().float()}

    def penalty(self, pi: Pi) -> Tensor:
        log = pi["log"].double()
        return (self.pseudo * log).sum() if self.pseudo else torch.zeros_like(log).sum()


@dataclass(frozen=True)
class DirichletClasses(ClassPrior):
    """q(pi) = Dir(alpha + totals); ``log`` holds E[log pi]."""

    alpha: float = 1.0

    def logp(self, pi: Pi) -> Tensor:
        return pi["log"]

    def update(self, totals: Tensor, pi: Pi | None) -> Pi:
        alpha = totals + self.alpha
        return {"posterior": alpha, "log": dirichlet.expected_log(alpha).float()}

    def draw(self, totals: Tensor, rng: torch.Generator) -> Pi:
        return {"log": dirichlet.log_sample(totals + self.alpha, rng).float()}

    def penalty(self, pi: Pi) -> Tensor:
        return -dirichlet.kl(pi["posterior"], torch.full_like(pi["posterior"], self.alpha))
