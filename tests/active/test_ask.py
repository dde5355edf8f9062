"""Asking: what never happens, whatever the limits; why it stops, in words; and how workers are chosen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crowds import crowd
from voxpop.active.ask import SCORES, WORKER_SCORES, StopAsking, ask, plan
from voxpop.active.expertise import Expertise
from voxpop.active.items import Items
from voxpop.active.skills import Skills
from voxpop.errors import VoxError
from voxpop.votes import Axis, Votes

COLUMNS = ["task", "worker", "score", "right", "cost"]


class World:
    """Votes of seven workers on nine tasks, a pool of some of these and of new ones, and a worker nobody knows."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.rng, made = rng, crowd(seed, N=9, M=7, K=3, per_task=3)
        names = [f"w{m}" for m in range(7)]
        self.votes = Votes.from_arrays(
            [f"t{i}" for i in made.task],
            [names[m] for m in made.worker],
            made.label,
            tasks=[f"t{i}" for i in range(9)],
            workers=names,
            classes=range(3),
        )
        self.names = [f"t{i}" for i in (8, 2, 5, 0)] + [f"new{i}" for i in range(4)]
        belief = torch.from_numpy(rng.dirichlet([1, 1, 1], 8)).float()
        samples = torch.from_numpy(rng.dirichlet([1, 1, 1], (5, 8))).float()
        evidence = torch.from_numpy(rng.normal(size=(8, 3))).float()
        self.items = Items(Axis("tasks", self.names), belief, samples, evidence)
        draw = torch.from_numpy(rng.normal(size=(15, 3))).float()
        self.expertise = Expertise(draw[:7], draw[7:])
        self.asked = set(self.votes.to_frame()["task", "worker"].iter_rows())

    def ask(self, k: int = 6, **how: Any) -> pl.DataFrame:
        return ask(k, **{**self.known, **how})

    def plan(self, k: int = 6, **how: Any) -> Any:
        return plan(k, **{**self.known, **how})

    @property
    def known(self) -> dict[str, Any]:
        """Workers at their mean: draws follow their positions, not their names."""
        return {"items": self.items, "expertise": self.expertise, "votes": self.votes, "worker_score": "mean"}


# -- what never happens -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 25),
    score=st.sampled_from(SCORES),
    worker_score=st.sampled_from(WORKER_SCORES),
    cap=st.none() | st.integers(1, 5),
    at_once=st.none() | st.integers(1, 3),
    budget=st.none() | st.floats(0.5, 8),
    diversity=st.sampled_from([0.0, 0.5]),
    skills=st.booleans(),
)
def test_no_limit_is_ever_broken(
    seed: int,
    k: int,
    score: str,
    worker_score: str,
    cap: int | None,
    at_once: int | None,
    budget: float | None,
    diversity: float,
    skills: bool,
) -> None:
    world = World(seed % 5)
    rng = np.random.default_rng(seed)
    crowd_ = [f"w{m}" for m in range(7)] + ["stranger"]
    workers = pl.DataFrame(
        {
            "worker": crowd_,
            "cost": rng.uniform(0, 2, 8).round(2),
            "capacity": rng.integers(0, 4, 8),
            "available": [True, *(rng.random(7) < 0.7).tolist()],
        }
    ).with_columns(capacity=pl.when(pl.col("worker") == "w0").then(2).otherwise("capacity"))
    out = [(world.names[i], crowd_[m]) for i, m in zip(rng.integers(0, 8, 3), rng.integers(0, 8, 3), strict=True)]
    barred = [(world.names[i], crowd_[m]) for i, m in zip(rng.integers(0, 8, 5), rng.integers(0, 8, 5), strict=True)]
    found = world.plan(
        k,
        workers=workers,
        outstanding=out,
        barred=barred,
        score=score,
        worker_score=worker_score,
        cap_per_task=cap,
        at_once=at_once,
        budget=budget,
        diversity=diversity,
        features=rng.normal(size=(8, 2)),
        expertise=Skills.of_counts(torch.arange(7), torch.arange(7).flip(0)) if skills else world.expertise,
        worth=5.0,
        seed=seed,
    )
    frame = found.frame
    assert frame.columns == COLUMNS
    pairs = list(frame["task", "worker"].iter_rows())
    assert len(pairs) <= k
    assert len(set(pairs)) == len(pairs)
    assert not set(pairs) & world.asked  # nobody is asked twice
    assert not set(pairs) & (set(out) | set(barred))  # what is out is not asked again, what is barred never
    assert set(frame["task"]) <= set(world.names)
    here = {row["worker"]: row for row in workers.iter_rows(named=True)}
    busy = Counter(worker for _, worker in set(out))
    for worker, count in Counter(frame["worker"]).items():
        assert here[worker]["available"]
        assert count <= here[worker]["capacity"] - busy[worker]
    had = Counter(task for task, _ in world.asked | set(out))
    for task, count in Counter(frame["task"]).items():
        assert cap is None or count + had[task] <= cap
        assert at_once is None or count <= at_once
    assert frame["cost"].to_list() == pytest.approx([here[w]["cost"] for w in frame["worker"]])
    assert budget is None or frame["cost"].sum() <= budget * (1 + 1e-6)
    assert bool(found.reason) == (len(frame) < k)
    assert frame["score"].to_list() == sorted(frame["score"], reverse=True) or worker_score in ("epsilon", "random")


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), score=st.sampled_from(["entropy", "margin", "information", "error", "relabel"]))
def test_the_order_of_rows_does_not_matter(seed: int, score: str) -> None:
    world = World(1)
    rng = np.random.default_rng(seed)
    rows, people = torch.from_numpy(rng.permutation(8)), rng.permutation(7)
    items, expertise = world.items, world.expertise
    mixed = Items(
        Axis("tasks", [world.names[i] for i in rows]),
        items.belief[rows],
        items.samples[:, rows],
        items.evidence[rows],
    )
    votes = world.votes.to_frame().sample(fraction=1.0, shuffle=True, seed=seed)
    workers = [world.votes.workers[m] for m in people]
    again = ask(
        6,
        items=mixed,
        expertise=Expertise(expertise.workers[torch.from_numpy(people)], expertise.tasks[rows]),
        votes=Votes.from_frame(votes, tasks=world.votes.tasks.names, workers=workers, classes=[0, 1, 2]),
        score=score,
        worker_score="mean",
    )
    plain = world.ask(6, score=score)
    assert again["score"].to_list() == pytest.approx(plain["score"].to_list(), rel=1e-4)
    assert set(again["task", "worker"].iter_rows()) == set(plain["task", "worker"].iter_rows())


def test_a_bar_takes_a_pair_away_and_nothing_else() -> None:
    """It is no vote: a task of which all workers but one are barred is worth as much as if only he were there."""
    world = World()
    alone = {task: world.votes.workers[place % 7] for place, task in enumerate(world.names)}
    free = sorted(pair for pair in alone.items() if pair not in world.asked)
    barred = [(task, who) for task in world.names for who in world.votes.workers if who != alone[task]]
    left = world.ask(len(free), barred=barred, cap_per_task=8)
    assert sorted(left["task", "worker"].iter_rows()) == free
    for task, who, score, *_ in left.iter_rows():
        others = [name for name in world.names if name != task]
        found = world.ask(1, workers=[who], barred=[(name, who) for name in others])
        assert found["score"][0] == pytest.approx(score, rel=1e-4)


def test_inputs_are_untouched_and_equal_seeds_ask_the_same() -> None:
    world = World()
    workers = pl.DataFrame({"worker": ["w1", "w2"], "cost": [0.1, 0.0]})
    before = (world.items.belief.clone(), world.expertise.workers.clone(), workers.clone())
    first, second = (world.ask(3, workers=workers, worker_score="thompson", seed=4) for _ in range(2))
    assert first.equals(second)
    assert torch.equal(before[0], world.items.belief)
    assert torch.equal(before[1], world.expertise.workers)
    assert before[2].equals(workers)


# -- the best -----------------------------------------------------------------------------------------


def test_the_doubtful_task_and_its_expert_are_chosen_jointly() -> None:
    """Paper 002: the score is the entropy of the task times the chance that the worker is right on it."""
    world = World()
    found = world.ask(1)
    doubt = torch.special.entr(world.items.belief).sum(1)
    right = torch.sigmoid(world.expertise.tasks @ world.expertise.workers.t())
    score = {
        (world.names[i], f"w{m}"): float(doubt[i] * right[i, m])
        for i in range(8)
        for m in range(7)
        if (world.names[i], f"w{m}") not in world.asked
    }
    best = max(score, key=score.__getitem__)
    assert found.row(0)[:2] == best
    assert found["score"][0] == pytest.approx(score[best], rel=1e-4)
    assert found["right"][0] == pytest.approx(float(right[world.names.index(best[0]), int(best[1][1])]))


def test_own_scores_of_items() -> None:
    world = World()
    found = world.ask(1, score=torch.tensor([0, 0, 0, 0, 0, 9.0, 0, 0]))
    assert found["task"].to_list() == ["new1"]


def test_as_many_votes_on_a_task_as_are_needed_for_k() -> None:
    world = World()
    assert max(Counter(world.ask(8)["task"]).values()) == 1
    many = world.ask(32)
    assert len(many) == 32
    assert max(Counter(many["task"]).values()) == 4
    with pytest.warns(StopAsking, match="the items can take no more votes"):
        assert len(world.ask(32, at_once=2)) == 16


def test_more_than_an_even_share_where_some_have_been_asked_about_already() -> None:
    """Two workers: the first task has one's vote, so the other two tasks take what it cannot."""
    votes = Votes.from_arrays(["a"], ["x"], [0], tasks=["a", "b", "c"], workers=["x", "y"], classes=[0, 1])
    items = Items(votes.tasks, torch.full((3, 2), 0.5))
    assert len(ask(5, items=items, expertise=Expertise.alike(torch.tensor([0.8, 0.7]), 3), votes=votes)) == 5


def test_diversity_spreads_a_batch_over_topics() -> None:
    world = World()
    topic = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    doubt = torch.tensor([1.0, 0.99, 0.98, 0.97, 0.96, 0.9, 0.89, 0.8])
    alike = Expertise.alike(torch.full((7,), 0.8), 8)
    plain = world.ask(3, score=doubt, expertise=alike)
    spread = world.ask(3, score=doubt, expertise=alike, diversity=0.5, features=topic)
    assert [world.names.index(t) for t in plain["task"]] == [0, 1, 2]
    assert sorted(topic[[world.names.index(t) for t in spread["task"]]]) == [0, 1, 2]


def test_a_cheap_worker_is_asked_where_the_good_one_costs_more_than_he_is_worth() -> None:
    world = World()
    chance = torch.full((7,), 0.5)
    chance[3] = 0.95
    good = Expertise.alike(chance, 8)
    free = [f"new{i}" for i in range(4)]
    items = Items(Axis("tasks", free), torch.full((4, 3), 1 / 3))
    for cost, expected in ((0.1, "w3"), (5.0, "w0")):
        found = world.ask(
            1, items=items, expertise=Expertise(good.workers, good.tasks[:4]), workers=["w0", "w3"], cost={"w3": cost}
        )
        assert found["worker"].to_list() == [expected]


# -- who ----------------------------------------------------------------------------------------------


def test_a_newcomer_is_taken_for_one_of_the_crowd() -> None:
    world = World()
    found = world.ask(2, workers=["nobody knows me"])
    assert set(found["worker"]) == {"nobody knows me"}
    row = [world.names.index(t) for t in found["task"]]
    mean = world.expertise.workers.mean(0)
    assert found["right"].to_list() == pytest.approx(torch.sigmoid(world.expertise.tasks[row] @ mean).tolist())
    skills = Skills(torch.full((7,), 8.0), torch.full((7,), 2.0), prior=(3.0, 1.0))
    assert world.ask(1, workers=["me"], expertise=skills)["right"].to_list() == pytest.approx([0.75])


def test_thompson_and_ucb_try_those_of_whom_little_is_known() -> None:
    """Two workers with the same mean, one with three votes and one with thirty; and many who are surely worse."""
    a = torch.tensor([2.1, 21.0, 55, 55, 55, 55, 55])
    skills, world = Skills(a, torch.tensor([0.9, 9.0, 45, 45, 45, 45, 45])), World()
    unknown = Items(Axis("tasks", ["new"]), torch.full((1, 3), 1 / 3))
    assert world.ask(1, items=unknown, expertise=skills, worker_score="ucb")["worker"].to_list() == ["w0"]
    drawn = Counter(
        world.ask(1, items=unknown, expertise=skills, worker_score="thompson", seed=s)["worker"][0] for s in range(60)
    )
    assert drawn["w0"] > drawn["w1"] > 0
    assert {world.ask(1, items=unknown, expertise=skills, seed=s)["worker"][0] for s in range(5)} <= {"w0", "w1"}


def test_unless_told_otherwise_a_batch_does_not_settle_on_one_worker() -> None:
    """Three were right in nearly all of few votes: draws share the batch among them, the mean asks the luckiest."""
    skills, world = Skills(torch.tensor([4.1, 4, 4, 2, 2, 2, 2]), torch.tensor([0.9, 1, 1, 9, 9, 9, 9])), World()
    items = Items(Axis.counting("tasks", 60), torch.full((60, 3), 1 / 3))
    known = {"items": items, "expertise": skills, "votes": world.votes}
    asked = Counter(ask(60, **known)["worker"])
    assert min(asked[w] for w in ("w0", "w1", "w2")) >= 6
    assert asked["w0"] + asked["w1"] + asked["w2"] >= 50
    assert set(ask(60, **known, worker_score="mean")["worker"]) == {"w0"}


def test_unless_told_otherwise_a_newcomer_is_tried() -> None:
    """His mean is the crowd's, below the best of it: who goes by the mean never asks him."""
    skills = Skills(torch.full((7,), 6.0), torch.tensor([1.5, 2.0, 4, 4, 4, 4, 4]), prior=(3.0, 1.5))
    world = World()
    items = Items(Axis.counting("tasks", 60), torch.full((60, 3), 1 / 3))
    known = {"items": items, "expertise": skills, "votes": world.votes, "workers": [*world.votes.workers, "new"]}
    assert "new" in set(ask(60, **known)["worker"])
    assert "new" not in set(ask(60, **known, worker_score="mean")["worker"])


@pytest.mark.parametrize("worker_score", WORKER_SCORES)
def test_equal_seeds_ask_the_same_and_the_chance_shown_is_no_draw(worker_score: str) -> None:
    world = World()
    first, second = (world.ask(6, worker_score=worker_score, seed=3) for _ in range(2))
    assert first.equals(second)
    for task, worker, _, right, _ in first.iter_rows():
        u, z = world.expertise.workers[int(worker[1])], world.expertise.tasks[world.names.index(task)]
        assert right == pytest.approx(float(torch.sigmoid(u @ z)), rel=1e-5)


@pytest.mark.parametrize(("votes", "share"), [(0, 0.5), (150, 0.05)])
def test_epsilon_is_the_schedule_of_the_tutorial(votes: int, share: float) -> None:
    """Half of the first hundred votes go to a worker at random, then one in twenty."""
    K, M, N = 2, 20, 80
    said = [(f"old{i // M}", i % M, 0) for i in range(votes)]
    task, worker, label = ([row[i] for row in said] for i in range(3))
    so_far = Votes.from_arrays(task, worker, label, tasks=sorted(set(task)), workers=range(M), classes=range(K))
    chance = torch.full((M,), 0.5)
    chance[7] = 0.9
    items = Items(Axis.counting("tasks", N), torch.full((N, K), 0.5))
    others = []
    for seed in range(10):
        found = ask(
            N, items=items, expertise=Expertise.alike(chance, N), votes=so_far, worker_score="epsilon", seed=seed
        )
        assert found["task"].n_unique() == N
        others.append(float((found["worker"] != 7).mean()))
    assert np.mean(others) == pytest.approx(share * (M - 1) / M, abs=0.06 if votes == 0 else 0.025)


def test_random_workers_are_random() -> None:
    world = World()
    first = [world.ask(1, worker_score="random", seed=s)["worker"][0] for s in range(40)]
    assert len(set(first)) >= 5


# -- stopping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "count", "reason"),
    [
        ({"cost": 3.0}, 0, "stop: the best vote left is expected to gain .*, not more than its cost of 3"),
        ({"stop": 2.0}, 0, "stop: .*not more than its cost of 0 and the 2 that a vote must bring"),
        ({"cap_per_task": 3, "items": "old"}, 0, "stop: every item has as many votes as cap_per_task allows"),
        ({"capacity": 1, "workers": ["w0", "w1"]}, 2, "2 of 6 votes: the available workers can give no more votes"),
        ({"cost": 1.0, "budget": 2.5, "worth": 9}, 2, "2 of 6 votes: the budget is spent"),
        ({"at_once": 1, "items": "old"}, 4, "4 of 6 votes: the items can take no more votes"),
        ({"workers": ["w0"], "items": "answered"}, 0, "stop: everyone available has been asked about every item"),
    ],
)
def test_why_it_stops_in_words(how: dict[str, Any], count: int, reason: str) -> None:
    world = World()
    which = how.pop("items", None) if (how := dict(how)) else None
    if which is not None:
        by_w0 = [t for t, w in sorted(world.asked) if w == "w0"]
        names = world.names[:4] if which == "old" else by_w0
        rows = torch.arange(len(names))
        how["items"] = Items(Axis("tasks", names), torch.full((len(names), 3), 1 / 3))
        how["expertise"] = Expertise(world.expertise.workers, world.expertise.tasks[rows % 8])
    with pytest.warns(StopAsking, match=reason):
        found = world.ask(6, **how)
    assert found.columns == COLUMNS
    assert len(found) == count
    assert found.schema == world.ask(1).schema


def test_sure_of_everything_there_is_nothing_to_ask() -> None:
    world = World()
    sure = Items(world.items.names, torch.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1]])
    for score in ("entropy", "margin", "information", "error"):
        with pytest.warns(StopAsking, match="expected to gain 0"):
            assert world.ask(5, items=sure, score=score).is_empty()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"k": 0}, "a batch of no votes"),
        ({"budget": 0.0}, "nothing can be asked for that"),
        ({"workers": []}, "no worker is available"),
        ({"capacity": 0}, "no worker is available"),
        ({"items": Items(Axis.counting("tasks", 0), torch.zeros(0, 3))}, "the pool has no items"),
        ({"score": "entropie"}, "did you mean 'entropy'"),
        ({"worker_score": "best"}, "score of workers"),
        ({"diversity": 0.5}, "diversity needs features"),
        ({"diversity": 2.0}, "not between 0 and 1"),
        ({"cap_per_task": 0}, "cap_per_task=0"),
        ({"cost": {"w99": 1.0}}, "w99"),
        ({"cost": -1.0}, "below zero"),
        ({"workers": ["w1", "w1"]}, "twice"),
        ({"workers": pl.DataFrame({"worker": ["w1"], "capacity": ["many"]})}, "row 1: capacity is 'many'"),
        ({"score": "bald", "items": Items(Axis.counting("tasks", 8), torch.full((8, 3), 1 / 3))}, "needs draws"),
        ({"score": torch.full((3,), 1.0)}, "a number, zero or more, for each item"),
    ],
)
def test_what_cannot_be_asked_is_said_plainly(how: dict[str, Any], message: str) -> None:
    with pytest.raises(VoxError, match=message):
        World().ask(**{"k": 3, **how})
