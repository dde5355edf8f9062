"""Where tasks lie: their features in blocks that are read once or again and again, and the votes on each block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.channels.base import Theta
from voxpop.learn.networks import Scale
from voxpop.learn.rows import CHUNK, Rows
from voxpop.numerics.pairs import Pairs

KEPT = 1 << 27  # numbers: features that are fewer are kept in memory, others are read again in every step
TOGETHER = 1 << 19  # numbers of features in a block, or CHUNK rows: what is done with them finds them in a cache
ALIGNED = 16  # numbers: products of rows that begin at multiples of so many are several times faster


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


@dataclass(frozen=True, eq=False)
class Block:
    """The features of some tasks, and the votes on them."""

    x: Tensor  # n,W: features, 1, and zeros
    pairs: Pairs
    votes: slice  # among all


@dataclass(frozen=True, eq=False)
class Standing:
    """How votes stand under some embeddings and map."""

    score: Tensor  # V: u'z of each vote
    z: tuple[Tensor, ...]  # n,W: of the tasks of each block; none where z = x


class Places:
    """The features x of some tasks, in blocks; and where they lie among topics: z = F x, without F x itself.

    z has a last topic that is 1 for every task. Features are kept with it, and as many zeros as make rows aligned.
    """

    def __init__(self, rows: Rows, lift: Any, tasks: Tensor) -> None:
        self.rows, self.lift, self.tasks = rows, lift, tasks
        self.device = torch.device("cpu")
        self._kept: list[Tensor] | None = None
        self._met: tuple[Tensor, list[Pairs], list[slice]] | None = None
        self._stood: tuple[tuple[Tensor | None, ...], Standing] | None = None

    @property
    def width(self) -> int:
        return int(self.lift.width)

    @property
    def _step(self) -> int:
        return max(CHUNK, TOGETHER // max(self.width, 1))

    def features(self) -> Iterator[Tensor]:
        """Rows of features, 1, and zeros: n,W, some tasks at a time."""
        if self._kept is None and len(self.tasks) * self.width <= KEPT:
            self._kept = list(self._read())
        return self._read() if self._kept is None else iter(self._kept)

    def _read(self) -> Iterator[Tensor]:
        for part in torch.split(self.tasks, self._step):
            yield aligned(topics(self.lift(self.rows.take(part).to(self.device)), None))

    def forget(self) -> None:
        """What was kept where the features were."""
        self._kept, self._met, self._stood = None, None, None

    def lie(self, map: Tensor | None) -> Tensor:
        """z of each task: N,d+1."""
        width = self.width + 1 if map is None else len(map) + 1
        return torch.cat([mapped(x, map)[:, :width] for x in self.features()])

    def blocks(self, worker: Tensor, offsets: Tensor) -> Iterator[Block]:
        """All tasks with their votes: V workers, in the order of tasks, and N+1 offsets."""
        if self._met is None or self._met[0] is not worker:
            self._met = (worker, *self._meet(worker, offsets))
        for x, pairs, votes in zip(self.features(), *self._met[1:], strict=True):
            yield Block(x, pairs, votes)

    def standing(self, worker: Tensor, offsets: Tensor, theta: Theta) -> Standing:
        """Of these votes. An E-step asks for it, and the M-step after it once more: the last one is kept."""
        asked = (worker, theta["workers"], theta.get("map"))
        if self._stood is None or any(a is not b for a, b in zip(asked, self._stood[0], strict=True)):
            self._stood = asked, self._stand(self.blocks(worker, offsets), theta)
        return self._stood[1]

    @staticmethod
    def _stand(blocks: Iterator[Block], theta: Theta) -> Standing:
        map, u = theta.get("map"), aligned(theta["workers"])
        score, z = [u.new_zeros(0)], []
        for block in blocks:
            at = mapped(block.x, map)
            score.append(block.pairs.dots(at, u))
            z += [] if map is None else [at]
        return Standing(torch.cat(score), tuple(z))

    def _meet(self, worker: Tensor, offsets: Tensor) -> tuple[list[Pairs], list[slice]]:
        starts = [*range(0, len(self.tasks), self._step), len(self.tasks)]
        votes = [slice(*ends) for ends in pairwise(offsets[starts].tolist())]
        parts = [offsets[first : last + 1] - offsets[first] for first, last in pairwise(starts)]
        return [Pairs(worker[some], part) for some, part in zip(votes, parts, strict=True)], votes


def topics(x: Tensor, map: Tensor | None) -> Tensor:
    """z = F x (x itself without F), and the topic that is 1 for every task: B,d+1."""
    z = x if map is None else x @ map.t()
    return F.pad(z, (0, 1), value=1.0)


def mapped(x: Tensor, map: Tensor | None, constant: float = 1.0) -> Tensor:
    """``topics`` of features as they are kept, n,W: as these with a last topic and zeros, n,W of their own."""
    if map is None:
        return x
    d, D = map.shape
    z = x.new_zeros(len(x), _whole(d + 1))
    z[:, :d] = (map @ x[:, :D].t()).t()
    z[:, d] = constant
    return z


def aligned(rows: Tensor) -> Tensor:
    """With as many zeros as make rows aligned, wherever they were: n,W."""
    out = rows.new_zeros(len(rows), _whole(rows.shape[1]))
    out[:, : rows.shape[1]] = rows
    return out


def _whole(width: int) -> int:
    return width + -width % ALIGNED
