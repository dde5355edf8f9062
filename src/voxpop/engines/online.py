"""Stepwise EM: what the M-step needs are running means of what votes say, and each step blends new votes in.

Cappe and Moulines (2009), "On-line expectation-maximization algorithm for latent data models"; Liang and Klein (2009),
"Online EM for unsupervised models"; paper 003, active crowdsourcing: the step is lambda_t = t^-0.6 (Traganitis et
al. 2020).

Every worker has an own clock: who did not vote is not forgotten. A step counts ``unit`` votes, and is an integral, so
that it does not matter how votes are cut into calls: a vote that came when its worker had n weighs 1/n while n is
below a unit (a plain mean) and (n / unit)^-power / unit from then on, and all before fade by as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import belief_counts, rows_of
from voxpop.numerics.simplex import softmax_rows
from voxpop.votes import Batch


@dataclass(frozen=True)
class Pace:
    """How fast the old fades."""

    power: float = 0.6  # of lambda_t = t^-power; above a half and at most one, so that the limit exists
    unit: float = 100.0  # votes of a step

    def keep(self, seen: Tensor, fresh: Tensor) -> Tensor:
        """The weight of what was known when so many fresh ones come after so many seen: 1 - lambda. Float64."""
        before, after = seen.double() / self.unit, (seen + fresh).double() / self.unit
        early = before.clamp_max(1) / after.clamp(torch.finfo(torch.float64).tiny, 1)  # the plain mean
        before, after = before.clamp_min(1), after.clamp_min(1)
        if self.power == 1:
            return early * before / after
        rest = 1 - self.power
        return early * torch.exp((before**rest - after**rest) / rest)  # exp(- integral of t^-power)


@dataclass(frozen=True)
class Running:
    """Means over the votes of each of R workers (or over tasks: one row)."""

    mean: Tensor  # R,..., float64
    seen: Tensor  # R, float64: how many were blended in, those that were looked at again included

    @classmethod
    def nothing(cls, rows: int, *shape: int) -> Running:
        return cls(torch.zeros(rows, *shape, dtype=torch.float64), torch.zeros(rows, dtype=torch.float64))

    def at(self, rows: Tensor) -> Running:
        return Running(self.mean[rows], self.seen[rows])

    def blended(self, total: Tensor, fresh: Tensor, pace: Pace) -> Running:
        """With a sum over ``fresh`` (R) further votes blended in: (1 - lambda) old + lambda new."""
        fresh = fresh.double()
        keep = pace.keep(self.seen, fresh).view(-1, *(1 for _ in total.shape[1:]))
        new = total.double() / fresh.clamp_min(1).view(keep.shape)
        told = (fresh > 0).view(keep.shape)
        return Running(torch.where(told, keep * self.mean + (1 - keep) * new, self.mean), self.seen + fresh)


@dataclass(frozen=True)
class State:
    """Of the workers who occur in a batch, and of the classes."""

    workers: Running  # M,K,K as [worker, label, truth]
    classes: Running  # 1,K


def expect(batch: Batch, log_table: Tensor, log_classes: Tensor) -> tuple[Tensor, float]:
    """E-step: the belief of the batch's tasks (B,K), and the sum of their log normalisers."""
    belief, total = softmax_rows(batch.by_task.sum(rows_of(log_table)) + log_classes)
    return belief, float(total)


def step(batch: Batch, state: State, log_table: Tensor, log_classes: Tensor, pace: Pace) -> tuple[State, Tensor]:
    """One step over some tasks with all their votes so far: the new state, and the belief that led to it."""
    belief, _ = expect(batch, log_table, log_classes)
    fresh = torch.bincount(batch.worker, minlength=batch.M)
    workers = state.workers.blended(belief_counts(batch, belief), fresh, pace)
    tasks = torch.tensor([batch.B])
    return State(workers, state.classes.blended(belief.double().sum(0)[None], tasks, pace)), belief
