"""The expertise of workers as paper 002 (Deep Active Learning from targeted Crowds) has it, and how it is learned.

A vote is right with the chance eta = sigmoid(u_j' z_i), z_i = F x_i, and is any wrong label alike with 1 - eta
(eqs. 5, 6, 8; for K > 2 so that they sum to one). Workers are drawn around the crowd's mean, u_j ~ N(m, I / penalty)
(eq. 7 with m = 0). A last topic is 1 for every task: it carries how good a worker is anywhere.

u/c and cF are one model, so a prior on u alone would forbid nothing: F has one too, under which topics have unit
unit variance. Features are scaled so that a row of x has length one on average, and F's entries are N(0, 1).

A point for each u is too sure: eleven numbers fit five votes of a worker, and the better the larger F is; so F grows,
and every vote confirms itself. With ``doubt`` u_j is Gaussian around its best value (Laplace's approximation, of
diagonal precision), and F is learned on average over that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.channels.base import Stats, Theta
from voxpop.channels.own_label import OwnLabelChannel, add_own, own_belief
from voxpop.learn.ascent import Ascending
from voxpop.learn.data import Data
from voxpop.learn.dropout import draws, mean_of
from voxpop.learn.networks import Scale
from voxpop.learn.rows import CHUNK, Rows
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import scatter_sum, segment_sum
from voxpop.results import Evidence
from voxpop.votes import Batch

KEPT = 1 << 27  # numbers: features that are fewer are kept in memory, others are read again in every step


class Flat(nn.Module):
    """Features on the network's scale as rows of length one on average."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.scale = Scale(rows.shape).learn(rows)
        self.width = int(torch.Size(rows.shape).numel())  # D

    def learn(self, rows: Rows) -> None:
        """Nothing: the scale is known."""

    def forward(self, x: Tensor) -> Tensor:
        scaled: Tensor = self.scale(x)
        return scaled.flatten(1) / math.sqrt(self.width)  # B,D


class Places:
    """The features x of some tasks, in blocks: all that is asked of them is F x, and the slope of a sum in F."""

    def __init__(self, rows: Rows, lift: Any, tasks: Tensor) -> None:
        self.rows, self.lift, self.tasks = rows, lift, tasks
        self.device = torch.device("cpu")
        self._kept: list[Tensor] | None = None

    @property
    def width(self) -> int:
        return int(self.lift.width)

    def blocks(self) -> Iterator[Tensor]:
        """Rows of features, some tasks at a time: read once where they fit, else every time."""
        if self._kept is None and len(self.tasks) * self.width <= KEPT:
            self._kept = list(self._read())
        return self._read() if self._kept is None else iter(self._kept)

    def _read(self) -> Iterator[Tensor]:
        return (self.lift(self.rows.take(part).to(self.device)) for part in torch.split(self.tasks, CHUNK))

    def lie(self, map: Tensor | None) -> Tensor:
        """z of each task: F x and a last topic of 1. Without F, x itself: N,d+1."""
        return torch.cat([topics(x, map) for x in self.blocks()])

    def slope(self, of_z: Tensor) -> Tensor:
        """The slope in F of what has these slopes (N,d) in F x: d,D."""
        start, out = 0, torch.zeros(of_z.shape[1], self.width, device=of_z.device)
        for x in self.blocks():
            out.addmm_(of_z[start : start + len(x)].t(), x)
            start += len(x)
        return out


def topics(x: Tensor, map: Tensor | None) -> Tensor:
    """z = F x (x itself without F), and the topic that is 1 for every task: B,d+1."""
    z = x if map is None else x @ map.t()
    return F.pad(z, (0, 1), value=1.0)


@dataclass(frozen=True)
class Prior:
    """What is believed of embeddings and map before any vote."""

    penalty: float  # lambda = 1 / sigma^2 of eq. 7
    shared: bool  # whether the mean of the embeddings is learned, or zero

    def log(self, theta: Theta) -> Tensor:
        """log p(u, F) up to a constant; float64."""
        away = (theta["workers"] - theta["mean"]).double().square().sum()
        total = -0.5 * self.penalty * away - 0.5 * theta["mean"].double().square().sum()
        return total - 0.5 * theta["map"].double().square().sum() if "map" in theta else total

    def slopes(self, theta: Theta) -> Theta:
        """Eq. 18 with lambda = 1 / sigma^2: the slope is -lambda (u - m), without a two."""
        away = self.penalty * (theta["workers"] - theta["mean"])
        out = {"workers": -away, "mean": (away.sum(0) - theta["mean"]) * self.shared}
        return {**out, "map": -theta["map"]} if "map" in theta else out


def likelihood(score: Tensor, right: Tensor, wrong: float) -> Tensor:
    """J1 of each vote, eqs. 14, 15: right log eta + (1 - right) log((1 - eta) / (K - 1)), from its score u'z: V."""
    return right * F.logsigmoid(score) + (1 - right) * (F.logsigmoid(-score) - wrong)


def slopes(theta: Theta, z: Tensor, places: Places, right: Tensor, worker: Tensor, task: Tensor) -> Theta:
    """Slopes of the sum of J1 over votes: eqs. 16, 17, 19, 20.

    Eq. 16 is right / eta - (1 - right) / (1 - eta) (its second term is p(y != L)), and eq. 17 eta (1 - eta) times
    z or u x': their product is right - eta times z or u x'.
    """
    u, at = theta["workers"][worker], z[task]  # V,d+1
    error = right - torch.sigmoid((u * at).sum(1))  # V
    out = {"workers": scatter_sum(error[:, None] * at, worker, len(theta["workers"])).float()}  # eq. 19
    if "map" in theta:
        of_z = scatter_sum(error[:, None] * u[:, :-1], task, len(z)).float()  # N,d
        out["map"] = places.slope(of_z)  # eq. 20
    return out


@dataclass(frozen=True, eq=False)
class Reliability(OwnLabelChannel):
    """The channel. ``theta``: workers (M,d+1), mean (d+1), and map (d,D) where the topics are learned."""

    places: Places
    topics: int | None  # d; None: z = x, an embedding for each worker in the space of the features
    prior: Prior
    steps: int = 10  # of L-BFGS, or passes of stochastic gradient ascent, in an M-step
    inner: str = "lbfgs"
    rate: float = 0.05
    doubt: bool = False  # whether F is learned on average over what u may be
    seed: int = 0

    def parts(self, batch: Batch, theta: Theta) -> tuple[Tensor, Tensor]:
        return said(self.scores(batch, theta, self.places.lie(theta.get("map"))), batch.K)

    @staticmethod
    def scores(batch: Batch, theta: Theta, z: Tensor) -> Tensor:
        """u_j' z_i of each vote: V."""
        return (theta["workers"][batch.worker.long()] * z[batch.task.long()]).sum(1)

    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        return {
            "right": own_belief(batch, belief),  # V
            "worker": batch.worker.long(),
            "task": batch.task.long(),
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
        theta = self.start(M) if theta is None else theta
        theta = (self.lbfgs if self.inner == "lbfgs" else self.ascend)(stats, theta, math.log(max(K - 1, 1)))
        return theta | ({"spread": self.spread(stats, theta)} if self.doubt else {})

    def spread(self, stats: Stats, theta: Theta) -> Tensor:
        """Variances of u: 1 / (lambda + the sum of eta (1 - eta) z^2 over the worker's votes): M,d+1."""
        told, at = self.told(stats, theta)
        curvature = scatter_sum(told * at.square(), stats["worker"], len(theta["workers"]))
        return 1 / (self.prior.penalty + curvature).float()

    def blur(self, stats: Stats, theta: Theta) -> Tensor:
        """How much doubt about u costs z^2 / 2 of each task, to second order: eta (1 - eta) spread, summed: N,d+1."""
        told, _ = self.told(stats, theta)
        of_votes = told * self.spread(stats, theta)[stats["worker"]]
        return scatter_sum(of_votes, stats["task"], len(self.places.tasks)).float()

    def told(self, stats: Stats, theta: Theta) -> tuple[Tensor, Tensor]:
        """eta (1 - eta) of each vote, the curvature of its log-likelihood (V,1), and where its task lies (V,d+1)."""
        at = self.places.lie(theta.get("map"))[stats["task"]]
        eta = torch.sigmoid((theta["workers"][stats["worker"]] * at).sum(1, keepdim=True))
        return eta * (1 - eta), at

    # -- what is made larger, and how -----------------------------------------------------------------

    def value(self, stats: Stats, theta: Theta, wrong: float, blur: Tensor | None = None) -> tuple[float, Theta]:
        """J, eq. 15, with each worker's prior counted once, less what doubt costs (``blur``); and its slopes."""
        worker, task, right = stats["worker"], stats["task"], stats["right"]
        z = self.places.lie(theta.get("map"))
        score = (theta["workers"][worker] * z[task]).sum(1)
        total = likelihood(score, right, wrong).sum(dtype=torch.float64) + self.prior.log(theta)
        of_votes, of_prior = slopes(theta, z, self.places, right, worker, task), self.prior.slopes(theta)
        if blur is not None and "map" in theta:
            total = total - 0.5 * (blur * z.square()).sum(dtype=torch.float64)
            of_votes["map"] -= self.places.slope((blur * z)[:, :-1])
        return float(total), {name: of_prior[name] + of_votes.get(name, 0) for name in theta}

    def lbfgs(self, stats: Stats, theta: Theta, wrong: float) -> Theta:
        """Some steps of L-BFGS on all parameters together; what is returned is never worse than ``theta``."""
        blur = self.blur(stats, theta) if self.doubt else None
        names = [name for name in theta if name != "spread"]
        shapes = [theta[name].shape for name in names]
        scale = 1 / max(len(stats["right"]), 1)
        flat = torch.cat([theta[name].reshape(-1) for name in names]).requires_grad_()
        best, found = -math.inf, flat.detach().clone()

        def unpacked(of: Tensor) -> Theta:
            parts = torch.split(of, [shape.numel() for shape in shapes])
            return {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}

        def loss() -> float:
            nonlocal best
            total, slope = self.value(stats, unpacked(flat.detach()), wrong, blur)
            if total > best:
                best = total
                found.copy_(flat.detach())
            flat.grad = torch.cat([slope[name].reshape(-1) for name in names]) * -scale
            return -total * scale

        optimiser = torch.optim.LBFGS([flat], max_iter=self.steps, line_search_fn="strong_wolfe", tolerance_change=0)
        optimiser.step(loss)  # type: ignore[no-untyped-call]
        return {name: part.clone() for name, part in unpacked(found).items()}

    def ascend(self, stats: Stats, theta: Theta, wrong: float) -> Theta:
        """Algorithm 2: passes over the votes in random order, some at a time; first u takes its step, then F."""
        rng = generator(self.seed, "votes", len(stats["right"]))
        theta = {name: part.clone() for name, part in theta.items()}
        x = torch.cat(list(self.places.blocks()))  # N,D
        V, share = len(stats["right"]), torch.bincount(stats["worker"], minlength=len(theta["workers"]))
        for number in range(self.steps):
            rate = self.rate / (1 + number) ** 0.5
            theta |= {"spread": self.spread(stats, theta)} if self.doubt else {}
            for some in torch.split(torch.randperm(V, generator=rng).to(x.device), 128):
                self._ascend(theta, x, {k: stats[k][some] for k in ("right", "worker", "task")}, share, V, rate)
        theta["workers"][share == 0] = theta["mean"]  # nothing else is known of them
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
    other = F.logsigmoid(-score) - math.log(max(classes - 1, 1))
    return other, F.logsigmoid(score) - other


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
            self.channel.places.device = self.belief.device if logp is None else logp.device
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
        if self._batch is None or self._batch.V * self._batch.K > KEPT:
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

    def combine(self, x: Tensor, batch: Batch) -> Tensor:
        """Eq. 12; p(u_j) does not depend on the truth and cancels."""
        return (self.prior_of(x) + self.evidence_of(x, batch)).softmax(1)

    def evidence_of(self, x: Tensor, batch: Batch) -> Tensor:
        """log p(votes | truth) of each task: B,K."""
        other, gain = said(self._scores(x, batch), batch.K)
        base = segment_sum(other, batch.offsets).float()[:, None].expand(-1, batch.K)
        return add_own(base, batch, gain)

    def learned_online(self, z: Tensor, batch: Batch | None = None, belief: Tensor | None = None) -> None:
        """There are other tasks now; where they lie, and all votes on them."""
        self._z, self._batch = z, batch
        self.belief = self.belief if belief is None else belief

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "z": self.z} if self.theta else super().state()

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: t for name, t in state.items() if name != "z"})
        self._z = state.get("z")
