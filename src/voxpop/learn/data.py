"""What is learned from: rows of features, the votes on them, the known truths; or some tasks of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.learn.rows import Rows
from voxpop.votes import Batch, Votes


@dataclass(frozen=True, eq=False)
class Data:
    rows: Rows
    votes: Votes
    gold: Tensor | None = None  # N, class or -1
    tasks: Tensor | None = None  # positions on the tasks axis; None: all of them

    def __post_init__(self) -> None:
        if len(self.rows) != self.votes.N:
            raise BadInput(
                f"X has {len(self.rows):,} rows and the votes {self.votes.N:,} tasks; give a row for each task of "
                "votes.tasks, in that order (Votes.from_frame(..., tasks=names) keeps tasks without votes). "
                "Found input variables with inconsistent numbers of samples"
            )

    @cached_property
    def positions(self) -> Tensor:
        return torch.arange(self.votes.N) if self.tasks is None else self.tasks

    @cached_property
    def batch(self) -> Batch:
        """All of these tasks with their votes."""
        return self.votes.whole if self.tasks is None else self.votes.batch(self.tasks)

    @property
    def known(self) -> Tensor | None:
        """The known truths of these tasks, class or -1."""
        return None if self.gold is None else self.gold[self.positions]

    @cached_property
    def voted(self) -> Tensor:
        """Positions of those tasks that anybody labelled, or whose truth is known."""
        some = self.batch.votes_per_task > 0
        if self.known is not None:
            some |= self.known >= 0
        return self.positions[some]

    def part(self, tasks: Tensor) -> Data:
        return replace(self, tasks=tasks)
