"""Channels that need no table, and are several times faster through one where it is small."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from torch import Tensor

from voxpop.channels.base import Channel, Stats, Theta, belief_counts, rows_of
from voxpop.votes import Batch


def table_is_small(batch: Batch) -> bool:
    """A table M,K,K with fewer cells than there are votes costs less than to go through the votes one by one."""
    return batch.total_votes >= batch.M * batch.K**2


class TabulatedChannel(Channel):
    """A channel with parameters of workers only, few a worker: votes are summed by a table where that is small."""

    @abstractmethod
    def log_table(self, theta: Theta) -> Tensor:
        """``loglik`` as a table M,K,K: [worker, label, truth]."""

    @abstractmethod
    def stats_of_counts(self, batch: Batch, counts: Tensor) -> Stats:
        """``stats`` from how often each worker gave which label to which truth: M,K,K as [worker, label, truth]."""

    @abstractmethod
    def stats_by_vote(self, batch: Batch, belief: Tensor) -> Stats:
        """``stats`` without such a table."""

    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        if table_is_small(batch):
            return self.stats_of_counts(batch, belief_counts(batch, belief))
        return self.stats_by_vote(batch, belief)

    def evidence_in_blocks(self, batch: Batch, theta: Theta) -> Iterable[Tensor]:
        if table_is_small(batch):
            return batch.by_task.sums(rows_of(self.log_table(theta)))
        return super().evidence_in_blocks(batch, theta)
