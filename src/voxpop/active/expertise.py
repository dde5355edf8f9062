"""The chance that a worker is right on a task, as a product of low rank: never the whole matrix.

p(right) = sigmoid(u_j' z_i), paper 002 eq. 6 with z_i = F x_i (and a bias as one more column). Workers who are
as good on every task are the case d = 1, z = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from voxpop.errors import BadInput

GROUPS = 64  # of workers, whose best chance on a task is bounded together
ROUNDS = 5  # of k-means
BLOCK = 1 << 16  # tasks at a time


@dataclass(frozen=True, eq=False)
class Expertise:
    """``workers``: u, a row for each worker of the votes, in their order. ``tasks``: z, a row for each item."""

    workers: Tensor  # M,d: u
    tasks: Tensor  # N,d: z
    kind: Tensor | None = None  # N: tasks of one kind have the same z; none: they may all differ

    def __post_init__(self) -> None:
        shapes = tuple(self.workers.shape), tuple(self.tasks.shape)
        if any(len(shape) != 2 for shape in shapes) or shapes[0][1:] != shapes[1][1:]:
            raise BadInput(f"expertise has the shapes {shapes[0]} and {shapes[1]}; give M,d for workers, N,d for tasks")
        for name, part in (("workers", self.workers), ("tasks", self.tasks)):
            if part.numel() and not all(math.isfinite(float(end)) for end in torch.aminmax(part)):
                raise BadInput(f"expertise of {name} holds a number that is not finite; the fit has failed")

    @classmethod
    def alike(cls, right: Tensor, tasks: int) -> Expertise:
        """Each worker with one chance of being right on all tasks: M."""
        eps = torch.finfo(torch.float32).eps
        return cls(torch.logit(right.float(), eps)[:, None], torch.ones(1, 1).expand(tasks, 1))

    @cached_property
    def same_everywhere(self) -> bool:
        """Whether the tasks do not differ: then one row stands for all."""
        return len(self.tasks) > 0 and bool((self.tasks == self.tasks[:1]).all())

    def right(self, tasks: Tensor, workers: Tensor) -> Tensor:
        """p(right) of pairs."""
        return torch.sigmoid((self.workers[workers] * self.tasks[tasks]).sum(1))

    def block(self, tasks: Tensor) -> Tensor:
        """u'z of some tasks and all workers: B,M."""
        if self.same_everywhere:
            return (self.tasks[:1] @ self.workers.t()).expand(len(tasks), -1)
        return self.tasks[tasks] @ self.workers.t()

    def of_workers(self, rows: Tensor) -> Expertise:
        return replace(self, workers=self.workers[rows])

    def with_newcomers(self, count: int) -> Expertise:
        """``count`` workers more, of whom nothing is known: each is taken for the mean of the others."""
        mean = self.workers.mean(0) if len(self.workers) else self.workers.new_zeros(self.workers.shape[1])
        return replace(self, workers=torch.cat([self.workers, mean.expand(count, -1)]))

    def shifted(self, shift: Tensor, group: Tensor) -> Expertise:
        """The same with ``shift`` (M,S) added to each worker's logit, on each task that of its group (N)."""
        groups = self.tasks.new_zeros(len(self.tasks), shift.shape[1]).scatter_(1, group[:, None], 1.0)  # N,S
        workers = torch.cat([self.workers, shift.to(self.workers.dtype)], 1)
        return Expertise(workers, torch.cat([self.tasks, groups], 1), group if self.same_everywhere else None)

    def limits(self) -> Tensor:
        """No worker has a larger u'z on a task than this: N.

        Workers are grouped, and u'z <= c'z + r|z| for all within r of a centre c; exact where d = 1 or of kinds.
        """
        if self.same_everywhere:
            return self.block(torch.zeros(1, dtype=torch.int64)).amax(1).expand(len(self.tasks))
        if self.kind is not None:
            kinds, where = torch.unique(self.kind, return_inverse=True)
            first = torch.zeros(len(kinds), dtype=torch.int64).scatter_(0, where, torch.arange(len(where)))
            return self.block(first).amax(1)[where]
        if self.tasks.shape[1] == 1:
            u, z = self.workers[:, 0], self.tasks[:, 0]  # M, N
            return torch.maximum(u.max() * z, u.min() * z)
        centres, radius = balls(self.workers)
        out = [(z @ centres.t() + z.norm(dim=1, keepdim=True) * radius).amax(1) for z in torch.split(self.tasks, BLOCK)]
        return torch.cat(out) if out else self.tasks.new_zeros(0)


def balls(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Centres G,d and radii G of groups of rows by k-means; every row is within the radius of its centre."""
    centres, nearest = grouped(rows, GROUPS)
    distance = (rows - centres[nearest]).norm(dim=1)
    radius = torch.zeros(len(centres)).scatter_reduce_(0, nearest, distance, "amax")
    return centres, radius * (1 + 1e-4)  # the distance is a float32


def grouped(rows: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """k-means from evenly spread rows: centres G,d, and the group of each row."""
    centres = rows[:: max(1, -(-len(rows) // groups))].clone()
    for _ in range(ROUNDS):
        nearest = torch.cdist(rows, centres).argmin(1)
        total = torch.zeros_like(centres).index_add_(0, nearest, rows)
        size = torch.bincount(nearest, minlength=len(centres))[:, None]
        centres = torch.where(size > 0, total / size.clamp_min(1), centres)
    return centres, torch.cdist(rows, centres).argmin(1)
