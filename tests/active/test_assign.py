"""The assignment beside every choice there is (small cases), and beside an integer program over all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import Tensor

from voxpop.active.assign import assign
from voxpop.active.expertise import Expertise
from voxpop.active.gains import Gain, Information, Rise, Worth
from voxpop.active.problem import Problem, keys

LIMITS: dict[str, tuple[str, ...]] = {  # which limits a case has
    "plain": (),
    "costs": ("costs",),
    "capacity": ("capacity",),
    "room": ("room",),
    "fade": ("room", "fade"),
    "crowding": ("crowding",),
    "budget": ("costs", "budget"),
    "stop": ("costs", "stop"),
    "all but budget": ("costs", "capacity", "room", "fade", "crowding", "stop"),
    "all": ("costs", "capacity", "room", "fade", "crowding", "stop", "budget"),
}


@dataclass
class Draw:
    seed: int
    N: int
    M: int
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def numbers(self, low: float, high: float, *shape: int) -> Tensor:
        return torch.from_numpy(self.rng.uniform(low, high, shape)).float()

    def whole(self, low: int, high: int, size: int) -> Tensor:
        return torch.from_numpy(self.rng.integers(low, high + 1, size))

    def gain(self) -> Gain:
        belief = torch.from_numpy(self.rng.dirichlet([1, 1, 1], self.N)).float()
        kinds = (Worth(self.numbers(0, 1, self.N)), Information(belief), Rise(belief, 3))
        return kinds[self.seed % len(kinds)]

    def problem(self, limits: tuple[str, ...]) -> Problem:
        N, M = self.N, self.M
        gain, expertise = self.gain(), Expertise(self.numbers(-1, 2, M, 2), self.numbers(-1, 1, N, 2))
        typical = float(gain.of(torch.arange(N), torch.full((N,), 0.7)).max())
        taken = keys(self.whole(0, N - 1, N // 2), self.whole(0, M - 1, N // 2), M)
        price = self.numbers(0, typical / 2, M) if "costs" in limits else torch.zeros(M)
        return Problem(
            gain,
            expertise,
            price,
            self.whole(0, 2, M) if "capacity" in limits else torch.full((M,), 1 << 40),
            self.whole(0, 3, N) if "room" in limits else torch.ones(N, dtype=torch.int64),
            taken,
            self.numbers(0, 1, N) if "fade" in limits else None,
            self.whole(0, max(1, N // 3), N) if "crowding" in limits else None,
            typical * float(self.rng.uniform(0, 0.5)) if "crowding" in limits else 0.0,
            float(self.rng.uniform(0.5, 3)) * float(price.mean()) if "budget" in limits else None,
            typical * float(self.rng.uniform(0, 0.3)) if "stop" in limits else 0.0,
        )


def value(problem: Problem, gain: np.ndarray, pairs: list[tuple[int, int]]) -> float:
    """What these pairs are worth beyond ``least`` each; -inf where a limit forbids them."""
    tasks, workers = (np.array([p[i] for p in pairs], dtype=int) for i in (0, 1))
    price = problem.price.double().numpy()
    money = price[workers].sum()
    if (
        (np.bincount(tasks, minlength=len(problem.room)) > problem.room.numpy()).any()
        or (np.bincount(workers, minlength=problem.M) > problem.capacity.numpy()).any()
        or (problem.budget is not None and money > problem.budget + 1e-9)
    ):
        return -np.inf
    total = -money - problem.least * len(pairs)
    for task in set(tasks.tolist()):
        fade = 1.0 if problem.fade is None else float(problem.fade[task])
        gains = sorted((gain[t, w] for t, w in pairs if t == task), reverse=True)
        total += sum(fade**place * one for place, one in enumerate(gains))
    if problem.topic is not None:
        inside = np.bincount(problem.topic.numpy()[tasks])
        total -= problem.crowding * float((inside * (inside - 1) / 2).sum())
    return total


def every_choice(problem: Problem, k: int) -> Iterator[list[tuple[int, int]]]:
    gain = problem.gains(torch.arange(len(problem.room)))
    allowed = [p for p in product(range(len(gain)), range(problem.M)) if gain[p] > -torch.inf]
    for size in range(k + 1):
        yield from (list(pairs) for pairs in combinations(allowed, size))


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(12))
def test_as_good_as_the_best_of_all_choices(limits: str, seed: int) -> None:
    problem, k = Draw(seed, 4, 3).problem(LIMITS[limits]), 1 + seed % 4
    gain = problem.gains(torch.arange(4)).double().numpy()
    best = max(value(problem, gain, pairs) for pairs in every_choice(problem, k))
    found = assign(problem, k)
    pairs = list(zip(found.task.tolist(), found.worker.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) <= k
    mine = value(problem, gain, pairs)
    assert mine == pytest.approx(best, abs=1e-5)
    assert found.value == pytest.approx(mine + problem.least * len(pairs), abs=1e-5)
    assert found.bound >= found.value - 1e-6
    assert found.bound >= best + problem.least * len(pairs) - 1e-6


def program(problem: Problem, k: int) -> float:
    """The best value, by an integer program over all pairs in all places of their tasks."""
    N, M, L = len(problem.room), problem.M, int(problem.room.max())
    gain = problem.gains(torch.arange(N)).double().numpy()
    fade = np.ones(N) if problem.fade is None else problem.fade.double().numpy()
    task, worker, place = (a.ravel() for a in np.meshgrid(range(N), range(M), range(L), indexing="ij"))
    use = (gain[task, worker] > -np.inf) & (problem.room.numpy()[task] > place)
    task, worker, place = task[use], worker[use], place[use]
    price = problem.price.double().numpy()[worker]
    net = fade[task] ** place * gain[task, worker] - price - problem.least
    size = len(net)
    topics = 0 if problem.topic is None else int(problem.topic.max()) + 1
    cost = np.concatenate([-net, np.tile(problem.crowding * np.arange(k), topics)])
    rows, most = [], []

    def limit(owner: np.ndarray, ceiling: np.ndarray, entries: np.ndarray | None = None) -> None:
        block = np.zeros((len(ceiling), len(cost)))
        block[owner, np.arange(size)] = 1 if entries is None else entries
        rows.append(block)
        most.append(ceiling)

    limit(np.zeros(size, int), np.array([k]))
    limit(task * L + place, np.ones(N * L))
    limit(task * M + worker, np.ones(N * M))
    limit(worker, np.minimum(problem.capacity.numpy(), k))
    if problem.budget is not None:
        limit(np.zeros(size, int), np.array([problem.budget]), price)
    if problem.topic is not None:
        limit(problem.topic.numpy()[task], np.zeros(topics))
        for topic in range(topics):
            rows[-1][topic, size + topic * k : size + (topic + 1) * k] = -1
    found = milp(
        cost,
        constraints=LinearConstraint(np.concatenate(rows), ub=np.concatenate(most)),
        bounds=Bounds(0, 1),
        integrality=np.ones(len(cost)),
        options={"mip_rel_gap": 0},
    )
    return -float(found.fun)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("seed", range(3))
def test_as_good_as_an_integer_program_over_all_pairs(limits: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pool of few tasks at first, so that the search outside it matters."""
    monkeypatch.setattr("voxpop.active.assign.START", 4)
    problem, k = Draw(100 + seed, 40, 6).problem(LIMITS[limits]), 6
    best = program(problem, k)
    found = assign(problem, k)
    count = len(found)
    gain = problem.gains(torch.arange(40)).double().numpy()
    mine = value(problem, gain, list(zip(found.task.tolist(), found.worker.tolist(), strict=True)))
    assert mine <= best + 1e-5
    assert found.bound - problem.least * count >= best - 1e-5
    slack = found.bound - found.value if problem.budget is not None else 0  # what it says itself
    assert mine >= best - slack - 1e-5
    assert slack <= 0.02 * best + 1e-4


@pytest.mark.parametrize("limits", ["plain", "fade", "all but budget"])
def test_more_of_anything_is_never_worth_less(limits: str) -> None:
    problem = Draw(3, 30, 8).problem(LIMITS[limits])
    found = [assign(problem, k) for k in (1, 2, 4, 8, 16)]
    worth = np.array([f.value - problem.least * len(f) for f in found])
    assert (np.diff(worth) >= -1e-6).all()
    assert worth[-1] > worth[0]


@pytest.mark.parametrize("d", [1, 2, 6])
def test_a_bound_on_the_chance_of_any_worker(d: int) -> None:
    rng = torch.Generator().manual_seed(0)
    expertise = Expertise(torch.randn(200, d, generator=rng), torch.randn(50, d, generator=rng))
    above = expertise.limits() - expertise.block(torch.arange(50)).amax(1)
    assert (above >= -1e-5).all()
    assert d > 1 or float(above.max()) < 1e-5


def test_workers_alike_everywhere_are_one_row() -> None:
    alike = Expertise.alike(torch.tensor([0.6, 0.9]), tasks=1000)
    assert alike.same_everywhere
    assert alike.tasks.untyped_storage().size() == 4
    assert torch.sigmoid(alike.block(torch.arange(3))).tolist() == [pytest.approx([0.6, 0.9])] * 3
