"""Wei et al. (2022), "Deep learning from multiple noisy annotators as a union": UnionNet-B.

All workers' labels are one variable: which worker said which label. p(worker, label | x) = sum over truths of
p(truth | x) T[truth, (worker, label)], with T's rows softmaxes over all pairs. A row is written here as
T = p(worker | truth) A_worker[truth, label], and p(worker | truth) as n exp(s[worker, truth]) / Z, with n the number of
the worker's votes: votes come in proportion to n, so Z is the mean of exp(s) over the votes of a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from voxpop.learn.crowd import Confusions, Mixture
from voxpop.learn.data import Data
from voxpop.learn.fused import foretold
from voxpop.learn.objective import Objective
from voxpop.methods.learning.descent import Counted
from voxpop.votes import Batch


class Union(Mixture):
    """The cross-entropy of the union's labels."""

    def __init__(self, network: nn.Module, crowd: Confusions, data: Data, *, crowd_lr: float, pull: float) -> None:
        super().__init__(network, crowd, data, crowd_lr=crowd_lr, pull=pull)
        self.voting = nn.Parameter(torch.zeros(data.votes.M, data.votes.K))  # M,K: s

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        s = self.voting[batch.worker.long()]  # V,K
        z = torch.logsumexp(s, 0) - math.log(max(batch.V, 1))  # K: log Z
        union = s - z + self.crowd.given(batch)  # V,K: log T of each vote, less log n
        return self.per_vote(-foretold(logp, union, batch), batch)

    def foretell(self, x: Tensor, batch: Batch) -> Tensor:
        """The label, given who votes: p(truth | x) is weighed by p(worker | truth) first."""
        voting = self.voting + self.workers.votes.to(self.voting)[:, None].log()
        who = voting.log_softmax(0)[batch.worker.long()]  # V,K: log p(worker | truth)
        weighed = (self.logp(x)[batch.task.long()] + who).log_softmax(1)
        return torch.logsumexp(weighed + self.crowd.given(batch), 1)

    def learned_by_crowd(self) -> list[nn.Parameter]:
        return [*super().learned_by_crowd(), self.voting]


@dataclass(repr=False, eq=False)
class UnionNet(Counted):
    """One transition matrix from the truth to all workers' labels together, so that who votes may tell, too."""

    def objective(self, net: nn.Module, data: Data) -> Objective:
        return Union(net, self.confusions(data), data, **self.common)
