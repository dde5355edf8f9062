"""Copying: workers who vote where another one voted, mostly with the other's label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from voxpop.errors import BadOption
from voxpop.numerics.segments import offsets_of
from voxpop.simulate import keys
from voxpop.simulate.answers import Answers
from voxpop.simulate.checks import chance


@dataclass(frozen=True)
class Copying:
    """Each follower votes on every task of its source: its label with the chance ``fidelity``, else an own answer."""

    source: Tensor  # M, int64: whose votes are copied; -1 for those who vote by themselves
    fidelity: float = 1.0

    def __post_init__(self) -> None:
        chance("fidelity", self.fidelity)
        followed = self.source[self.source >= 0]
        if followed.numel() and int(self.source[followed].max()) >= 0:
            raise BadOption("a worker copies one who copies; copy only those who vote by themselves")

    @cached_property
    def followers(self) -> Tensor:
        """All followers, in the order of their sources."""
        return self.source.argsort(stable=True)[(self.source < 0).sum() :]

    @cached_property
    def number(self) -> Tensor:
        return torch.bincount(self.source[self.followers], minlength=self.source.numel())  # M

    def tables(self, own: Tensor) -> Tensor:
        """What everyone says on the whole: a follower's table is a mixture of the source's and its own."""
        mixed = self.fidelity * own[self.source] + (1 - self.fidelity) * own
        return torch.where((self.source < 0)[:, None, None], own, mixed)  # M,K,K

    def votes(
        self, task: Tensor, worker: Tensor, label: Tensor, truth: Tensor, answers: Answers, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The followers' (task, worker, label) for some votes with the truth of their tasks."""
        times = self.number[worker]  # V
        vote = keys.owners(times)  # the vote that each follower's vote follows
        nth = torch.arange(vote.numel()) - offsets_of(times)[vote]
        follower = self.followers[offsets_of(self.number)[worker[vote]] + nth]
        own = answers.draw(task[vote], follower, truth[vote], generator)
        copies = torch.rand(vote.shape, generator=generator) < self.fidelity
        return task[vote], follower, torch.where(copies, label[vote], own)
