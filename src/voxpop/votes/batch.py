"""Some rows of tasks with their votes: what an engine's step sees. The whole data is one batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from voxpop.numerics.segments import Pieces, Segments, cut, offsets_of, rows_of_a_block

WORTHWHILE = (
    16  # votes of a (worker, label) in a block of tasks, on average: with fewer, blocks cost more than they gain
)


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

    def pieces(self, size: int) -> Iterator[Batch]:
        """The same in batches of so many tasks, in order."""
        starts = range(0, self.B, size)
        ends = self.offsets[[*starts, self.B]].tolist()
        for start, (first, last) in zip(starts, pairwise(ends), strict=True):
            stop = min(start + size, self.B)
            yield replace(
                self,
                task=self.task[first:last] - start,
                worker=self.worker[first:last],
                label=self.label[first:last],
                offsets=self.offsets[start : stop + 1] - first,
                rows=None if self.rows is None else self.rows[start:stop],
            )

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
    def by_pair(self) -> Pieces:
        """Rows of a table B,C summed over the votes of each (worker, label)."""
        return _by_pair(self.pair, self.task, self.M * self.K, self.B, self.K)

    @cached_property
    def order_by_worker(self) -> Tensor:
        """The votes in the order of their workers (stable), for what differs from vote to vote."""
        return torch.argsort(self.worker, stable=True)  # V, int64

    @cached_property
    def worker_offsets(self) -> Tensor:
        return offsets_of(torch.bincount(self.worker, minlength=self.M))  # M+1, int64

    @cached_property
    def by_whom(self) -> tuple[Tensor, Tensor]:
        """Workers, each once and in order (U), with all who vote here; and which of them cast each vote (V).

        Where there are fewer workers than votes they are all of them: finding out who does not vote would cost more.
        """
        if self.M <= self.V:
            return torch.arange(self.M, device=self.device), self.worker.long()
        who, place = torch.unique(self.worker, return_inverse=True)
        return who.long(), place

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

    def over_tasks(self, values: Tensor) -> Tensor:
        """The sum over each task's votes of what is given for each vote: B,... of V,..."""
        return values.new_zeros(self.B, *values.shape[1:]).index_add_(0, self.task, values)

    def counts(self) -> Tensor:
        """How many votes each class got."""
        if self.V == 0:
            return torch.zeros(self.B, self.K, device=self.device)
        return torch.bincount(self.cell, minlength=self.B * self.K).view(self.B, self.K).float()  # B,K


def _by_pair(pair: Tensor, task: Tensor, pairs: int, tasks: int, width: int) -> Pieces:
    """The votes grouped by pair within blocks of tasks, so that a block's rows of a table of this width stay in cache.

    Each block is one sort of a combined key, which then says the pair and the task themselves.
    """
    rows = rows_of_a_block(width, task.device)
    enough = WORTHWHILE * pairs * tasks // max(task.numel(), 1)
    bits = (min(max(rows, enough), tasks) - 1).bit_length() if tasks else 0  # 2**bits tasks a block
    low = (1 << bits) - 1
    kind = torch.int32 if pairs << bits < 1 << 31 else torch.int64
    begins = torch.arange(0, tasks + 1 + low, 1 << bits, dtype=task.dtype, device=task.device)
    index, starts, owners = torch.empty_like(task), [], []
    for first, last in pairwise(torch.searchsorted(task, begins).tolist()):
        if first == last:
            continue
        high = task[first] & ~low
        key = _in_order((pair[first:last].to(kind) << bits) | (task[first:last] & low))
        torch.add(key & low, high, out=index[first:last])
        key >>= bits
        new = torch.cat([key.new_ones(1), key.diff()]).nonzero()[:, 0]
        starts.append(new + first)
        owners.append(key[new].long())
    none = torch.zeros(0, dtype=torch.int64, device=task.device)
    offsets = torch.cat([*starts, torch.full((1,), task.numel(), device=task.device)]).to(index.dtype)
    return Pieces(index, *cut(offsets, torch.cat([none, *owners])), pairs)


def _in_order(key: Tensor) -> Tensor:
    """Sorted; NumPy's sort of integers takes a third of torch's time on a CPU."""
    if key.is_cuda:
        return key.sort().values
    key.numpy().sort()
    return key
