"""A loop rehearsed: only answers that can be had, each once; and asking well pays."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from voxpop.bench.data import blobs
from voxpop.errors import BadInput, BadOption
from voxpop.loop.rehearsal import (
    STRATEGIES,
    ByFeatures,
    ByVotes,
    Pool,
    Strategy,
    chosen,
    curves,
    not_left,
    rehearse,
    votes_to_reach,
)
from voxpop.methods.learning.dalc import DALC
from voxpop.votes import Votes

TRUTH = np.arange(60) % 3


def pool(seed: int = 0) -> Pool:
    """Half of the crowd are always right, the others guess."""
    return Pool.answered(TRUTH, 3, "hammer-spammer", seed, workers=8)


def some_answers(share: float = 0.3) -> Pool:
    """A pool in which most pairs cannot be asked."""
    whole = pool()
    kept = torch.rand(whole.votes.V, generator=torch.Generator().manual_seed(1)) < share
    return Pool(whole.votes.select(kept), whole.truth)


def guide(of: Pool, strategy: Strategy, seed: int = 0) -> ByVotes:
    return ByVotes(of, strategy, vp.OneCoin(), seed=seed)


class Listening(ByVotes):
    """Remembers what it was told."""

    def learn(self, told: Votes) -> None:
        self.heard = [*getattr(self, "heard", []), told]
        super().learn(told)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("of", [pool(), some_answers()], ids=["all answers", "some answers"])
def test_every_round_brings_so_many_new_answers_of_the_pool(of: Pool, name: str):
    listening = Listening(of, STRATEGIES[name], vp.OneCoin())
    sizes = [20, 7, 1]
    points = list(rehearse(of, listening, of.first(10, 0), sizes))
    assert [point.votes for point in points] == [10, 30, 37, 38]
    known = set(of.votes.to_frame().rows())
    before: set[object] = set()
    for told in listening.heard:
        now = set(told.to_frame().rows())
        assert before < now <= known
        before = now


def test_it_ends_where_nothing_is_left_to_ask():
    of = some_answers(0.2)
    *_, last = rehearse(of, guide(of, STRATEGIES["random"]), of.first(5, 0), [1000, 1000, 1000, 1000, 1000])
    assert last.votes <= of.votes.V
    everything = torch.ones(of.votes.V, dtype=torch.bool)
    assert [point.votes for point in rehearse(of, guide(of, STRATEGIES["both"]), everything, [5])] == [of.votes.V]


def test_pairs_that_cannot_be_had_are_all_the_others():
    of = some_answers()
    rows = torch.tensor([3, 4, 11])
    there = set(of.votes.to_frame().select("task", "worker").rows())
    missing = {(int(task), worker) for task in rows for worker in range(of.votes.M)} - there
    found = not_left(of.votes, rows)
    assert found is not None
    assert set(found.rows()) == missing
    assert not_left(pool().votes, rows) is None


def test_tasks_left_to_chance_are_so_many_and_others_the_next_time():
    votes = pool().votes
    first, how = chosen(STRATEGIES["active worker"], 10, votes, "entropy", seed=0)
    assert len(set(first.tolist())) == 10
    assert how["worker_score"] == "thompson"
    later, _ = chosen(STRATEGIES["active worker"], 10, votes.select(torch.arange(votes.V) > 0), "entropy", seed=0)
    assert first.tolist() != later.tolist()
    everything, how = chosen(STRATEGIES["active item"], 10, votes, "entropy", seed=0)
    assert (len(everything), how["worker_score"], how["score"]) == (votes.N, "random", "entropy")


def test_the_best_workers_pay():
    found = curves(pool, guide, seeds=6, start=90, sizes=[60])
    after = found.filter(pl.col("votes") == 150).group_by("strategy").agg(pl.mean("consensus"))
    score = dict(after.rows())
    assert score["active worker"] > score["random"] + 0.05
    assert score["both"] > score["random"] + 0.05
    first = found.filter(pl.col("votes") == 90).select("consensus", "seed")
    assert first.unique().height == 6  # all strategies begin with the same votes


def test_a_learner_with_features_is_scored_on_new_tasks_too():
    data = blobs(classes=2, tasks=40)
    of = Pool.answered(data.y, 2, "expertise", x=data.x, x_test=data.x_test, y_test=data.y_test)
    learning = ByFeatures(of, STRATEGIES["both"], lambda: DALC("linear", epochs=2, topics=2))
    points = list(rehearse(of, learning, of.first(20, 0), [10]))
    assert [point.votes for point in points] == [20, 30]
    for point in points:
        assert set(point.scores) == {"consensus", "classifier"}
        assert all(0 <= score <= 1 for score in point.scores.values())


def test_the_same_seed_gives_the_same_curves():
    def found() -> pl.DataFrame:
        return curves(pool, guide, seeds=2, start=20, sizes=[10, 10])

    assert found().equals(found())


def test_votes_to_reach_a_level():
    votes, scores = [100, 200, 300], [0.5, 0.7, 0.6]
    assert votes_to_reach(votes, scores, 0.4) == 100
    assert votes_to_reach(votes, scores, 0.6) == pytest.approx(150)
    assert votes_to_reach(votes, scores, 0.7) == pytest.approx(200)
    assert math.isnan(votes_to_reach(votes, scores, 0.71))


def test_what_does_not_fit_is_refused():
    votes = pool().votes
    with pytest.raises(BadInput, match="60 tasks, 59 truths"):
        Pool(votes, torch.zeros(59))
    with pytest.raises(BadOption, match="start=0"):
        pool().first(0, 0)
