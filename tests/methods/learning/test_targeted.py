"""What DALC, LFC and STAL share: whom they ask, from which votes, at what cost."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from voxpop.active.ask import StopAsking
from voxpop.active.values import entropy
from voxpop.errors import BadInput, BadOption
from voxpop.learn.objective import asking
from voxpop.methods.learning.targeted import WORTH
from voxpop.methods.registry import LEARNERS

WORKERS = ["ann", "bob", "eve"]
POOL = np.random.default_rng(1).normal(size=(10, 2)).astype(np.float32)
NAMES = [f"new{i}" for i in range(10)]


@cache
def learner() -> vp.LFC:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)).astype(np.float32)
    truth = (x[:, 0] > 0).astype(int)
    said = np.where(rng.random((60, 3)) < [0.95, 0.8, 0.6], truth[:, None], 1 - truth[:, None])
    rows = [(f"t{i}", w, ("no", "yes")[said[i, j]]) for i in range(60) for j, w in enumerate(WORKERS)]
    return vp.LFC(epochs=5).fit(x, of(*rows, tasks=[f"t{i}" for i in range(60)]))


def of(*rows: tuple[str, str, str], tasks: list[str] | None = None) -> vp.Votes:
    frame = pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")
    return vp.Votes.from_frame(frame, tasks=tasks)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_registry_says_who_asks(name: str):
    entry = LEARNERS[name]
    assert hasattr(entry.load(), "ask") == ("asks" in entry.can)


def test_votes_that_came_later_say_what_is_doubtful_and_who_answered():
    agreed = [(name, worker, "yes") for name in NAMES[1:] for worker in WORKERS[:2]]
    later = of(*agreed, ("new0", "bob", "yes"), ("new0", "eve", "no"), ("elsewhere", "eve", "no"))
    found = learner().ask(k=1, X=POOL, tasks=NAMES, votes=later, worker_score="mean")
    assert found.select("task", "worker").rows() == [("new0", "ann")]
    with pytest.warns(StopAsking, match="^10 of 50 votes: "):
        rest = learner().ask(k=50, X=POOL, tasks=NAMES, votes=later)
    answered = set(later.to_frame().select("task", "worker").iter_rows())
    pairs = set(rest.select("task", "worker").iter_rows())
    assert not pairs & answered
    assert len(pairs) == len(NAMES) * len(WORKERS) - 20  # all the others


def test_the_score_is_doubt_times_expertise_and_in_the_unit_of_the_costs_where_there_are_any():
    free = learner().ask(k=3, worker_score="mean", X=POOL, tasks=NAMES)
    with asking(learner().objective_):
        doubt = entropy(learner().objective_.logp(torch.from_numpy(POOL)).exp())  # N
    for task, _, score, right, _ in free.iter_rows():
        assert score == pytest.approx(float(doubt[NAMES.index(task)]) * right, rel=1e-3)
    priced = learner().ask(k=3, worker_score="mean", X=POOL, tasks=NAMES, cost=2.0)
    assert priced.select("task", "worker").equals(free.select("task", "worker"))
    np.testing.assert_allclose(priced["score"], WORTH * free["score"] - 2, rtol=1e-4)
    own = learner().ask(k=3, worker_score="mean", X=POOL, tasks=NAMES, cost=2.0, worth=10)
    np.testing.assert_allclose(own["score"], 10 * free["score"] - 2, rtol=1e-4)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(BadOption, match="give X too"):
        learner().ask(k=1, votes=of(("t0", "ann", "no"), ("t0", "bob", "yes")))
    with pytest.raises(BadInput, match="tasks names 2 and X has 10 rows"):
        learner().ask(k=1, X=POOL, tasks=["a", "b"])
    with pytest.raises(BadInput, match="X has no rows"):
        learner().ask(k=1, X=POOL[:0])
    with pytest.raises(BadInput, match="a worker 'max' that nothing was learned of"):
        learner().ask(k=1, X=POOL, tasks=NAMES, votes=of(("new0", "max", "no"), ("new1", "ann", "yes")))
