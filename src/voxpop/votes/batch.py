"""Some rows of tasks with their votes: what an engine's step sees. The whole data is one batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from voxpop.numerics.segments import Segments, offsets_of


@dataclass(frozen=True)
class Batch:
    """Votes of B tasks, sorted by task; ``task`` counts within the batch, ``rows`` says which tasks they are."""

    task: Tensor  # V, int32, 0..B-1
    worker: Tensor  # V, int32
    label: Tensor  # V, int32
    offsets: Tensor  # B+1, int32: the votes of task i are offsets[i]:offsets[i+1]
    n_workers: int  # M
    n_classes: int  # K
    total_tasks: int  # N of the whole data
    total_votes: int  # V of the whole data
    rows: Tensor | None = None  # B, positions on the tasks axis; None: all of them

    @property
    def B(self) -> int:
        return self.offsets.numel() - 1

    @property
    def M(self) -> int:
        return self.n_workers

    @property
    def K(self) -> int:
        return self.n_classes

    @property
    def V(self) -> int:
        return self.task.numel()

    @property
    def device(self) -> torch.device:
        return self.task.device

    def to(self, device: str | torch.device) -> Batch:
        if self.device == torch.device(device):
            return self
        moved = {name: getattr(self, name).to(device) for name in ("task", "worker", "label", "offsets")}
        return replace(self, **moved, rows=None if self.rows is None else self.rows.to(device))

    @cached_property
    def pair(self) -> Tensor:
        """worker * K + label of each vote: its row in a table of M*K rows."""
        wide = self.M * self.K >= 1 << 31
        return (self.worker.long() if wide else self.worker) * self.K + self.label  # V

    @cached_property
    def by_task(self) -> Segments:
        """Rows of a table M*K,C summed over the votes of each task."""
        return Segments(self.pair, self.offsets.to(self.pair.dtype))

    @cached_property
    def workers_by_task(self) -> Segments:
        """Rows of a table M,C summed over the votes of each task."""
        return Segments(self.worker, self.offsets)

    @cached_property
    def by_pair(self) -> Segments:
        """Rows of a table B,C summed over the votes of each (worker, label)."""
        return _transposed(self.pair, self.task, self.M * self.K, self.B)

    @cached_property
    def order_by_worker(self) -> Tensor:
        """The votes in the order of their workers (stable), for what differs from vote to vote."""
        return torch.argsort(self.worker, stable=True)  # V, int64

    @cached_property
    def worker_offsets(self) -> Tensor:
        return offsets_of(torch.bincount(self.worker, minlength=self.M))  # M+1, int64

    @cached_property
    def task_ids(self) -> Tensor:
        """The position of each vote's task on the tasks axis."""
        return self.task.long() if self.rows is None else self.rows[self.task.long()]  # V

    @cached_property
    def votes_per_task(self) -> Tensor:
        return self.offsets.diff()  # B

    @cached_property
    def cell(self) -> Tensor:
        """task * K + label of each vote: its place in a flat table B,K."""
        return self.task.long() * self.K + self.label  # V

    def counts(self) -> Tensor:
        """How many votes each class got."""
        if self.V == 0:
            return torch.zeros(self.B, self.K, device=self.device)
        return torch.bincount(self.cell, minlength=self.B * self.K).view(self.B, self.K).float()  # B,K


def _transposed(pair: Tensor, task: Tensor, pairs: int, tasks: int) -> Segments:
    """The same votes grouped by pair: one sort of a combined key, which then says the task itself."""
    counts = torch.bincount(pair, minlength=pairs)
    if pair.is_cuda:
        index = task[torch.argsort(pair, stable=True)]
    else:
        key = pair.numpy().astype(np.int64)
        key *= tasks
        key += task.numpy()
        key.sort()
        key %= max(tasks, 1)
        index = torch.from_numpy(key.astype(np.int32))
    return Segments(index, offsets_of(counts).to(index.dtype))
