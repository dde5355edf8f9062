"""Cao, Xu, Kong and Wang, "Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds" (paper 004).

A classifier h of the features and an aggregator g of the votes are trained to tell as much as possible of each other,
in f-mutual information. What both know is the truth, whatever else the workers' mistakes have in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]
from torch import Tensor, nn

from voxpop.channels.base import belief_counts, require_table
from voxpop.engines.starts import shares
from voxpop.errors import BadOption
from voxpop.learn.data import Data
from voxpop.learn.finish import combined
from voxpop.learn.learner import Learner, Variants
from voxpop.learn.objective import Objective
from voxpop.numerics.simplex import entropy, normalise
from voxpop.options import Rule, above, one_of, option, optional
from voxpop.votes import Batch


@dataclass(frozen=True)
class Divergence:
    """Table 1: what agreement on one task is worth, from log K, and what it costs across two tasks, from K."""

    reward: Callable[[Tensor], Tensor]  # the derivative of f
    cost: Callable[[Tensor], Tensor]  # f* of the derivative


DIVERGENCES: Mapping[str, Divergence] = MappingProxyType(
    {
        "kl": Divergence(lambda log: 1 + log, lambda K: K),
        "pearson": Divergence(lambda log: 2 * torch.expm1(log), lambda K: K.square() - 1),
        "js": Divergence(lambda log: math.log(2) + F.logsigmoid(log), lambda K: torch.log1p(K) - math.log(2)),
    }
)


def gains(h: Tensor, g: Tensor, prior: Tensor, divergence: Divergence, weight: Tensor | None = None) -> Tensor:
    """Eq. 1, what each task adds to the f-mutual information gain: B. Given log h and log g (B,K) and log p (K).

    The mean goes to the sum over x and y of P(x) P(y) f(P(x, y) / (P(x) P(y))). Tasks may weigh differently: B.
    Pairs are all those of two different tasks; where there is one task only, there is no gain to speak of: empty.
    """
    B = len(h)
    if B < 2:
        return h[:0, 0]
    w = h.new_ones(B) if weight is None else weight / weight.mean()
    pairs = w.sum().square() - w.square().sum()
    same = torch.logsumexp(h + g - prior, 1)  # B: log K of each task with itself
    K = (h - prior).exp() @ g.exp().T  # B,B
    across = divergence.cost(K) * (1 - torch.eye(B, device=K.device)) @ w  # B
    return w * (divergence.reward(same) - across * B / pairs)


class Renamed(nn.Module):
    """A network whose outputs are taken in another order."""

    order: Tensor

    def __init__(self, network: nn.Module, order: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("order", order)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits[:, self.order]


class Intersection(Objective):
    """The network is the data classifier h; the crowd's aggregator is g = softmax(sum of W e_label + log p).

    The gain is the same if h's and g's classes trade places together: ``rename`` says at last which is which.
    """

    habits: Tensor
    order: Tensor  # K: the network's output that is each class

    def __init__(
        self,
        network: nn.Module,
        data: Data,
        weight: Tensor,
        prior: Tensor,
        *,
        learned: bool,
        divergence: str,
        lr: float,
    ) -> None:
        super().__init__(network)
        self.crowd = nn.Parameter(weight)  # M,K,K as [worker, label, truth]
        self.b = nn.Parameter(prior.log(), requires_grad=learned)  # K; section 3.1: b = log p
        self.divergence, self.crowd_lr = divergence, lr
        self.register_buffer("habits", label_shares(data).log())  # M,K
        self.register_buffer("order", torch.arange(data.votes.K))
        self.renamed = False

    @property
    def log_prior(self) -> Tensor:
        return self.b.log_softmax(0)  # K

    def aggregate(self, batch: Batch) -> Tensor:
        """log g(votes): B,K."""
        table = self.crowd.view(-1, batch.K)
        return (batch.by_task.sum(table) + self.b).log_softmax(1)

    def gains(self, x: Tensor, batch: Batch, weight: Tensor | None = None) -> Tensor:
        return gains(self.logp(x), self.aggregate(batch), self.log_prior, DIVERGENCES[self.divergence], weight)

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        told = self.gains(x, batch, self._weights(batch))
        return -told.mean() if len(told) else 0.0 * self.logp(x).sum()

    def _weights(self, batch: Batch) -> Tensor | None:
        """Of each task, by the classes that its votes name: B. Tilting by the votes leaves them independent of x given
        the truth."""
        if self.class_weight is None:
            return None
        named = normalise(batch.counts())  # B,K
        return (named @ self.class_weight).to(self.crowd)

    def score(self, x: Tensor, batch: Batch) -> Tensor:
        """The gain on tasks that were held out, for any f a lower bound of what x and the votes share: B."""
        return self.gains(x, batch)

    def groups(self, lr: float) -> list[dict[str, Any]]:
        """W at the crowd's rate and without weight decay; p with the network."""
        rest = [p for p in self.parameters() if p is not self.crowd and p.requires_grad]
        return [{"params": rest, "lr": lr}, {"params": [self.crowd], "lr": self.crowd_lr, "weight_decay": 0.0}]

    # -- what it knows ----------------------------------------------------------------------------

    def classifier(self) -> nn.Module:
        return Renamed(self.network, self.order) if self.renamed else self.network

    @torch.no_grad()
    def rename(self, data: Data) -> None:
        """Call each class what the workers call it, most of all those whose labels tell most of it."""
        order = names_of(data.batch, combined(self, data)[0][data.positions])
        self.order.copy_(order)
        self.renamed = not torch.equal(order, torch.arange(len(order)))
        self.crowd.copy_(self.crowd[:, :, order])
        self.b.copy_(self.b[order])

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore(state)
        self.renamed = not torch.equal(self.order.cpu(), torch.arange(len(self.order)))

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        """log p(label | truth) of each vote, V,K: Bayes' rule on one vote's p(truth | label) and how often the worker
        says each label. W itself knows it up to a constant for each label only."""
        mine = self.crowd[batch.worker.long()]  # V,K,K as [label, truth]
        back = (mine + self.b).log_softmax(2) + self.habits[batch.worker.long()][:, :, None]
        label = batch.label.long()[:, None, None].expand(-1, 1, batch.K)
        return back.gather(1, label)[:, 0] - back.logsumexp(1)

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        """The data-crowds forecaster: h g / p, normalised."""
        return (prior + self.aggregate(batch) - self.log_prior).softmax(1)

    def prior_of(self, x: Tensor) -> Tensor:
        """h as it is: the gain made it as sure as it is to be where it meets g."""
        return self.logp(x)

    def log_table(self) -> Tensor | None:
        return self.crowd.detach().transpose(1, 2)


def names_of(batch: Batch, belief: Tensor) -> Tensor:
    """Which class of a belief (B,K) each label stands for, one to one: K. Workers count by what they know of it."""
    counts = belief_counts(batch, belief)  # M,K,K as [worker, label, class]
    joint = counts / counts.sum((1, 2), keepdim=True).clamp_min(1)
    apart = joint.sum(2, keepdim=True) * joint.sum(1, keepdim=True)
    known = (torch.special.xlogy(joint, joint) - torch.special.xlogy(joint, apart)).sum((1, 2))  # M: information
    agreed = torch.einsum("m,mlk->lk", known, counts - apart * counts.sum((1, 2), keepdim=True))  # K,K
    agreed += 1e-6 * agreed.abs().amax() * torch.eye(batch.K)  # what nobody says keeps its name
    return torch.from_numpy(linear_sum_assignment(agreed.numpy(), maximize=True)[1])


# -- where W and p begin ------------------------------------------------------------------------------


def label_shares(data: Data) -> Tensor:
    """How often each worker says each label, a vote spread over all of them: M,K."""
    M, K = data.votes.M, data.votes.K
    return normalise(torch.bincount(data.batch.pair.long(), minlength=M * K).view(M, K) + 1 / K).float()


def counts_start(data: Data, pseudo: float) -> Tensor:
    """Eq. 2: log of how often a worker says each label where votes say each truth: M,K,K as [worker, label, truth].

    The sums are over the worker's own tasks, and ``pseudo`` votes are spread over each row. Votes say a truth as far
    as they vary: else a naive majority would have its way.
    """
    counts = belief_counts(data.batch, varied_shares(data))  # M,K,K
    given = normalise(counts.transpose(1, 2) + pseudo / data.votes.K)  # M,K,K as [worker, truth, label]
    return given.log().float().transpose(1, 2).contiguous()


def varied_shares(data: Data) -> Tensor:
    """Vote shares, a worker's votes weighing as much as the entropy of his labels; known truths in place: B,K."""
    variety = entropy(label_shares(data))  # M
    said = variety[:, None, None] * torch.eye(data.votes.K)  # M,K,K
    belief = normalise(data.batch.by_task.sum(said.flatten(0, 1)))
    if data.known is not None:
        known = data.known >= 0
        belief[known] = F.one_hot(data.known[known], data.votes.K).float()
    return belief


def identity_start(data: Data, scale: float) -> Tensor:
    return scale * torch.eye(data.votes.K).repeat(data.votes.M, 1, 1)


STARTS: Mapping[str, Callable[[Data], Tensor]] = MappingProxyType(
    {
        "counts": lambda data: counts_start(data, 0.01),
        "identity": lambda data: identity_start(data, 1.0),
        "average": lambda data: identity_start(data, data.batch.B / max(data.batch.V, 1)),  # 1 over votes a task
    }
)
HELD_OUT = "held-out"
RATES = (1e-2, 3e-3, 3e-2)  # of the crowd's weights: slow ones wait for the network, fast ones need few epochs


def first_prior(prior: Any, data: Data) -> Tensor:
    """p to begin with, or to stay: K."""
    K = data.votes.K
    if prior in ("uniform", "learned"):
        return torch.full((K,), 1 / K)
    if prior == "frequencies":
        return normalise(shares(data.votes, data.gold)[data.voted].sum(0) + 1)
    if len(prior) != K:
        raise BadOption(f"MaxMIG: prior has {len(prior)} classes, the votes {K}; give a share for each")
    given = torch.ones(K)
    for name, share in prior.items():
        given[data.votes.classes.position(name)] = share
    return normalise(given)


def _priors() -> Rule:
    names = ("uniform", "frequencies", "learned")
    return Rule(
        lambda v: all(share > 0 for share in v.values()) if isinstance(v, Mapping) else v in names,
        f"one of {', '.join(names)}, or a mapping of every class to its share",
    )


@dataclass(repr=False, eq=False)
class MaxMIG(Learner):
    """What the features and the votes know in common, whatever mistakes the workers share; see ``forecast``."""

    divergence: str = option("kl", one_of(*DIVERGENCES), "f: kl, pearson, js (Jensen-Shannon)")
    prior: Any = option("uniform", _priors(), "p: uniform, frequencies (of the votes), learned, or class -> share")
    start: str = option(
        HELD_OUT, one_of(HELD_OUT, *STARTS), "W at first: counts (eq. 2), identity, average; held-out gain tells"
    )
    crowd_lr: float | None = option(
        None, optional(above(0)), "learning rate of the crowd's weights; none: held-out gain tells"
    )

    def objective(self, net: nn.Module, data: Data) -> Objective:
        require_table(data.votes.M, data.votes.K, "a matrix of weights per worker")
        start = next(iter(STARTS)) if self.start == HELD_OUT else self.start
        return Intersection(
            net,
            data,
            STARTS[start](data),
            first_prior(self.prior, data),
            learned=self.prior == "learned",
            divergence=self.divergence,
            lr=self.crowd_lr or RATES[0],
        )

    def _train(self, data: Data, epochs: int) -> tuple[Objective, list[Any]]:
        objective, history = super()._train(data, epochs)
        assert isinstance(objective, Intersection)
        objective.cpu().rename(data)
        return objective, history

    def variants(self, data: Data) -> Variants:
        """Starts, at the rate that is given or the middle one; rates, where the start is given."""
        starts = tuple(STARTS) if self.start == HELD_OUT else (self.start,)
        rates = (self.crowd_lr,) if self.crowd_lr else RATES[:1] if self.start == HELD_OUT else RATES
        pairs = [(start, rate) for start in starts for rate in rates]
        return {_words(*pair): {"start": pair[0], "crowd_lr": pair[1]} for pair in pairs}

    def refinements(self, best: Learner) -> Variants:
        """The other rates, from the start that was best."""
        assert isinstance(best, MaxMIG)
        if self.start != HELD_OUT or self.crowd_lr:
            return {}
        return {_words(best.start, rate): {"crowd_lr": rate} for rate in RATES[1:]}


def _words(start: str, rate: float) -> str:
    return f"started from {start}, the crowd at a rate of {rate:g}"
