"""Channels in which a vote only says something for or against its own label: one coin, MACE, GLAD.

p(label | truth) takes two values: one if the truth is the vote's label, one if it is any other class.
Nothing of size K x K is made, so a thousand classes and many workers fit.
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from voxpop.channels.base import Channel, Theta
from voxpop.numerics.segments import segment_sum
from voxpop.votes import Batch


class OwnLabelChannel(Channel):
    @abstractmethod
    def parts(self, batch: Batch, theta: Theta) -> tuple[Tensor, Tensor]:
        """log p(label) of each vote if the truth is another class (V), and how much more if it is the label (V)."""

    def loglik(self, batch: Batch, theta: Theta) -> Tensor:
        other, gain = self.parts(batch, theta)
        out = other[:, None].repeat(1, batch.K)  # V,K
        return out.scatter_add_(1, batch.label[:, None].long(), gain[:, None])

    def evidence(self, batch: Batch, theta: Theta) -> Tensor:
        other, gain = self.parts(batch, theta)
        base = segment_sum(other, batch.offsets).float()  # B
        return add_own(base[:, None].expand(-1, batch.K), batch, gain)


def add_own(base: Tensor, batch: Batch, gain: Tensor) -> Tensor:
    """The base of each task (B,K) plus what its votes add to their own labels (V)."""
    return base.reshape(-1).clone().index_add_(0, batch.cell, gain).view(batch.B, batch.K)


def own_belief(batch: Batch, belief: Tensor) -> Tensor:
    """How much each vote is believed: the belief in its own label, V."""
    return belief.reshape(-1)[batch.cell]
