"""Paper 002's eq. 15 as a hill to climb: J1 of all votes and the log prior, as a function of embeddings and map.

A score u'z is a polynomial of the second degree along any direction in (u, F), of the first without F. So a
direction is looked at once, and any step along it then costs a few numbers a vote: the line search is nearly free.
With doubt about u, its average over what u may be, to second order in that: so much less as z is long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from voxpop.channels.base import Theta
from voxpop.learn.places import Block, Places, Standing, aligned, mapped

PART = 1 << 17  # votes whose scores are looked at together
ALONG = 10.0  # features go together: a slope in them meets about so many times the curvature of one of them
TRIES = 8  # steps that a line search tries at most


@dataclass(frozen=True)
class Prior:
    """What is believed of embeddings and map before any vote."""

    penalty: float  # lambda = 1 / sigma^2 of eq. 7
    shared: bool  # whether the mean of the embeddings is learned, or zero

    def log(self, theta: Theta) -> Tensor:
        """log p(u, F) up to a constant; float64."""
        return -0.5 * self.product(theta, theta)

    def product(self, a: Theta, b: Theta) -> Tensor:
        """The inner product of which -log p(u, F) is half the square of the length; float64."""
        total = self.penalty * _dot(a["workers"] - a["mean"], b["workers"] - b["mean"]) + _dot(a["mean"], b["mean"])
        return total + _dot(a["map"], b["map"]) if "map" in a else total

    def slopes(self, theta: Theta) -> Theta:
        """Eq. 18 with lambda = 1 / sigma^2: the slope is -lambda (u - m), without a two."""
        away = self.penalty * (theta["workers"] - theta["mean"])
        out = {"workers": -away, "mean": (away.sum(0) - theta["mean"]) * self.shared}
        return {**out, "map": -theta["map"]} if "map" in theta else out

    def centre(self, workers: Tensor) -> Tensor:
        """The likeliest mean of these embeddings (M,d+1): d+1."""
        if not self.shared:
            return torch.zeros_like(workers[0])
        mean: Tensor = workers.sum(0) * (self.penalty / (1 + self.penalty * len(workers)))
        return mean


def _dot(a: Tensor, b: Tensor) -> Tensor:
    parts = zip(torch.split(a, _rows(a)), torch.split(b, _rows(b)), strict=True)
    return torch.stack([(x * y).sum(dtype=torch.float64) for x, y in parts]).sum()


def _rows(table: Tensor) -> int:
    return max(1, PART // max(table[0].numel(), 1))


@dataclass(frozen=True, eq=False)
class Point:
    """Somewhere on the hill."""

    theta: Theta
    votes: Standing


@dataclass(frozen=True, eq=False)
class Hill:
    """Votes by workers (V, in the order of tasks, with N+1 offsets) on tasks that lie in places."""

    places: Places
    worker: Tensor  # V, int32
    offsets: Tensor  # N+1, int32
    right: Tensor  # V: how much each vote is believed
    wrong: float  # log(K - 1)
    prior: Prior
    blur: tuple[Tensor, ...] = ()  # n,W of each block: what doubt about u costs of z^2 / 2; none without

    def at(self, theta: Theta) -> Point:
        return Point(theta, self.places.standing(self.worker, self.offsets, theta))

    def value(self, point: Point) -> float:
        """J, eq. 15, with each worker's prior counted once."""
        nowhere = {name: torch.zeros_like(part) for name, part in point.theta.items()}
        return Ray(self, point, nowhere, torch.zeros_like(point.votes.score), None, ()).look(0.0)[0]

    def slope(self, point: Point) -> Theta:
        """Slopes of J in u, m and F: eqs. 16 to 20.

        Eq. 16 is right / eta - (1 - right) / (1 - eta) (its second term is p(y != L)), and eq. 17 eta (1 - eta) times
        z or u x': their product is right - eta times z or u x'.
        """
        theta = point.theta
        error = self.right - torch.sigmoid(point.votes.score)  # V
        u = aligned(theta["workers"])
        workers = torch.zeros_like(u, dtype=torch.float64)
        map = torch.zeros_like(theta["map"]) if "map" in theta else None
        for number, block in enumerate(self._blocks()):
            own = error[block.votes]
            block.pairs.add_over_workers(workers, own, block.x if map is None else point.votes.z[number])  # eq. 19
            if map is not None:
                of_z = block.pairs.over_tasks(own, u)  # n,W
                of_z = of_z - self.blur[number] * point.votes.z[number] if self.blur else of_z
                map.addmm_(of_z[:, : len(map)].t(), block.x[:, : map.shape[1]])  # eq. 20
        out = self.prior.slopes(theta)
        out["workers"] += workers[:, : out["workers"].shape[1]]
        return out if map is None else {**out, "map": out["map"] + map}

    def spread(self, point: Point) -> Tensor:
        """Variances of u, by Laplace: 1 / (lambda + the sum of eta (1 - eta) z^2 over the worker's votes), M,d+1."""
        u, told = point.theta["workers"], self._told(point)
        curvature = torch.zeros_like(aligned(u), dtype=torch.float64)
        for number, block in enumerate(self._blocks()):
            z = point.votes.z[number] if point.votes.z else block.x
            block.pairs.add_over_workers(curvature, told[block.votes], z.square())
        return 1 / (self.prior.penalty + curvature[:, : u.shape[1]]).float()

    def doubtful(self, point: Point, spread: Tensor | None = None) -> Hill:
        """The same on average over u, where its variances are those at a point."""
        wide, told = aligned(self.spread(point) if spread is None else spread), self._told(point)
        return replace(self, blur=tuple(b.pairs.over_tasks(told[b.votes], wide) for b in self._blocks()))

    @staticmethod
    def _told(point: Point) -> Tensor:
        """eta (1 - eta) of each vote, the curvature of its log likelihood: V."""
        eta = torch.sigmoid(point.votes.score)
        return eta * (1 - eta)

    def stiffness(self, theta: Theta) -> Theta:
        """About minus the second derivatives of J in u and F, one by one: what a first step is scaled by.

        A vote's is at most 1/4 of the square of what it multiplies with: a topic has variance one, a feature 1 / D.
        """
        u, map = theta["workers"], theta.get("map")
        many = torch.bincount(self.worker, minlength=len(u))[:, None] / 4  # M,1
        out = {name: torch.ones_like(part) for name, part in theta.items()}
        out["workers"] = self.prior.penalty + many * (ALONG / (u.shape[1] - 1) if map is None else 1.0) * out["workers"]
        out["workers"][:, -1:] = self.prior.penalty + many
        if map is not None:
            of_topics = (many * u.square()).sum(0) + sum(cost.sum(0)[: u.shape[1]] for cost in self.blur)  # d+1
            out["map"] += (of_topics[:-1] * (ALONG / map.shape[1]))[:, None]
        return out

    def ray(self, point: Point, along: Theta) -> Ray:
        """What lies in a direction."""
        first, z = torch.empty_like(point.votes.score), []
        second = torch.empty_like(first) if "map" in along else None
        u, du = aligned(point.theta["workers"]), aligned(along["workers"])
        for number, block in enumerate(self._blocks()):
            if second is None:
                first[block.votes] = block.pairs.dots(block.x, du)
                continue
            z.append(mapped(block.x, along["map"], 0.0))
            both = torch.cat([point.votes.z[number], z[-1]], 1)
            first[block.votes] = block.pairs.dots(both, torch.cat([du, u], 1))
            second[block.votes] = block.pairs.dots(z[-1], du)
        return Ray(self, point, along, first, second, tuple(z))

    def _blocks(self) -> Iterator[Block]:
        return self.places.blocks(self.worker, self.offsets)


@dataclass(frozen=True, eq=False)
class Ray:
    """From a point in a direction: after a step t a score is score + t first + t^2 second."""

    hill: Hill
    start: Point
    along: Theta
    first: Tensor  # V
    second: Tensor | None  # V
    z: tuple[Tensor, ...]

    def best(self) -> float:
        """A step near the highest point: Newton's, and never one that leads down; 0 where there is none up."""
        height, slope, bend = self.look(0.0)
        best, t = 0.0, -slope / bend if bend < 0 else 1.0
        if not slope > 0:
            return best
        low, high, top, steepest = 0.0, math.inf, height, 0.5 * slope
        for _ in range(TRIES):
            height, slope, bend = self.look(t)
            if height > top:
                best, top = t, height
                if abs(slope) <= steepest:
                    break
            if slope > 0 and height >= top:
                low = t
            else:
                high = t
            t = t - slope / bend if bend < 0 else 2 * t
            if not low < t < high:
                t = (low + high) / 2 if high < math.inf else 2 * low
        return best

    def look(self, t: float) -> tuple[float, float, float]:
        """J after a step of t, and its first and second derivative in t; J1 is eqs. 14, 15."""
        totals = self._of_prior(t)
        none = torch.zeros(1, device=self.first.device)
        for s in (slice(i, i + PART) for i in range(0, len(self.first), PART)):
            a, b = self.first[s], none if self.second is None else self.second[s]
            right, score = self.hill.right[s], self.start.votes.score[s] + t * (a + t * b)
            eta, pace = torch.sigmoid(score), a + 2 * t * b
            # log(1 - eta) = log eta - score
            totals[0] += (F.logsigmoid(score) - (1 - right) * (score + self.hill.wrong)).sum()
            totals[1] += torch.dot(right - eta, pace)
            totals[2] += (2 * b * (right - eta) - eta * (1 - eta) * pace * pace).sum()
        height, slope, bend = totals.tolist()
        return height, slope, bend

    def _of_prior(self, t: float) -> Tensor:
        """The log prior after a step of t, less what doubt costs, and its derivatives: float64."""
        p, q, r = self._products
        return torch.stack([-0.5 * (p + t * (2 * q + t * r)), -(q + t * r), -r])

    @cached_property
    def _products(self) -> tuple[Tensor, Tensor, Tensor]:
        product, theta, along = self.hill.prior.product, self.start.theta, self.along
        p, q, r = product(theta, theta), product(theta, along), product(along, along)
        for number, cost in enumerate(self.hill.blur):
            z = self.start.votes.z[number]
            dz = self.z[number] if self.z else torch.zeros_like(z)
            p, q, r = p + _dot(cost * z, z), q + _dot(cost * z, dz), r + _dot(cost * dz, dz)
        return p, q, r

    def at(self, t: float) -> Point:
        theta = {name: part + t * self.along[name] for name, part in self.start.theta.items()}
        score = torch.add(self.start.votes.score, self.first, alpha=t)
        score = score if self.second is None else score.add_(self.second, alpha=t * t)
        z = tuple(torch.add(z, dz, alpha=t) for z, dz in zip(self.start.votes.z, self.z, strict=True))
        return Point(theta, Standing(score, z))
