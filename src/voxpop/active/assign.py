"""The best pairs of task and worker, as one optimisation.

A pool of promising tasks, with the gain of every worker on each, is solved as a linear program over few of its
pairs; its prices say which other pairs of the pool, and then which tasks outside it, would do better. These
are added until there are none: then the program's value is that of the program over all N x M pairs (column
generation), and no pair outside was needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from voxpop.active.master import Columns, Limits, Prices, relaxed, whole
from voxpop.active.problem import Problem
from voxpop.active.search import Search

SLACK = 1e-6  # of the largest gain: differences below this are none
START = 64  # tasks that the pool begins with, at least
EACH = 6  # pairs of a task that are added to the program at a time
MORE = 512  # tasks that are added to the pool at a time
WIDEST = 5000  # pairs that branch and bound is given besides those of the relaxed program


@dataclass(frozen=True, eq=False)
class Assignment:
    """Pairs in the order of their scores."""

    task: Tensor
    worker: Tensor
    score: Tensor  # gain - price, in its place among the task's votes
    value: float  # the sum of scores, less what crowding takes
    bound: float  # no assignment has a larger value

    def __len__(self) -> int:
        return len(self.task)


def assign(problem: Problem, k: int) -> Assignment:
    """The best ``k`` pairs, fewer where the limits or ``least`` leave fewer."""
    present = (problem.capacity > 0).nonzero()[:, 0]  # workers who are available
    k = min(k, int(problem.capacity[present].clamp_max(k).sum()), int(problem.room.clamp(0, k).sum()))
    if k == 0:
        return _nothing(problem)
    here = _of_workers(problem, present)
    search = Search(here)
    pool = _Pool(here, k, float(search.bound.max()))
    pool.add(search.order[: max(2 * k, START)])
    while True:
        taken, bound, prices = pool.solve()
        more = pool.outside(search, prices, pool.slack, MORE)
        if not len(more):
            break
        pool.add(more)
    if problem.budget is not None and len(taken):
        taken, bound = _whole(pool, search, prices, bound)
    return _assignment(pool, present, taken, bound)


def _whole(pool: _Pool, search: Search, prices: Prices, bound: float) -> tuple[NDArray[np.float64], float]:
    """The best assignment with a budget, and a bound on it.

    A pair that falls short of the prices by more than the gap between the bound and an assignment in hand is in no
    better one. So all others are added, and the program solved again: exact, unless they are too many.
    """
    taken, value, _ = whole(pool.columns(), pool.limits)
    gap = bound - value
    if gap <= pool.slack * pool.limits.k:
        return taken, bound
    more = pool.outside(search, prices, -gap, MORE + 1)
    pool.add(more[:MORE])
    complete = pool.widen(prices, -gap) and len(more) <= MORE
    taken, _, most = whole(pool.columns(), pool.limits)
    return taken, most if complete else bound


def _levels(problem: Problem, prices: Prices) -> Tensor:
    """What a vote on a task that nobody has been asked about must bring: N."""
    level = torch.full((len(problem.room),), max(prices.count, 0.0) + problem.least)
    if problem.crowding > 0 and problem.topic is not None and prices.topic:
        size = int(problem.topic.max()) + 1
        dear = torch.zeros(size)
        dear[list(prices.topic)] = torch.tensor(list(prices.topic.values()), dtype=torch.float32)
        level += dear[problem.topic]
    return level


class _Pool:
    """The tasks under consideration, the gain of each worker on each, and the pairs that the program knows."""

    def __init__(self, problem: Problem, k: int, top: float) -> None:
        self.problem = problem
        self.tasks = torch.zeros(0, dtype=torch.int64)
        self.known = torch.zeros(len(problem.room), dtype=torch.bool)
        self.gain = torch.zeros(0, problem.M)  # P,M
        self.slack = SLACK * max(top, 0.0)
        room = problem.room.clamp_max(k)
        places = int(room.max())
        self.limits = Limits(k, problem.capacity.clamp_max(k).numpy(), places, problem.crowding, problem.budget)
        self.chosen = torch.zeros(0, problem.M, dtype=torch.bool)  # P,M: pairs in the program

    def add(self, tasks: Tensor) -> None:
        tasks = tasks[self.problem.room[tasks] > 0]
        self.known[tasks] = True
        gain = self.problem.gains(tasks)
        self.tasks = torch.cat([self.tasks, tasks])
        self.gain = torch.cat([self.gain, gain])
        self.chosen = torch.cat([self.chosen, torch.zeros_like(gain, dtype=torch.bool)])

    def dues(self, prices: Prices) -> Tensor:
        """What each worker costs, in money and in votes that he could give elsewhere: M."""
        due = self.problem.price * (1 + prices.money)
        if prices.worker:
            due[list(prices.worker)] += torch.tensor(list(prices.worker.values()), dtype=due.dtype)
        return due

    def outside(self, search: Search, prices: Prices, slack: float, enough: int) -> Tensor:
        """Tasks outside the pool with a pair that exceeds the prices by ``slack``: ``enough`` of them."""
        return search.better(self.dues(prices), _levels(self.problem, prices), self.known, slack, enough)[:enough]

    def widen(self, prices: Prices, slack: float) -> bool:
        """Add the pairs that exceed the prices by ``slack``, the best of them; whether these are all."""
        surplus = self._surplus(prices).masked_fill(self.chosen, -torch.inf)
        add = surplus > slack
        best = surplus.flatten().topk(min(int(add.sum()), WIDEST)).indices
        self.chosen.view(-1)[best] = True
        return int(add.sum()) <= WIDEST

    def solve(self) -> tuple[NDArray[np.float64], float, Prices]:
        """The best of the pool: candidates are added until none would do better."""
        found = (np.zeros(0), 0.0, Prices()) if not self.chosen.any() else relaxed(self.columns(), self.limits)
        while self._price(found[2]):
            found = relaxed(self.columns(), self.limits)
        return found

    def _price(self, prices: Prices) -> int:
        """Add the best pairs that beat the prices; how many there were."""
        problem = self.problem
        surplus = self._surplus(prices).masked_fill(self.chosen, -torch.inf)  # P,M
        top = surplus.topk(min(EACH, problem.M), 1)
        row, place = (top.values > self.slack).nonzero().unbind(1)
        self.chosen[row, top.indices[row, place]] = True
        return len(row)

    def _surplus(self, prices: Prices) -> Tensor:
        """By how much each pair beats the prices in its best place: P,M."""
        problem = self.problem
        level = _levels(problem, prices)[self.tasks]  # P
        due = self.dues(prices)
        places = torch.zeros(len(self.tasks), self.limits.places)
        if prices.place:
            position = {int(task): row for row, task in enumerate(self.tasks.tolist())}
            for (task, place), price in prices.place.items():
                places[position[task], place] = price
        out = torch.full_like(self.gain, -torch.inf)
        fade = torch.ones(len(self.tasks))
        for place in range(self.limits.places):
            open_ = problem.room[self.tasks] > place
            net = fade[:, None] * self.gain - (places[:, place] + level)[:, None]
            out = torch.maximum(out, net.masked_fill(~open_[:, None], -torch.inf))
            if problem.fade is not None:
                fade = fade * problem.fade[self.tasks]
        return out - due

    def columns(self) -> Columns:
        """The candidates of the program: each chosen pair in each place of its task."""
        problem = self.problem
        row, worker = self.chosen.nonzero().unbind(1)
        gain, price = self.gain[row, worker].double(), problem.price[worker].double()
        parts = []
        fade = torch.ones(len(row), dtype=torch.float64)
        for place in range(self.limits.places):
            net = fade * gain - price - problem.least
            use = (problem.room[self.tasks[row]] > place) & (net > 0)
            parts.append(
                (self.tasks[row][use], worker[use], torch.full((int(use.sum()),), place), net[use], price[use])
            )
            if problem.fade is not None:
                fade = fade * problem.fade[self.tasks[row]]
        tasks, workers, places, nets, prices = (torch.cat(part) for part in zip(*parts, strict=True))
        topic = torch.full_like(tasks, -1) if problem.topic is None else problem.topic[tasks]
        arrays = (part.numpy() for part in (tasks, workers, places, nets, prices, topic))
        return Columns(*arrays)


def _assignment(pool: _Pool, present: Tensor, taken: NDArray[np.float64], bound: float) -> Assignment:
    columns = pool.columns()
    use = taken > 0.5
    score = torch.from_numpy(columns.net[use]) + pool.problem.least
    task, worker = torch.from_numpy(columns.task[use]), present[torch.from_numpy(columns.worker[use])]
    order = torch.from_numpy(np.lexsort((worker.numpy(), task.numpy(), -score.numpy())))
    count = len(task)
    value = float(columns.net[use].sum())
    if pool.problem.crowding > 0:
        inside = np.unique(columns.topic[use], return_counts=True)[1]
        value -= pool.problem.crowding * float((inside * (inside - 1) / 2).sum())
    shift = pool.problem.least * count
    return Assignment(
        task[order], worker[order], score[order].float(), value + shift, bound + shift + pool.limits.k * pool.slack
    )


def _of_workers(problem: Problem, rows: Tensor) -> Problem:
    """The problem with these workers only."""
    task, worker = problem.taken // problem.M, problem.taken % problem.M
    place = torch.full((problem.M,), -1)
    place[rows] = torch.arange(len(rows))
    kept = place[worker] >= 0
    return replace(
        problem,
        expertise=problem.expertise.of_workers(rows),
        price=problem.price[rows],
        capacity=problem.capacity[rows],
        taken=torch.sort(task[kept] * len(rows) + place[worker[kept]]).values,
    )


def _nothing(problem: Problem) -> Assignment:
    none = torch.zeros(0, dtype=torch.int64)
    return Assignment(none, none, torch.zeros(0), 0.0, 0.0)
