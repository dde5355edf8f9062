"""The outcome of a simulation: the votes, and what only the simulator knows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl
import torch
from torch import Tensor

from voxpop.numerics.segments import scatter_sum
from voxpop.votes import Votes


@dataclass(frozen=True, eq=False)
class Simulated:
    votes: Votes
    truth: Tensor  # N, int64: positions of classes
    tables: Tensor | None  # M,K,K [worker, truth, label]; None where a vote depends on the task
    kinds: list[str]  # M

    @cached_property
    def accuracy(self) -> Tensor:
        """How often each worker is right (M, float64): expected over these tasks from the tables, else as counted.

        Counted, it is NaN for a worker without votes.
        """
        votes = self.votes
        if self.tables is not None:
            shares = torch.bincount(self.truth, minlength=votes.K).double() / max(votes.N, 1)  # K
            return self.tables.diagonal(dim1=1, dim2=2).double() @ shares
        right = self.truth[votes.task] == votes.label
        return scatter_sum(right, votes.worker, votes.M) / torch.bincount(votes.worker, minlength=votes.M)

    def truth_frame(self) -> pl.DataFrame:
        """The true label of each task: task, label."""
        labels = self.votes.classes.names.gather(self.truth.numpy())
        return pl.DataFrame({"task": self.votes.tasks.names, "label": labels})

    def worker_frame(self) -> pl.DataFrame:
        """What each worker is: worker, kind, accuracy (null where it is not known)."""
        accuracy = pl.Series(self.accuracy.numpy()).fill_nan(None)
        return pl.DataFrame({"worker": self.votes.workers.names, "kind": self.kinds, "accuracy": accuracy})
