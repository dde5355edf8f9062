"""The best of some candidate pairs, as a linear program whose prices say which other pairs would do better.

Without a budget it is a flow: through the count k, the task's n-th place (or its topic's), the pair and the worker.
The matrix of a flow is totally unimodular, so a vertex of the relaxed program is whole, and the best assignment.
With a budget the relaxed program is a bound, and branch and bound finds the best assignment of the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]
from scipy.optimize import Bounds, LinearConstraint, linprog, milp  # type: ignore[import-untyped]

from voxpop.errors import RunFailed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SECONDS = 10.0  # that branch and bound may take


@dataclass(frozen=True)
class Columns:
    """Candidates: the task, the worker, the place n among the task's votes of the batch, gain - price, price."""

    task: Ints
    worker: Ints
    place: Ints
    net: Floats
    price: Floats
    topic: Ints  # -1: none


@dataclass(frozen=True)
class Limits:
    k: int
    capacity: Ints  # M
    places: int  # most votes of the batch on a task
    crowding: float
    budget: float | None


@dataclass
class Prices:
    """What one unit more of each limit would be worth."""

    count: float = 0.0
    place: dict[tuple[int, int], float] = field(default_factory=dict)  # (task, place)
    worker: dict[int, float] = field(default_factory=dict)
    topic: dict[int, float] = field(default_factory=dict)
    money: float = 0.0


@dataclass(frozen=True)
class _Rows:
    matrix: Any
    most: Floats
    cost: Floats  # of the columns, to be minimised
    upper: Floats
    owners: list[tuple[str, Any]]


def relaxed(columns: Columns, limits: Limits) -> tuple[Floats, float, Prices]:
    """How much of each candidate to take, the value of that, and the prices."""
    rows = _rows(columns, limits)
    found = linprog(
        rows.cost, rows.matrix, rows.most, bounds=np.c_[np.zeros_like(rows.upper), rows.upper], method="highs-ds"
    )
    if found.status != 0:
        raise RunFailed(f"the assignment's linear program failed: {found.message}")
    prices = Prices()
    for (kind, name), price in zip(rows.owners, -found.ineqlin.marginals, strict=True):
        if kind == "count":
            prices.count = float(price)
        elif kind == "money":
            prices.money = float(price)
        elif kind != "pair" and price > 0:
            getattr(prices, kind)[name] = float(price)
    return found.x[: len(columns.net)], -float(found.fun), prices


def whole(columns: Columns, limits: Limits) -> tuple[Floats, float, float]:
    """Which candidates to take, none in part; the value of that, and a bound on the value of any such choice."""
    rows = _rows(columns, limits)
    found = milp(
        rows.cost,
        constraints=LinearConstraint(rows.matrix, ub=rows.most),
        bounds=Bounds(0, rows.upper),
        integrality=np.ones(len(rows.cost)),
        options={"time_limit": SECONDS, "mip_rel_gap": 0},
    )
    if found.x is None:
        raise RunFailed(f"the assignment's integer program failed: {found.message}")
    return found.x[: len(columns.net)], -float(found.fun), -float(found.mip_dual_bound)


def _rows(columns: Columns, limits: Limits) -> _Rows:
    """The constraints: matrix @ x <= most."""
    size = len(columns.net)
    row: list[NDArray[Any]] = []
    column: list[NDArray[Any]] = []
    entry: list[NDArray[Any]] = []
    most: list[float] = []
    owners: list[tuple[str, Any]] = []
    every = np.arange(size)

    def limit(kind: str, names: NDArray[Any], which: Ints, ceilings: Floats, entries: Floats | None = None) -> None:
        """One row a name: the columns ``which`` say sum to at most the name's ceiling."""
        row.append(which + len(most))
        column.append(every)
        entry.append(np.ones(size) if entries is None else entries)
        most.extend(ceilings.tolist())
        owners.extend((kind, name) for name in names.tolist())

    limit("count", np.zeros(1), np.zeros(size, np.int64), np.array([float(limits.k)]))
    seat, which = np.unique(columns.task * limits.places + columns.place, return_inverse=True)
    limit("place", seat, which, np.ones(len(seat)))
    worker, which = np.unique(columns.worker, return_inverse=True)
    limit("worker", worker, which, limits.capacity[worker].astype(float))
    if limits.places > 1:
        M = len(limits.capacity)
        pair, which = np.unique(columns.task * M + columns.worker, return_inverse=True)
        limit("pair", pair, which, np.ones(len(pair)))
    if limits.budget is not None:
        limit("money", np.zeros(1), np.zeros(size, np.int64), np.array([limits.budget]), columns.price)
    cost, upper = [-columns.net], [np.ones(size)]
    if limits.crowding > 0:
        topic, which, count = np.unique(columns.topic, return_inverse=True, return_counts=True)
        base = len(most)
        limit("topic", topic, which, np.zeros(len(topic)))
        seats = np.minimum(count + 1, limits.k)  # each dearer than the one before; a free one says the topic's price
        owner = np.repeat(np.arange(len(topic)), seats)
        rank = np.arange(len(owner)) - np.repeat(seats.cumsum() - seats, seats)
        row.append(base + owner)
        column.append(size + np.arange(len(owner)))
        entry.append(-np.ones(len(owner)))
        cost.append(limits.crowding * rank.astype(float))
        upper.append(np.ones(len(owner)))
    total = sum(map(len, cost))
    shape = (len(most), total)
    matrix = sparse.csr_array((np.concatenate(entry), (np.concatenate(row), np.concatenate(column))), shape=shape)
    named = [(kind, divmod(name, limits.places) if kind == "place" else name) for kind, name in owners]
    return _Rows(matrix, np.array(most), np.concatenate(cost), np.concatenate(upper), named)
