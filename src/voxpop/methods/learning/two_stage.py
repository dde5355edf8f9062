"""Two stages: the votes become labels, then a classifier learns them. What every other method is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.channels.base import Channel
from voxpop.channels.coin import Coin
from voxpop.channels.dirichlet import prior_rows
from voxpop.channels.hierarchical import HierarchicalConfusion
from voxpop.engines import em
from voxpop.learn.ascent import Ascending, uniform
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.learn.prior import NetworkPrior
from voxpop.methods.base import Method
from voxpop.methods.default import Default
from voxpop.methods.registry import METHODS, find
from voxpop.options import Rule, flag, option, plain
from voxpop.results import Consensus

MOST_CELLS = 1 << 23  # of all confusion matrices together
_AGGREGATES = Rule(
    lambda v: isinstance(v, Method | str),
    "default, the name of a method that infers, or such a method with its options",
)


class Labelled(Ascending):
    """The belief is found once, from the votes alone; then the workers are judged by it."""

    def __init__(self, network: nn.Module, aggregate: Method, hard: bool, data: Data) -> None:
        votes = data.votes
        super().__init__(network, channel_for(votes.M, votes.K), data)
        self.aggregate, self.hard = aggregate, hard
        self.found: Consensus | None = None

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        if self.found is not None:
            return None
        self.found = aggregated(self.aggregate, data)
        soft = self.found.belief if self.found.sure is None else self.found.sure
        hard = F.one_hot(self.found.label.long(), data.votes.K).float()
        self.belief[data.positions] = (hard if self.hard else soft)[data.positions]
        belief = self.belief[data.positions]
        self.theta = em.settle(data.batch, em.Model(self.channel, NetworkPrior(uniform(data.batch))), belief, rounds=20)
        self.refreshes = False  # there is nothing new before the next epoch
        return None

    def learned(self, data: Data, done: int) -> Tensor:
        return data.voted

    def believed(self) -> Tensor | None:
        return None  # what the classifier and the crowd make of it together is not what was trained on


def aggregated(aggregate: Method, data: Data) -> Consensus:
    """The consensus of the votes on these tasks alone; the others' are not looked at."""
    votes = data.votes
    if data.tasks is not None:
        here = torch.zeros(votes.N, dtype=torch.bool)
        here[data.positions] = True
        votes = votes.select(here[votes.task.long()])
    return replace(aggregate._infer(votes, data.gold), gold=data.gold)


def channel_for(workers: int, classes: int) -> Channel:
    """What judges workers by a belief: confusion matrices pooled towards the crowd's; coins where those are many."""
    if workers * classes**2 > MOST_CELLS:
        return Coin(classes, shared=True, a=2.0, b=1.0, variational=True)
    return HierarchicalConfusion(prior_rows(classes, 2.0, 1.0), weight=0.1)


@dataclass(repr=False, eq=False)
class TwoStage(Learner):
    """Aggregate the votes, then train on the labels: soft as the aggregate is sure of them, or ``hard``.

    With majority-vote soft labels are the shares of the votes. ``consensus_`` is the aggregate's, which the classifier
    does not change (it only speaks for tasks without votes).
    """

    any_classifier: ClassVar[bool] = True

    aggregate: Any = option("default", _AGGREGATES, "default, or the name of any method that infers from votes alone")
    hard: bool = option(False, flag(), "train on the likeliest label only")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        return Labelled(net, self._method(), self.hard, data)

    def _method(self) -> Method:
        if isinstance(self.aggregate, Method):
            return self.aggregate
        if self.aggregate == "default":
            return Default(seed=self.seed)
        kind = find(self.aggregate, METHODS).load()
        made: Method = kind()
        return made

    def fit(self, X: Any, y: Any, gold: Any = None) -> Self:
        super().fit(X, y, gold)
        first = self._objectives[0]
        assert isinstance(first, Labelled)
        found = first.found
        if found is not None:
            notes = (f"labels by {found.method}", *found.notes, *self._notes(self.choice_))
            found = replace(found, method=self._called, options=plain(self), notes=notes)
            self.consensus_ = _with_predictions(found, self.consensus_.belief)
        return self


def _with_predictions(found: Consensus, predicted: Tensor) -> Consensus:
    """Of tasks that nobody labelled, what the classifier says of them (N,K)."""
    silent = found.votes.whole.votes_per_task == 0
    if found.gold is not None:
        silent &= found.gold < 0
    if not bool(silent.any()):
        return found
    belief = torch.where(silent[:, None], predicted, found.belief)
    sure = None if found.sure is None else torch.where(silent[:, None], predicted, found.sure)
    evidence = found.evidence
    if evidence is not None:
        evidence = replace(evidence, prior=torch.where(silent[:, None], predicted.log(), evidence.prior))
    return replace(found, belief=belief, sure=sure, evidence=evidence)
