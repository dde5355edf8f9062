"""What is learned of the crowd by gradient descent: confusion matrices on the simplex, and what is fitted with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from voxpop.channels.base import belief_counts, require_table
from voxpop.engines.starts import shares
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective, Parcel, per_task
from voxpop.numerics.simplex import log_rows, normalise
from voxpop.votes import Batch

MATRIX = "a confusion matrix per worker"


class CrowdWeights(nn.Module, ABC):
    """Free weights K,K of each worker as [truth, label], of which the softmax along the labels is p(label | truth).

    They are the crowd's, shared, plus each worker's own: so those with few votes stay near the crowd.
    """

    @abstractmethod
    def of(self, worker: Tensor) -> Tensor:
        """The free weights of some workers: U,K,K."""

    @abstractmethod
    def apart(self, worker: Tensor) -> Tensor:
        """The squared length of what is some workers' own: U."""

    @abstractmethod
    def all(self) -> Tensor:
        """The free weights of all workers: M,K,K."""

    def given(self, batch: Batch) -> Tensor:
        """log p(label | truth) of each vote: V,K. Only the workers of the batch are looked at, each once."""
        who, place = batch.by_whom
        return log_rows(self.of(who))[place, :, batch.label.long()]

    def log(self) -> Tensor:
        """log A: M,K,K as [worker, truth, label]."""
        return self.all().log_softmax(2)


class Confusions(CrowdWeights):
    """A confusion matrix per worker."""

    def __init__(self, common: Tensor, own: Tensor) -> None:
        super().__init__()
        self.common = nn.Parameter(common)  # K,K as [truth, label]
        self.own = nn.Parameter(own)  # M,K,K as [worker, truth, label]

    @classmethod
    def counted(cls, data: Data, pseudo: float) -> Confusions:
        """From the votes: how often each label was given where the shares of the votes say each truth.

        ``pseudo`` votes for each truth pull the crowd towards the right label, and each worker towards the crowd.
        """
        M, K = data.votes.M, data.votes.K
        require_table(M, K, MATRIX)
        counts = belief_counts(data.batch, shares(data.votes, data.gold)[data.positions]).transpose(1, 2)  # M,K,K
        crowd = normalise(counts.sum(0) + pseudo * (torch.eye(K) + 1 / K))  # K,K as [truth, label]
        each = normalise(counts + pseudo * crowd)  # M,K,K as [worker, truth, label]
        return cls(crowd.log().float(), (each.log() - crowd.log()).float().contiguous())

    def of(self, worker: Tensor) -> Tensor:
        return self.common + self.own[worker.long()]

    def apart(self, worker: Tensor) -> Tensor:
        return self.own[worker.long()].square().sum((1, 2))

    def all(self) -> Tensor:
        return self.common + self.own


def foretold(logp: Tensor, given: Tensor, batch: Batch) -> Tensor:
    """log sum_k p(k | x) p(label | k) of each vote, from log p(k | x) (B,K) and log p(label | k) (V,K): V."""
    return torch.logsumexp(logp[batch.task.long()] + given, 1)


def certain(logp: Tensor, gold: Tensor | None) -> Tensor:
    """Where the truth is known (B, -1 elsewhere), all of p on it: log p(truth | x) B,K."""
    if gold is None:
        return logp
    known = gold >= 0
    truth = torch.nn.functional.one_hot(gold.clamp_min(0), logp.shape[1]).to(logp.dtype).log()  # B,K
    return torch.where(known[:, None], truth, logp)


class OverWorkers:
    """Means over workers, estimated from the votes of a batch: no other worker is looked at."""

    def __init__(self, data: Data) -> None:
        self.votes = torch.bincount(data.batch.worker.long(), minlength=data.votes.M)  # M: how many are whose
        self.active = max(int((self.votes > 0).sum()), 1)
        self.weight = 1 / self.votes.clamp_min(1).float()  # M
        self.tasks = max(data.positions.numel(), 1)

    def mean(self, terms: Tensor, batch: Batch) -> Tensor:
        """The mean over those who vote of terms that are given for each vote (V,...)."""
        total: Tensor = torch.tensordot(self.share(batch).to(terms), terms, dims=1)
        return total

    def share(self, batch: Batch) -> Tensor:
        """What each vote counts for in such a mean, V: a worker's votes count once together."""
        weight = self.weight.to(batch.device)[batch.worker.long()]
        return weight * (self.tasks / max(batch.B, 1) / self.active)


class CrowdObjective(Objective):
    """A network and a crowd whose weights learn at a rate of their own; known truths teach both.

    What is minimised is minus the mean log probability of a vote (``fit``), and what else ``penalty`` says.
    """

    crowd: nn.Module
    crowd_lr = 1e-2

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        logp = self.logp(x)  # B,K
        return self.of(certain(logp, parcel.gold), x, parcel.batch) + self.errors(logp, parcel.gold)

    def errors(self, logp: Tensor, gold: Tensor | None) -> Tensor | float:
        """Known truths (B, -1 elsewhere) as the network's own error, a task as much as any other."""
        if gold is None or not bool((gold >= 0).any()):
            return 0.0
        return nn.functional.nll_loss(logp, gold, self.class_weight, ignore_index=-1, reduction="sum") / len(logp)

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        return self.of(self.logp(x), x, batch)

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        """The loss, given log p(truth | x): B,K."""
        return self.per_vote(-foretold(logp, self.given(x, batch), batch), batch)

    def per_vote(self, terms: Tensor, batch: Batch) -> Tensor:
        """The mean of the votes' terms (V), each with its class's weight."""
        return per_task(self.weighed(terms, batch), batch)

    def learned_by_crowd(self) -> list[nn.Parameter]:
        """What learns at the crowd's rate."""
        return list(self.crowd.parameters())

    def groups(self, lr: float) -> list[dict[str, Any]]:
        crowd = self.learned_by_crowd()
        apart = {id(weights) for weights in crowd}
        rest = [weights for weights in self.parameters() if id(weights) not in apart]
        return [{"params": rest, "lr": lr}, {"params": crowd, "lr": self.crowd_lr, "weight_decay": 0.0}]


class Mixture(CrowdObjective):
    """p(label | x) = sum over truths of p(truth | x) A[truth, label] (paper 003, coupled cross-entropy, CCEM)."""

    crowd: CrowdWeights

    def __init__(self, network: nn.Module, crowd: CrowdWeights, data: Data, *, crowd_lr: float, pull: float) -> None:
        super().__init__(network)
        self.crowd, self.crowd_lr, self.pull = crowd, crowd_lr, pull
        self.workers = OverWorkers(data)
        self.share = self.workers.active / max(data.batch.V, 1)  # workers per vote

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        return super().of(logp, x, batch) + self.pulled(batch)

    def pulled(self, batch: Batch) -> Tensor:
        """A Gaussian prior on what is a worker's own, per vote: the sum over workers of pull / 2 |own|^2, over V."""
        who, place = batch.by_whom
        return self.pull / 2 * self.share * self.workers.mean(self.crowd.apart(who)[place], batch)

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return self.crowd.given(batch)

    def table(self) -> Tensor | None:
        return self.crowd.log().detach().exp()

    def log_table(self) -> Tensor | None:
        return self.crowd.log().detach()
