"""The protocol of a channel, and the common case in which it is a table per worker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor

from voxpop.errors import TooLarge
from voxpop.numerics.segments import rows_of_a_block, segment_sum
from voxpop.numerics.simplex import normalise
from voxpop.votes import Batch

Theta = dict[str, Tensor]  # the parameters of a channel
Stats = dict[str, Tensor]  # what its update needs: sums over votes, so shards of tasks add up

MAX_CELLS = 1 << 27  # of a table M,K,K: 1 GiB in float64


def table_fits(workers: int, classes: int) -> bool:
    return workers * classes * classes <= MAX_CELLS


def require_table(workers: int, classes: int, what: str) -> None:
    """A clear error in place of an allocation that cannot succeed."""
    if not table_fits(workers, classes):
        raise TooLarge(
            f"{what} needs a table of {workers:,} workers x {classes:,} x {classes:,} classes "
            f"({workers * classes * classes * 8 / 2**30:,.0f} GiB); use OneCoin, ConfusionVector, GLAD, MACE, "
            "WeightedVote or MajorityVote, whose tables fit"
        )


class Channel(ABC):
    """p(label | truth) of each vote, and how to learn it from a belief about the truth.

    ``evidence`` defaults to the sum of ``loglik`` over the votes of each task.
    """

    @abstractmethod
    def loglik(self, batch: Batch, theta: Theta) -> Tensor:
        """log p(label | truth) of each vote under each truth: V,K (in VB its expectation)."""

    def evidence(self, batch: Batch, theta: Theta) -> Tensor:
        """The votes' joint log-likelihood of each task under each truth: B,K."""
        return segment_sum(self.loglik(batch, theta), batch.offsets).float()

    def evidence_in_blocks(self, batch: Batch, theta: Theta) -> Iterable[Tensor]:
        """``evidence`` for the tasks one after the other, some at a time: what engines call."""
        return torch.split(self.evidence(batch, theta), rows_of_a_block(batch.K, batch.device))

    @abstractmethod
    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        """What ``update`` needs to know of these votes."""

    @abstractmethod
    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        """Parameters that raise the bound (or keep it); ``theta`` is None at the start."""

    @abstractmethod
    def penalty(self, theta: Theta) -> Tensor:
        """What the parameters add to the bound: a log prior up to a constant, or minus a KL. Float64."""

    def table(self, theta: Theta) -> Tensor | None:
        """The confusion matrices M,K,K as [worker, truth, label], where there are any."""
        return None

    def predict(self, batch: Batch, p: Tensor, theta: Theta) -> Tensor:
        """p(label) of each vote's worker from a prediction of the truth p (B,K): V,K."""
        table = self.table(theta)
        if table is None:
            raise NotImplementedError(f"{type(self).__name__} has no table: predict needs its own form")
        return torch.einsum("vk,vkl->vl", p[batch.task], table[batch.worker])

    def likelihood(self, batch: Batch, theta: Theta) -> Tensor:
        """p(label | truth) of each vote, with uncertain parameters at their mean: V,K. For predicting votes."""
        return self.loglik(batch, theta).exp()

    def draw(self, stats: Stats, theta: Theta, rng: torch.Generator) -> Theta:
        """A draw of the parameters given the truths (in ``stats``), for Gibbs; only conjugate channels have it."""
        raise NotImplementedError(f"{type(self).__name__} cannot be sampled")

    def right(self, stats: Stats) -> Tensor:
        """How many votes of each worker are right, as far as we believe: M, float64. For channels that can ``draw``."""
        return stats["right"].sum(1)


class TableChannel(Channel):
    """A channel whose ``theta["log"]`` is a table M,K,K as [worker, label, truth].

    The label comes before the truth so that a vote looks up one row: (worker, label) -> K numbers.
    """

    def loglik(self, batch: Batch, theta: Theta) -> Tensor:
        return rows_of(theta["log"])[batch.pair]  # V,K

    def likelihood(self, batch: Batch, theta: Theta) -> Tensor:
        if "posterior" not in theta:
            return super().likelihood(batch, theta)
        mean = theta["posterior"] / theta["posterior"].sum(1, keepdim=True)  # M,K,K as [worker, label, truth]
        return rows_of(mean.float())[batch.pair]

    def evidence(self, batch: Batch, theta: Theta) -> Tensor:
        return batch.by_task.sum(rows_of(theta["log"]))  # B,K: the V,K numbers are never made

    def evidence_in_blocks(self, batch: Batch, theta: Theta) -> Iterable[Tensor]:
        return batch.by_task.sums(rows_of(theta["log"]))

    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        require_table(batch.M, batch.K, "a confusion matrix per worker")
        return {"counts": belief_counts(batch, belief)}

    def right(self, stats: Stats) -> Tensor:
        return stats["counts"].diagonal(dim1=1, dim2=2).sum(1)

    def table(self, theta: Theta) -> Tensor | None:
        """Where there is a Dirichlet posterior its mean, else the table itself."""
        if "posterior" in theta:
            return normalise(theta["posterior"].transpose(1, 2)).float()
        return theta["log"].exp().transpose(1, 2)  # M,K,K as [worker, truth, label]


def belief_counts(batch: Batch, belief: Tensor) -> Tensor:
    """How often each worker gave each label to each truth by our belief: M,K,K as [worker, label, truth], float64."""
    return batch.by_pair.sum_exact(belief).view(batch.M, batch.K, batch.K)


def rows_of(log_table: Tensor) -> Tensor:
    """The row of each (worker, label)."""
    return log_table.reshape(-1, log_table.shape[-1])  # M*K,K
