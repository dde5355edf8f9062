"""Tasks outside the pool that would raise the value of the assignment at the present prices, without the whole matrix.

A task is worth a look if, for some worker, gain - price - what the worker's time is worth exceeds the price of one
vote more. Tasks are taken in the order of a bound on their best gain, and the first whose bound is too low ends
the search; among those looked at, workers of like price are judged together by the largest u'z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from voxpop.active.problem import Problem

ROWS = 1024  # tasks at a time
BANDS = 64  # of workers with like prices


@dataclass(frozen=True, eq=False)
class Search:
    problem: Problem  # of workers who are available

    @cached_property
    def bound(self) -> Tensor:
        """No worker gains more on a task: N, -inf where there is no room."""
        tasks = torch.arange(len(self.problem.room))
        best = self.problem.gain.of(tasks, torch.sigmoid(self.problem.expertise.limits()))
        return best.masked_fill(self.problem.room <= 0, -torch.inf)

    @cached_property
    def order(self) -> Tensor:
        """Tasks by their bound, the most promising first."""
        return self.bound.argsort(descending=True, stable=True)

    def better(self, price: Tensor, level: Tensor, known: Tensor, slack: float, enough: int) -> Tensor:
        """Tasks, not ``known`` (N, bool), where a worker's gain - price (M) exceeds the task's level (N) by ``slack``.

        All of them, or those found first, ``enough`` or more.
        """
        found: list[Tensor] = []
        count = 0
        for rows in self._promising(float(price.min()), level, known, slack):
            hits = self._exceeding(rows, price, level[rows] + slack)
            found.append(hits)
            count += len(hits)
            if count >= enough:
                break
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.int64)

    def _promising(self, least: float, level: Tensor, known: Tensor, slack: float) -> Iterator[Tensor]:
        keep = (self.bound - least > level + slack) & ~known
        yield from torch.split(self.order[keep[self.order]], ROWS)

    def _exceeding(self, rows: Tensor, price: Tensor, level: Tensor) -> Tensor:
        """Those of the rows where the best pair exceeds the level."""
        bands, workers, least = self._bands(price)
        if self.problem.expertise.same_everywhere:
            best = _band_best(self.problem.expertise.block(rows[:1])[:, workers], bands).expand(len(rows), -1)
        else:
            expertise = self.problem.expertise
            best = _band_best(expertise.tasks[rows] @ expertise.workers[workers].t(), bands)  # B,bands
        likely = (self.problem.gain.of(rows, torch.sigmoid(best)) - least > level[:, None]).any(1)
        rows, level = rows[likely], level[likely]
        exact = (self.problem.gains(rows) - price).amax(1) if len(rows) else level
        return rows[exact > level]

    def _bands(self, price: Tensor) -> tuple[list[int], Tensor, Tensor]:
        """Workers sorted by price in bands: the bands' sizes, the workers, the least price of each band."""
        sorted_price, workers = price.sort(stable=True)
        sizes = torch.unique_consecutive(sorted_price, return_counts=True)[1].tolist()
        if len(sizes) > BANDS:
            sizes = [len(part) for part in torch.tensor_split(workers, BANDS) if len(part)]
        starts = torch.tensor([0, *sizes]).cumsum(0)[:-1]
        return sizes, workers, sorted_price[starts]


def _band_best(block: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([part.amax(1) for part in torch.split(block, sizes, dim=1)], 1)
