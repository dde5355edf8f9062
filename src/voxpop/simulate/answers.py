"""Answers: what a worker says about a task. From a table, by the task's ease, or by where the task lies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from voxpop.simulate.sampler import Sampler


class Answers(Protocol):
    @property
    def tables(self) -> Tensor | None:
        """M,K,K [worker, truth, label]; None where the vote depends on the task as well."""

    @property
    def size(self) -> tuple[int, int]:
        """(M, K)."""

    def draw(self, task: Tensor, worker: Tensor, truth: Tensor, generator: torch.Generator) -> Tensor:
        """The label of each vote, given the truth of its task."""


@dataclass(frozen=True)
class FromTables:
    """Label ~ tables[worker, truth]."""

    tables: Tensor  # M,K,K

    @property
    def size(self) -> tuple[int, int]:
        return self.tables.shape[0], self.tables.shape[1]

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.tables.flatten(0, 1))

    def draw(self, task: Tensor, worker: Tensor, truth: Tensor, generator: torch.Generator) -> Tensor:
        return self._sampler.draw(worker * self.tables.shape[1] + truth, generator)


@dataclass(frozen=True)
class ByDifficulty:
    """Right with the chance sigmoid(skill * ease); the wrong labels share the rest evenly.

    Whitehill et al. 2009, "Whose Vote Should Count More", eq. 1.
    """

    skill: Tensor  # M
    ease: Tensor  # N, above zero
    classes: int

    @property
    def tables(self) -> None:
        return None

    @property
    def size(self) -> tuple[int, int]:
        return self.skill.numel(), self.classes

    def draw(self, task: Tensor, worker: Tensor, truth: Tensor, generator: torch.Generator) -> Tensor:
        right = torch.sigmoid(self.skill[worker] * self.ease[task])  # V
        return _or_wrong(torch.rand(right.shape, generator=generator) < right, truth, self.classes, generator)


@dataclass(frozen=True)
class ByExpertise:
    """Right where the worker's expertise points the way of the task, that is where its reliability is above a half.

    "Deep Active Learning from targeted Crowds", section 5.2, with eq. 5's sign. Other votes are wrong at random.
    """

    expertise: Tensor  # M,d: u_j
    place: Tensor  # N,d: F x_i
    classes: int

    @property
    def tables(self) -> None:
        return None

    @property
    def size(self) -> tuple[int, int]:
        return self.expertise.shape[0], self.classes

    def draw(self, task: Tensor, worker: Tensor, truth: Tensor, generator: torch.Generator) -> Tensor:
        score = (self.expertise[worker] * self.place[task]).sum(1)  # V: eta = sigmoid(score)
        return _or_wrong(score > 0, truth, self.classes, generator)


def _or_wrong(right: Tensor, truth: Tensor, classes: int, generator: torch.Generator) -> Tensor:
    """The truth where it is right, else any other label."""
    away = torch.randint(1, classes, right.shape, generator=generator)
    return torch.where(right, truth, (truth + away) % classes)  # V
