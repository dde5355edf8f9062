"""The expertise of workers as paper 002 (Deep Active Learning from targeted Crowds) has it, and how it is learned.

A vote is right with the chance eta = sigmoid(u_j' z_i), z_i = F x_i, and is any wrong label alike with 1 - eta
(eqs. 5, 6, 8; for K > 2 so that they sum to one). Workers are drawn around the crowd's mean, u_j ~ N(m, I / penalty)
(eq. 7 with m = 0). A last topic is 1 for every task: it carries how good a worker is anywhere.

u/c and cF are one model, so a prior on u alone would forbid nothing: F has one too, under which topics have unit
variance. Features are scaled so that a row of x has length one on average, and F's entries are N(0, 1).

A point for each u is too sure: eleven numbers fit five votes of a worker, and the better the larger F is; so F grows,
and every vote confirms itself. With ``doubt`` u_j is Gaussian around its best value (Laplace's approximation, of
diagonal precision), and F is learned on average over that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.channels.base import Stats, Theta
from voxpop.channels.own_label import OwnLabelChannel, add_own, own_belief
from voxpop.learn.ascent import Ascending
from voxpop.learn.climb import climb
from voxpop.learn.data import Data
from voxpop.learn.dropout import draws, mean_of
from voxpop.learn.hill import Hill, Prior
from voxpop.learn.places import Places, aligned, topics
from voxpop.numerics.pairs import Pairs
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import segment_sum
from voxpop.results import Evidence
from voxpop.votes import Batch

FIRST_STEPS = 10  # of L-BFGS in the first M-step, at least; later ones go on from where the last has come to
EXPLAINED = 1 << 27  # numbers: where votes and classes are more, what each vote said is not kept


@dataclass(frozen=True, eq=False)
class Reliability(OwnLabelChannel):
    """The channel. ``theta``: workers (M,d+1), mean (d+1); map (d,D) where the topics are learned; with doubt also
    spread (M,d+1), the variances of the workers' embeddings."""

    places: Places
    topics: int | None  # d; None: z = x, an embedding for each worker in the space of the features
    prior: Prior
    steps: int = 10  # of L-BFGS, or passes of stochastic gradient ascent, in an M-step
    inner: str = "lbfgs"
    rate: float = 0.05
    doubt: bool = False  # whether F is learned on average over what u may be
    seed: int = 0

    def parts(self, batch: Batch, theta: Theta) -> tuple[Tensor, Tensor]:
        return said(self.places.standing(batch.worker, batch.offsets, theta).score, batch.K)

    @staticmethod
    def scores(batch: Batch, theta: Theta, z: Tensor) -> Tensor:
        """u_j' z_i of each vote: V."""
        return Pairs(batch.worker, batch.offsets).dots(aligned(z), aligned(theta["workers"]))

    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        return {
            "right": own_belief(batch, belief),  # V
            "worker": batch.worker,
            "offsets": batch.offsets,
            "sizes": torch.tensor([batch.M, batch.K]),
        }

    def penalty(self, theta: Theta) -> Tensor:
        """log p(u, F); with doubt also the volume that the votes leave to u, as in Laplace's evidence."""
        total = self.prior.log(theta)
        if "spread" in theta:
            total = total + 0.5 * (self.prior.penalty * theta["spread"].double()).log().sum()
        return total

    def start(self, workers: int) -> Theta:
        """Everybody as the crowd; topics at random, from the seed."""
        device = self.places.device
        d = self.places.width if self.topics is None else self.topics
        theta = {"workers": torch.zeros(workers, d + 1, device=device), "mean": torch.zeros(d + 1, device=device)}
        if self.topics is not None:
            rng = generator(self.seed, "topics")
            theta["map"] = torch.randn(d, self.places.width, generator=rng).to(device)
        return theta

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        """The M-step of the crowd: eq. 14 made larger, by Algorithm 2 or faster."""
        M, K = stats["sizes"].tolist()
        steps = self.steps if theta is not None else max(self.steps, FIRST_STEPS)
        theta = self.start(M) if theta is None else theta
        hill, point = self.hill(stats, K), {name: part for name, part in theta.items() if name != "spread"}
        if self.inner == "sgd":
            point = self.ascend(hill, point)
        elif "spread" in theta:  # after the first M-step: before it nothing is known of u, and F would not grow at all
            point = climb(hill.doubtful(hill.at(point), theta["spread"]), point, steps)
        else:
            point = climb(hill, point, steps)
        return point | {"spread": hill.spread(hill.at(point))} if self.doubt else point

    def hill(self, stats: Stats, classes: int) -> Hill:
        """What is made larger: J, eq. 15."""
        wrong = math.log(max(classes - 1, 1))
        return Hill(self.places, stats["worker"], stats["offsets"], stats["right"], wrong, self.prior)

    def ascend(self, hill: Hill, theta: Theta) -> Theta:
        """Algorithm 2: passes over the votes in random order, some at a time; first u takes its step, then F."""
        rng = generator(self.seed, "votes", len(hill.right))
        theta = {name: part.clone() for name, part in theta.items()}
        x = torch.cat(list(self.places.features()))[:, : self.places.width]  # N,D
        task = torch.repeat_interleave(hill.offsets.diff())
        votes = {"right": hill.right, "worker": hill.worker.long(), "task": task}
        V, share = len(hill.right), torch.bincount(hill.worker, minlength=len(theta["workers"]))
        for number in range(self.steps):
            rate = self.rate / (1 + number) ** 0.5
            if self.doubt:
                theta["spread"] = hill.spread(hill.at({name: part.clone() for name, part in theta.items()}))
            for some in torch.split(torch.randperm(V, generator=rng).to(x.device), 128):
                self._ascend(theta, x, {k: of[some] for k, of in votes.items()}, share, V, rate)
        theta["workers"][share == 0] = theta["mean"]  # nothing else is known of them
        theta.pop("spread", None)
        return theta

    def _ascend(self, theta: Theta, x: Tensor, votes: Stats, share: Tensor, V: int, rate: float) -> None:
        """One step up of each, in place; every vote carries its share of its worker's prior and of the rest's."""
        worker, at, right = votes["worker"], x[votes["task"]], votes["right"]
        z, part = topics(at, theta.get("map")), len(worker) / V
        u = theta["workers"][worker]
        away = (u - theta["mean"]) * (self.prior.penalty / share[worker])[:, None]
        error = (right - torch.sigmoid((u * z).sum(1)))[:, None]
        theta["workers"].index_add_(0, worker, rate * (error * z - away))  # eq. 19
        if self.prior.shared:
            theta["mean"] += rate * (away.sum(0) - theta["mean"] * part)
        if "map" in theta:
            u = theta["workers"][worker]
            eta = torch.sigmoid((u * z).sum(1))[:, None]
            of_z = (right[:, None] - eta) * u
            if "spread" in theta:
                of_z = of_z - eta * (1 - eta) * theta["spread"][worker] * z
            theta["map"] += rate * (of_z[:, :-1].t() @ at - theta["map"] * part)  # eq. 20


def said(score: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """log p(label) if the truth is another class, and how much more if it is the label, from scores: V each."""
    wrong = math.log(max(classes - 1, 1))
    return F.logsigmoid(-score) - wrong, score + wrong


def by_truth(score: Tensor, batch: Batch) -> Tensor:
    """log p(label | truth) of each vote under each truth, from scores: V,K."""
    other, gain = said(score, batch.K)
    return other[:, None].repeat(1, batch.K).scatter_add_(1, batch.label[:, None].long(), gain[:, None])


class Expert(Ascending):
    """The network by Monte Carlo dropout for the prior on the truths, and the crowd's expertise for its channel.

    Before each epoch an E-step (eq. 12) and the M-step of the crowd (eq. 14); the epoch is the network's (eq. 13).
    """

    def __init__(
        self,
        network: nn.Module,
        lift: Any,
        data: Data,
        channel: Callable[[Places], Reliability],
        *,
        samples: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(network, channel(Places(data.rows, lift, data.positions)), data)
        self.lift, self.samples, self.seed = lift, samples, seed
        self._batch: Batch | None = None  # the votes that the E-steps are about
        self._z: Tensor | None = None

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        assert isinstance(self.channel, Reliability)
        if not self.theta:
            self.lift.learn(data.rows)
        device = next(self.lift.buffers()).device
        self.channel.places.device, self.belief = device, self.belief.to(device)
        self.theta = {name: part.to(device) for name, part in self.theta.items()}
        self._batch, self._z = data.batch, None
        return super().refresh(data, logp)

    @property
    def z(self) -> Tensor:
        """Where the tasks lie that it was trained on: N,d+1."""
        assert isinstance(self.channel, Reliability)
        if self._z is None:
            self._z = self.channel.places.lie(self.theta.get("map"))
        return self._z

    def evidence(self, prior: Tensor) -> Evidence | None:
        """What each vote said, as it was said: it depends on the features, which a Consensus does not keep."""
        if self._batch is None or self._batch.V * self._batch.K > EXPLAINED:
            return None
        batch = self._batch.to(self.belief.device)
        log = by_truth(Reliability.scores(batch, self.theta, self.z), batch)
        return Evidence("messages", {"log": log.float().cpu()}, prior.cpu())

    def logp(self, x: Tensor) -> Tensor:
        """Eq. 4; while the network trains, what it says now."""
        return super().logp(x) if self.training else mean_of(self.draws(x))

    def draws(self, x: Tensor) -> Tensor:
        """log p(class | x) under each draw of the network's weights: T,B,K."""
        return draws(self.network, x, self.samples, self.seed)

    def topics_of(self, x: Tensor) -> Tensor:
        """z of rows: B,d+1."""
        return topics(self.lift(x), self.theta.get("map"))

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return by_truth(self._scores(x, batch), batch)

    def right(self, x: Tensor, batch: Batch) -> Tensor:
        """eta of each vote (eq. 6): V."""
        return torch.sigmoid(self._scores(x, batch))

    def _scores(self, x: Tensor, batch: Batch) -> Tensor:
        return Reliability.scores(batch, self.theta, self.topics_of(x))

    def prior_of(self, x: Tensor) -> Tensor:
        """As in the E-step, which made the belief."""
        return self.logp(x)

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        """Eq. 12; p(u_j) does not depend on the truth and cancels."""
        return (prior + self.evidence_of(x, batch)).softmax(1)

    def evidence_of(self, x: Tensor, batch: Batch) -> Tensor:
        """log p(votes | truth) of each task: B,K."""
        other, gain = said(self._scores(x, batch), batch.K)
        base = segment_sum(other, batch.offsets).float()[:, None].expand(-1, batch.K)
        return add_own(base, batch, gain)

    def learned_online(self, z: Tensor, batch: Batch | None = None, belief: Tensor | None = None) -> None:
        """There are other tasks now; where they lie, and all votes on them."""
        self._z, self._batch = z, batch
        self.belief = self.belief if belief is None else belief

    def carry(self, move: Callable[[Tensor], Tensor]) -> None:
        super().carry(move)
        self._z = None if self._z is None else move(self._z)
        assert isinstance(self.channel, Reliability)
        self.channel.places.forget()

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "z": self.z} if self.theta else super().state()

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: t for name, t in state.items() if name != "z"})
        self._z = state.get("z")
