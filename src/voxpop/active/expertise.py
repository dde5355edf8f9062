"""The chance that a worker is right on a task, as a product of low rank: never the whole matrix.

p(right) = sigmoid(u_j' z_i), paper 002 eq. 6 with z_i = F x_i (and a bias as one more column). Workers who are
as good on every task are the case d = 1, z = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.errors import BadInput

GROUPS = 64  # of workers, whose best chance on a task is bounded together
ROUNDS = 5  # of k-means


@dataclass(frozen=True)
class Expertise:
    workers: Tensor  # M,d: u
    tasks: Tensor  # N,d: z

    def __post_init__(self) -> None:
        shapes = tuple(self.workers.shape), tuple(self.tasks.shape)
        if any(len(shape) != 2 for shape in shapes) or shapes[0][1:] != shapes[1][1:]:
            raise BadInput(f"expertise has the shapes {shapes[0]} and {shapes[1]}; give M,d for workers, N,d for tasks")
        for name, part in (("workers", self.workers), ("tasks", self.tasks)):
            if not bool(torch.isfinite(part).all()):
                raise BadInput(f"expertise of {name} holds a number that is not finite; the fit has failed")

    @classmethod
    def alike(cls, right: Tensor, tasks: int) -> Expertise:
        """Each worker with one chance of being right on all tasks: M."""
        eps = torch.finfo(torch.float32).eps
        return cls(torch.logit(right.float(), eps)[:, None], torch.ones(tasks, 1))

    def right(self, tasks: Tensor, workers: Tensor) -> Tensor:
        """p(right) of pairs."""
        return torch.sigmoid((self.workers[workers] * self.tasks[tasks]).sum(1))

    def limits(self, workers: Tensor) -> Tensor:
        """No one of these workers has a larger u'z on a task than this: N.

        Workers are grouped, and u'z <= c'z + r|z| for all within r of a centre c; exact where d = 1.
        """
        if self.tasks.shape[1] == 1:
            u, z = self.workers[workers, 0], self.tasks[:, 0]  # M', N
            return torch.maximum(u.max() * z, u.min() * z)
        centres, radius = _grouped(self.workers[workers])
        out = [
            (z @ centres.t() + z.norm(dim=1, keepdim=True) * radius).amax(1)
            for z in torch.split(self.tasks, (1 << 22) // 64)
        ]
        return torch.cat(out) if out else self.tasks.new_zeros(0)


def _grouped(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Centres G,d and radii G of groups of rows by k-means; every row is within the radius of a centre."""
    centres = rows[:: max(1, -(-len(rows) // GROUPS))].clone()
    for _ in range(ROUNDS):
        nearest = torch.cdist(rows, centres).argmin(1)
        total = torch.zeros_like(centres).index_add_(0, nearest, rows)
        size = torch.bincount(nearest, minlength=len(centres))[:, None]
        centres = torch.where(size > 0, total / size.clamp_min(1), centres)
    distance, nearest = torch.cdist(rows, centres).min(1)
    radius = torch.zeros(len(centres)).scatter_reduce_(0, nearest, distance, "amax")
    return centres, radius * (1 + 1e-4)  # the distance is a float32
