"""Sums over votes of products of two rows, that of a vote's task and that of its worker; no row is copied for a vote.

A sum with weights is an ``embedding_bag``; what each vote's two rows give multiplied is its slope in those weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from voxpop.numerics.segments import cut, offsets_of

_DOTS = torch.ops.aten._embedding_bag_per_sample_weights_backward


@dataclass(frozen=True, eq=False)
class Pairs:
    """Votes sorted by task: which worker meets which of n tasks."""

    worker: Tensor  # V, int32
    offsets: Tensor  # n+1, int32: the votes of task i are offsets[i]:offsets[i + 1]

    @cached_property
    def task(self) -> Tensor:
        return torch.repeat_interleave(self.offsets.diff()).int()  # V

    @cached_property
    def _by_worker(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The votes in the order of workers, their tasks, and pieces of them: where each begins and whose it is."""
        worker, order = torch.sort(self.worker, stable=True)
        who, counts = torch.unique_consecutive(worker, return_counts=True)
        offsets, owner = cut(offsets_of(counts).int(), who.long())
        return order.int(), self.task[order], offsets, owner

    def dots(self, of_tasks: Tensor, of_workers: Tensor) -> Tensor:
        """The product of the rows of each vote's task (n,C) and worker (M,C): V."""
        dots: Tensor = _DOTS(of_tasks, of_workers, self.worker, self.offsets[:-1], self.task, 0)
        return dots

    def over_tasks(self, weight: Tensor, of_workers: Tensor) -> Tensor:
        """The sum over each task's votes of weight (V) times the worker's row (M,C): n,C."""
        return _sums(self.worker, self.offsets, weight, of_workers)

    def add_over_workers(self, out: Tensor, weight: Tensor, of_tasks: Tensor) -> None:
        """Add to each worker's row of ``out`` (M,C, float64) the sum of weight (V) times the task's row (n,C)."""
        order, task, offsets, owner = self._by_worker
        out.index_add_(0, owner, _sums(task, offsets, weight.index_select(0, order), of_tasks).double())


def _sums(index: Tensor, offsets: Tensor, weight: Tensor, table: Tensor) -> Tensor:
    return F.embedding_bag(index, table, offsets, mode="sum", per_sample_weights=weight, include_last_offset=True)
