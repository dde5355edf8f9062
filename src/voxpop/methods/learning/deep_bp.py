"""DeepBP: Kim, Cho, Kim, Ok (paper 001), Robust deep learning from crowds with belief propagation, section 3.2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from voxpop.channels.base import Theta, require_table
from voxpop.channels.coin import coin_table
from voxpop.channels.confusion import Confusion
from voxpop.channels.worker_prior import WorkerPrior
from voxpop.engines import em
from voxpop.engines.bp import Factor, Particles, propagate
from voxpop.learn.ascent import Ascending, uniform
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.learn.prior import NetworkPrior
from voxpop.methods.belief_propagation import factor_of, particles
from voxpop.methods.learning.deep_mf import checked_clip
from voxpop.numerics.segments import scatter_sum
from voxpop.options import anything, option, pair_above, share, whole
from voxpop.results import Evidence
from voxpop.votes import Batch

FIRST_ROUNDS = 30  # of the mean field around which draws are made, before the first epoch; then one an epoch


class Propagating(Ascending):
    """Algorithm 2. Messages go on from those of the epoch before.

    Draws are made anew in epochs 1, 2, 4, 8, ..., from the same random numbers: they move as far as the mean field has.
    The channel is the mean of each matrix: it foretells votes, and judges those on new tasks.
    """

    _theta: Theta
    _told: tuple[Batch, Tensor] | None  # the votes and the messages to their workers, where the matrices are not found

    def __init__(
        self, network: nn.Module, prior: WorkerPrior, data: Data, *, samples: int, seed: int, passes: int, most: float
    ) -> None:
        super().__init__(network, Confusion(), data, most=most)
        require_table(data.votes.M, data.votes.K, "a confusion matrix per worker")
        self.prior, self.samples, self.seed, self.passes = prior, samples, seed, passes
        self.factor: Factor | None = None
        self.field: Theta = {}  # the mean field, where draws are made around it,
        self.drawn: Theta = {}  # and as it was when they were made
        self.outgoing: Tensor | None = None  # V,K: log of what each worker says to each of his tasks
        self.epochs = 0

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        device = self.belief.device if logp is None else logp.device
        batch, gold = data.batch.to(device), data.known
        gold = None if gold is None else gold.to(device)
        before = uniform(batch) if logp is None else self.clipped(logp)
        self.belief = self.belief.to(device)
        self.epochs += 1
        factor = self._draw(batch, before, gold, self.belief[data.positions])
        start = None if self.outgoing is None else self.outgoing.to(device)
        run = propagate(
            batch, factor, before, gold, max_iter=self.passes, tol=1e-4, damping=0, start=start
        )  # eqs. 20, 21
        self.outgoing, self._told = run.state.outgoing, (batch, run.state.incoming)
        self.belief[data.positions.to(device)] = run.state.belief
        return None

    @property
    def theta(self) -> Theta:
        """The mean of each matrix, found when it is first asked for after a refresh."""
        if self._told is not None:
            self._theta = Confusion.at(self._mean(*self._told))
            self._told = None
        return self._theta

    @theta.setter
    def theta(self, theta: Theta) -> None:
        self._theta, self._told = theta, None

    def _draw(self, batch: Batch, before: Tensor, gold: Tensor | None, belief: Tensor) -> Factor:
        """The workers' factors; for a named prior by draws around the mean field, which the network moves."""
        if self.factor is None and not self.field:
            self.factor = factor_of(self.prior, batch, self.samples, self.seed)
        if self.factor is not None and not self.field:
            return self.factor
        model = em.Model(self.prior.mean_field(self.samples, self.seed), NetworkPrior(before), gold)
        if self.field:
            belief, _ = model.expect(batch, self.field, {})
            self.field, _ = model.maximise(batch, belief, self.field, None)
        else:
            run = em.fit(batch, model, belief, max_iter=FIRST_ROUNDS, tol=1e-4, stage="mean field")
            self.field = run.state.theta
        if self.epochs & (self.epochs - 1) == 0:
            self.drawn, self.factor = self.field, None
        if self.factor is None:
            self.factor = particles(self.prior, batch, self.drawn, self.samples, self.seed)
        return self.factor

    def _mean(self, batch: Batch, incoming: Tensor) -> Tensor:
        """Each worker's mean matrix given his votes: M,K,K as [worker, truth, label]."""
        if isinstance(self.factor, Particles):
            return self.factor.posterior_table(incoming)
        right = (
            scatter_sum(incoming.gather(1, batch.label[:, None].long())[:, 0], batch.worker, batch.M) + self.prior.right
        )
        table = coin_table(
            (right / (batch.worker_offsets.diff() + self.prior.right + self.prior.wrong))[:, None], batch.K
        )
        assert table is not None
        return table

    def evidence(self, prior: Tensor) -> Evidence | None:
        return None if self.outgoing is None else Evidence("messages", {"log": self.outgoing.cpu()}, prior)

    # -- kept and brought back ----------------------------------------------------------------------

    def carry(self, move: Callable[[Tensor], Tensor]) -> None:
        super().carry(move)
        self.field, self.drawn = ({n: move(t) for n, t in of.items()} for of in (self.field, self.drawn))
        self.outgoing = None if self.outgoing is None else move(self.outgoing)
        self.factor = None  # it is drawn again where it is wanted

    def state(self) -> dict[str, Tensor]:
        own = {f"field.{name}": t for name, t in self.field.items()} | {"epochs": torch.tensor(self.epochs)}
        own |= {f"drawn.{name}": t for name, t in self.drawn.items()}
        return {**super().state(), **own, **({} if self.outgoing is None else {"outgoing": self.outgoing})}

    def restore(self, state: dict[str, Tensor]) -> None:
        rest = dict(state)
        self.epochs, self.outgoing = int(rest.pop("epochs")), rest.pop("outgoing", None)
        for name in ("field", "drawn"):
            mine = {key: rest.pop(key) for key in list(rest) if key.startswith(f"{name}.")}
            setattr(self, name, {key.partition(".")[2]: t for key, t in mine.items()})
        super().restore(rest)


@dataclass(repr=False, eq=False)
class DeepBP(Learner):
    """Belief propagation with the matrices integrated out, the clipped network for the prior: Algorithm 2.

    One coin and two classes are done exactly (up to 900 votes a worker), any other prior by ``samples`` draws (eq. 42).
    """

    any_classifier: ClassVar[bool] = True

    workers_prior: Any = option(
        "dirichlet", anything(), "one-coin, two-coin, dirichlet, S,K,K prototypes, or a callable (S, seed)"
    )
    alpha: tuple[float, float] = option((2.0, 1.0), pair_above(0), "the named priors' parameters: right, wrong")
    clip: float = option(0.9, share(), "what the network may say of a class at most, when it meets the votes")
    samples: int = option(400, whole(2), "draws of a worker's confusion matrix")
    passes: int = option(1, whole(1), "of messages before each epoch; they go on from the last ones")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        K = data.votes.K
        prior = WorkerPrior(self.workers_prior, K, *self.alpha)
        most = checked_clip(self.clip, K)
        return Propagating(net, prior, data, samples=self.samples, seed=self.seed, passes=self.passes, most=most)
