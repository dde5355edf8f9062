"""BayesDGC: Li, Huang, Chen (paper 000), Crowdsourcing aggregation with deep Bayesian learning."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from voxpop.channels.base import require_table
from voxpop.channels.dirichlet import DirichletConfusion, posterior, prior_rows
from voxpop.engines import em
from voxpop.engines.svi import Naturals
from voxpop.learn.ascent import uniform
from voxpop.learn.believing import Believing
from voxpop.learn.classical import Classical
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective, Parcel, soft_cross_entropy
from voxpop.learn.prior import NetworkPrior
from voxpop.numerics.simplex import normalise
from voxpop.options import above, anything, at_least, flag, option, pair_above
from voxpop.results import Evidence
from voxpop.votes import Batch

TOGETHER, STEPS = 512, 16  # tasks for one natural step, where there are enough for so many steps in a pass


class Bayesian(Believing):
    """The network's log-softmax is the potential of eq. 12, so q*(Y) is the optimum of the bound itself and the
    second term of eq. 16 vanishes: the network descends the cross-entropy with q*, the rest takes natural steps.

    Eq. 4 multiplies pi and the network without normalising, and eqs. 17, 18 need it so: it is kept. But a network that
    is trained on q*(Y) tells how frequent classes are, as pi does: multiplied, a rare class is rarer than it is, until
    it is gone. So the potential is the network's over its own mean: what the features add (``ratio``).
    """

    refreshes = True
    divides = False  # its natural steps are made of whole batches
    usual: Tensor

    def __init__(
        self,
        network: nn.Module,
        data: Data,
        *,
        alpha: float,
        prior: Tensor,
        step_size: float,
        decay: float,
        ratio: bool,
    ) -> None:
        super().__init__(network, data)
        require_table(data.votes.M, data.votes.K, "a confusion matrix per worker")
        self.step_size, self.decay = step_size, decay
        self.tasks = max(data.positions.numel(), 1)
        self.q = Naturals.at_prior(data.votes.M, prior, alpha)
        self.passes = 0.0  # over the data, so far
        self.ratio = ratio
        self._said = torch.empty(0)  # what the classes and the votes say of tasks until the next natural step: B,K
        self._found: list[Tensor] = []  # q* of those that were seen since the last
        self.register_buffer("usual", torch.zeros(data.votes.K))  # log of K times the network's mean over the tasks

    def potential(self, logp: Tensor) -> Tensor:
        """What eq. 12 multiplies pi with, from log p(truth | x): B,K."""
        return logp - self.usual

    def _become_usual(self, logp: Tensor) -> None:
        if self.ratio:
            self.usual.copy_(logp.logsumexp(0) - math.log(len(logp) / logp.shape[1]))

    def learned(self, data: Data, done: int) -> Tensor:
        return data.positions

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        """Algorithm 1: q* of these tasks by eq. 14, the network's loss; after some parcels a natural step of the crowd,
        with all of their tasks."""
        logits: Tensor = self.network(x)
        with torch.no_grad():
            logp = logits.float().log_softmax(1)
            if self.passes < 1:  # no pass has told what is usual
                self._become_usual(logp)
            batch, own = parcel.together(max(1, min(TOGETHER, self.tasks // STEPS) // parcel.usual_size))
            if own.start == 0:
                self.q, self._found = self.q.to(batch.device), []
                self._said = self.q.log_classes() + self.q.evidence(batch)
            belief = em.clamp(self._said[own] + self.potential(logp), parcel.gold).softmax(1)  # eq. 14
            self._found.append(belief)
            if own.stop == batch.B:
                self._follow(batch, torch.cat(self._found))
        return soft_cross_entropy(logits, belief, self.class_weight)

    def _follow(self, batch: Batch, belief: Tensor) -> None:
        share = batch.B / self.tasks
        self.q.step(batch, belief, self.rate(share), share)
        self.passes += share

    def rate(self, share: float) -> float:
        """Constant for decay = 0, else Robbins-Monro. The steps of a first pass over the data add up to the step size,
        however many batches it has."""
        return float(min(1.0, self.step_size * share * (1 + self.passes) ** -self.decay))

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        """The bound of eq. 15 and q*(Y) of all tasks. At the start, and around a model without a gradient, there is
        also a step of size 1 on the whole data: the conjugate update."""
        device = self.belief.device if logp is None else logp.device
        batch, gold = data.batch.to(device), data.known
        self.q, positions = self.q.to(device), data.positions.to(device)
        self.belief = self.belief.to(device)
        if logp is None or isinstance(self.network, Classical):
            self.q.step(batch, self.belief[positions], 1.0, 1.0)
        if logp is not None:
            self._become_usual(logp)
        prior = NetworkPrior(self.q.log_classes() + (uniform(batch) if logp is None else self.potential(logp)))
        model = em.Model(DirichletConfusion(self.q.prior), prior, None if gold is None else gold.to(device))
        belief, bound = model.expect(batch, posterior(self.q.of_workers), {})
        self.belief[positions] = belief
        return bound - self.q.classes_kl()

    # -- what it knows ----------------------------------------------------------------------------

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return self.q.likelihood(batch).log()

    def prior_of(self, x: Tensor) -> Tensor:
        return self.potential(self.logp(x)) + self.q.log_classes()

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        return (prior + self.q.evidence(batch)).softmax(1)

    def table(self) -> Tensor | None:
        return normalise(self.q.of_workers.transpose(1, 2)).float()

    def evidence(self, prior: Tensor) -> Evidence | None:
        return Evidence("table", {"log": posterior(self.q.of_workers)["log"].cpu()}, prior)

    def carry(self, move: Callable[[Tensor], Tensor]) -> None:
        super().carry(move)
        self.q = self.q.moved(move)

    def state(self) -> dict[str, Tensor]:
        q = {"sums": self.q.sums, "totals": self.q.totals, "classes": self.q.classes}
        q["numbers"] = torch.tensor([self.q.scale, self.passes], dtype=torch.float64)
        return {**super().state(), **{f"q.{name}": t for name, t in q.items()}}

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: t for name, t in state.items() if not name.startswith("q.")})
        scale, self.passes = state["q.numbers"].tolist()
        sums, totals, classes = (state[f"q.{name}"].clone() for name in ("sums", "totals", "classes"))
        self.q = replace(self.q, sums=sums, totals=totals, classes=classes, scale=scale)


@dataclass(repr=False, eq=False)
class BayesDGC(Learner):
    """Dirichlet posteriors of class frequencies and confusion matrices with a network, by natural-gradient SVI.

    After ``fit``, ``pi_posterior_`` holds the parameters of q(pi), K, and ``posterior_`` those of the matrices' rows,
    M,K,K as [worker, truth, label]; of several ``members`` those of the first.
    """

    any_classifier: ClassVar[bool] = True

    model: Any = option(
        "mlp:100", anything(), "the network: linear, mlp, mlp:100 (hidden units), cnn, resnet, or a Module"
    )
    alpha: float = option(1.1, above(0), "Dirichlet parameter of each class")
    beta: tuple[float, float] = option(
        (5.0, 2.0), pair_above(0), "Dirichlet parameters of a row: right, and wrong shared by the wrong labels"
    )
    step_size: float = option(1.0, above(0), "of the natural gradient, over a pass through the data")
    decay: float = option(
        0.0, at_least(0), "step sizes fall with (1 + passes) ** -decay; 0: constant, 0.5 to 1: Robbins-Monro"
    )
    ratio: bool = option(True, flag(), "the network counts over its own mean; false: as eq. 4 has it, see the docs")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        prior = prior_rows(data.votes.K, *self.beta)
        steps: dict[str, Any] = {"step_size": self.step_size, "decay": self.decay, "ratio": self.ratio}
        return Bayesian(net, data, alpha=self.alpha, prior=prior, **steps)

    def fit(self, X: Any, y: Any, gold: Any = None) -> Self:
        super().fit(X, y, gold)
        first = self._objectives[0]
        assert isinstance(first, Bayesian)
        q = first.q
        self.pi_posterior_ = q.of_classes.numpy()  # K
        self.posterior_ = q.of_workers.transpose(1, 2).numpy()  # M,K,K
        return self
