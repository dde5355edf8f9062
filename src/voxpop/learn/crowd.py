"""What is learned of each worker by gradient descent: confusion matrices on the simplex."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from voxpop.channels.base import require_table
from voxpop.learn.objective import own_rows
from voxpop.votes import Batch


class Confusions(nn.Module):
    """A = softmax of free weights along the labels: M,K,K, rows [worker, truth, :] on the simplex.

    They start near the identity: the right label ahead of each other one by ``lead`` nats.
    """

    def __init__(self, workers: int, classes: int, lead: float) -> None:
        super().__init__()
        require_table(workers, classes, "a confusion matrix per worker")
        self.weight = nn.Parameter(lead * torch.eye(classes).repeat(workers, 1, 1))  # M,K,K as [worker, truth, label]

    def log(self) -> Tensor:
        """log A: M,K,K as [worker, truth, label]."""
        return self.weight.log_softmax(2)

    def given(self, batch: Batch) -> Tensor:
        """log p(label | truth) of each vote: V,K. Only the workers of the batch are looked at."""
        worker, label = batch.worker.long(), batch.label.long()
        mine = self.weight[worker]  # V,K,K
        return mine.gather(2, label[:, None, None].expand(-1, batch.K, 1))[:, :, 0] - mine.logsumexp(2)

    def table(self) -> Tensor:
        return self.log().exp().detach()


def foretold(logp: Tensor, given: Tensor, batch: Batch) -> Tensor:
    """log sum_k p(k | x) p(label | k) of each vote, from log p(k | x) (B,K) and log p(label | k) (V,K): V."""
    return torch.logsumexp(logp[batch.task.long()] + given, 1)


__all__ = ["Confusions", "foretold", "own_rows"]
