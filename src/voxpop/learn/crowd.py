"""What is learned of the crowd by gradient descent: confusion matrices on the simplex, and what is fitted with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from voxpop.channels.base import belief_counts, require_table
from voxpop.engines.starts import shares
from voxpop.learn.data import Data
from voxpop.learn.fused import foretold, picked
from voxpop.learn.objective import Objective, Parcel, per_task
from voxpop.numerics.simplex import normalise
from voxpop.votes import Batch

MATRIX = "a confusion matrix per worker"


class CrowdWeights(nn.Module, ABC):
    """Free weights of each worker, [label, worker, truth], of which the softmax over the labels is p(label | truth).

    They are the crowd's, shared, plus each worker's own: so those with few votes stay near the crowd.
    """

    own: nn.Parameter

    @property
    @abstractmethod
    def workers(self) -> int:
        """M."""

    @abstractmethod
    def own_of(self, who: Tensor) -> Tensor:
        """What is these workers' own."""

    @abstractmethod
    def made(self, own: Tensor) -> Tensor:
        """The free weights of workers, from what is their own: K,U,K."""

    def of(self, who: Tensor) -> Tensor:
        """The free weights of some workers (in order, each once): K,U,K."""
        return self.made(self.own if len(who) == self.workers else self.own_of(who))

    def given(self, batch: Batch) -> Tensor:
        """log p(label | truth) of each vote: V,K."""
        who, place = batch.by_whom
        return picked(self.of(who), place, batch)

    def log(self) -> Tensor:
        """log A: M,K,K as [worker, truth, label]."""
        return self.made(self.own).log_softmax(0).permute(1, 2, 0)


class Confusions(CrowdWeights):
    """A confusion matrix per worker."""

    def __init__(self, common: Tensor, own: Tensor) -> None:
        super().__init__()
        self.common = nn.Parameter(common)  # K,1,K as [label, all, truth]
        self.own = nn.Parameter(own)  # K,M,K as [label, worker, truth]

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
        own = (each.log() - crowd.log()).permute(2, 0, 1).float().contiguous()
        return cls(crowd.log().t()[:, None].float().contiguous(), own)

    @classmethod
    def alike(cls, data: Data) -> Confusions:
        """Everybody's weights are the identity."""
        M, K = data.votes.M, data.votes.K
        require_table(M, K, MATRIX)
        return cls(torch.eye(K)[:, None].contiguous(), torch.zeros(K, M, K))

    @property
    def workers(self) -> int:
        return self.own.shape[1]

    def own_of(self, who: Tensor) -> Tensor:
        return self.own.index_select(1, who)

    def made(self, own: Tensor) -> Tensor:
        return self.common + own


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
    pull = 0.0  # 1 / variance of a Gaussian prior on ``own``: what the optimiser calls weight decay
    votes = 1  # V

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        logp = self.logp(x)  # B,K
        if parcel.gold is None:
            return self.of(logp, x, parcel.batch)
        return self.of(certain(logp, parcel.gold), x, parcel.batch) + self.errors(logp, parcel.gold)

    def errors(self, logp: Tensor, gold: Tensor) -> Tensor | float:
        """Known truths (B, -1 elsewhere) as the network's own error, a task as much as any other."""
        if not bool((gold >= 0).any()):
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

    @property
    def own(self) -> nn.Parameter:
        """What is each worker's own."""
        own = self.crowd.own
        assert isinstance(own, nn.Parameter)
        return own

    def groups(self, lr: float) -> list[dict[str, Any]]:
        """The network, the crowd, and what is a worker's own: with its prior, pull / 2 |own|^2 over all votes."""
        crowd = [weights for weights in self.learned_by_crowd() if weights is not self.own]
        apart = {id(weights) for weights in (*crowd, self.own)}
        rest = [weights for weights in self.parameters() if id(weights) not in apart]
        return [
            {"params": rest, "lr": lr},
            {"params": crowd, "lr": self.crowd_lr, "weight_decay": 0.0},
            {"params": [self.own], "lr": self.crowd_lr, "weight_decay": self.pull / max(self.votes, 1)},
        ]


class Mixture(CrowdObjective):
    """p(label | x) = sum over truths of p(truth | x) A[truth, label] (paper 003, coupled cross-entropy, CCEM)."""

    crowd: CrowdWeights

    def __init__(self, network: nn.Module, crowd: CrowdWeights, data: Data, *, crowd_lr: float, pull: float) -> None:
        super().__init__(network)
        self.crowd, self.crowd_lr, self.pull, self.votes = crowd, crowd_lr, pull, data.batch.V
        self.workers = OverWorkers(data)

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return self.crowd.given(batch)

    def table(self) -> Tensor | None:
        return self.crowd.log().detach().exp()

    def log_table(self) -> Tensor | None:
        return self.crowd.log().detach()
