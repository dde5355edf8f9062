"""Named crowds: all of them run, at any size, from a seed alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import voxpop.simulate.crowd as crowd_module
from voxpop.errors import BadInput, BadOption, UnknownName
from voxpop.numerics.seeds import generator
from voxpop.simulate import KINDS, Random, Simulated, simulate, simulate_votes_on
from voxpop.votes import Votes

NAMES = sorted(KINDS)


def assert_sound(found: Simulated) -> None:
    """The votes are what Votes itself would have made of them, and the rest fits."""
    votes = found.votes
    axes = {"tasks": range(votes.N), "workers": range(votes.M), "classes": range(votes.K)}
    again = Votes.from_arrays(votes.task, votes.worker, votes.label, **axes)
    assert votes == again
    assert votes.repeated == 0
    assert {c.dtype for c in (votes.task, votes.worker, votes.label)} == {torch.int32}
    assert found.truth.shape == (votes.N,)
    assert len(found.kinds) == votes.M
    if found.tables is not None:
        assert found.tables.shape == (votes.M, votes.K, votes.K)
        torch.testing.assert_close(found.tables.sum(2), torch.ones(votes.M, votes.K))


def shape(votes: Votes) -> tuple[int, int, int]:
    return votes.N, votes.M, votes.K


def same(a: Simulated, b: Simulated) -> bool:
    tables = a.tables is b.tables or torch.equal(a.tables, b.tables)
    return a.votes == b.votes and torch.equal(a.truth, b.truth) and a.kinds == b.kinds and tables


@pytest.mark.parametrize("name", NAMES)
def test_every_kind(name):
    state = torch.get_rng_state()
    found = simulate(kind=name, seed=5)
    assert_sound(found)
    votes, kind = found.votes, KINDS[name]
    assert shape(votes) == (1000, kind.workers, kind.classes)
    assert same(found, simulate(kind=name, seed=5))
    assert not same(found, simulate(kind=name, seed=6))
    assert torch.equal(found.truth, simulate(kind="one-coin", classes=votes.K, seed=5).truth)
    assert torch.equal(state, torch.get_rng_state())
    assert kind.about.endswith(".")


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    tasks=st.integers(1, 12),
    workers=st.integers(1, 8),
    classes=st.integers(2, 5),
    seed=st.integers(0, 99),
)
def test_every_kind_at_any_size(name, tasks, workers, classes, seed):
    assignment = Random(3) if name == "regular" else None  # few sizes have a regular graph
    found = simulate(tasks, workers, classes, name, seed, assignment=assignment)
    assert_sound(found)
    assert shape(found.votes) == (tasks, workers, classes)


@pytest.mark.parametrize("name", ["believable", "extreme-spammers", "regular", "difficulty", "one-expert"])
def test_many_blocks(name, monkeypatch):
    whole = simulate(600, 450, kind=name)
    monkeypatch.setattr(crowd_module, "_BLOCK", 64)
    cut = simulate(600, 450, kind=name)
    assert_sound(cut)
    assert abs(cut.votes.V - whole.votes.V) < 0.1 * whole.votes.V
    assert abs(cut.accuracy.nanmean() - whole.accuracy.nanmean()) < 0.05


def test_any_number_of_threads_gives_the_same_answer():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = simulate(20_000)
        torch.set_num_threads(4)
        assert same(one, simulate(20_000))
    finally:
        torch.set_num_threads(threads)


def test_the_truth_follows_the_prior():
    found = simulate(20_000, prior=[1, 1, 2, 0], kind="one-coin")
    share = torch.bincount(found.truth, minlength=4) / 20_000
    assert share[3] == 0
    assert (share[:3] - torch.tensor([0.25, 0.25, 0.5])).abs().max() < 5 * (0.25 / 20_000) ** 0.5


def test_a_given_truth_is_voted_on():
    digits = load_digits().target
    found = simulate_votes_on(digits, seed=2)
    assert_sound(found)
    assert found.votes.K == 10
    assert np.array_equal(found.truth.numpy(), digits)
    assert same(found, simulate_votes_on(torch.from_numpy(digits), seed=2))
    assert simulate_votes_on([0, 1, 1], classes=7).votes.K == 7


def test_spammers_follow_the_frequencies_of_a_given_truth():
    found = simulate_votes_on([0, 0, 0, 1], kind="spammers", share=1.0, style="marginal")
    torch.testing.assert_close(found.tables, torch.tensor([0.75, 0.25]).expand(50, 2, 2))


def test_spammers_label_nearly_everything():
    found = simulate(2000, 20, kind="spammers", share=0.1, reach=0.95)
    per_worker = torch.bincount(found.votes.worker)
    assert found.kinds[-2:] == ["spammer", "spammer"]
    assert (per_worker[-2:] - 1900).abs().max() < 5 * (2000 * 0.95 * 0.05) ** 0.5
    assert per_worker[:-2].sum() == 5 * 2000


def test_an_extreme_spammer_beside_a_regular_graph():
    found = simulate(1000, 751, 2, "extreme-spammers", assignment="regular", votes_per_task=3)
    assert torch.bincount(found.votes.worker).tolist() == [4] * 750 + [1000]


def test_juniors_and_the_one_expert():
    naive = simulate(200, kind="naive-majority")
    junior = torch.tensor([kind == "junior" for kind in naive.kinds])
    assert (naive.votes.label[junior[naive.votes.worker]] == 0).all()
    assert naive.votes.V == 200 * 10
    one = simulate(50, kind="one-expert")
    said = one.votes.label.view(50, 101)
    assert torch.equal(said[:, 0].long(), one.truth)
    assert (said[:, 1:] == said[:, 1:2]).all()


def test_good_workers_are_good_and_adversaries_are_not():
    frame = simulate(kind="believable", workers=200).worker_frame().group_by("kind").agg(pl.col("accuracy").mean())
    mean = dict(frame.iter_rows())
    assert mean["expert"] > 0.85 > 0.7 > mean["sloppy"] > 0.4 > mean["spammer"]
    frame = simulate(kind="adversaries").worker_frame().filter(pl.col("kind") == "adversary")
    assert frame["accuracy"].to_list() == pytest.approx([0.1] * 10)


def test_expertise_on_features():
    digits = load_digits()
    right = [
        simulate_votes_on(digits.target, kind="expertise", features=digits.data, seed=s).accuracy for s in range(4)
    ]
    assert 0.58 < torch.cat(right).mean() < 0.72


@pytest.mark.parametrize(("bias", "together"), [(0.0, False), (1.0, True)])
def test_bias(bias, together):
    found = simulate(kind="biased", bias=bias, together=together)
    assert bool((found.votes.label == 0).all()) is together


def test_prototypes():
    found = simulate(100, 40, 2, "prototypes", prototypes=[[[1, 0], [0, 1]], [[0, 1], [1, 0]]], weights=[3, 1])
    flipped = torch.tensor([kind == "prototype 1" for kind in found.kinds])
    assert 0 < flipped.sum() < 20
    said_wrong = found.votes.label != found.truth[found.votes.task]
    assert torch.equal(said_wrong, flipped[found.votes.worker])


def test_frames():
    found = simulate(30, 200, kind="difficulty", votes_per_task=2)
    truth = found.truth_frame()
    assert truth.columns == ["task", "label"]
    assert truth["label"].to_list() == found.truth.tolist()
    workers = found.worker_frame()
    assert workers.columns == ["worker", "kind", "accuracy"]
    assert len(workers) == 200
    idle = torch.bincount(found.votes.worker, minlength=200) == 0
    assert workers["accuracy"].is_null().to_list() == idle.tolist()
    joined = found.votes.to_frame().join(truth.rename({"label": "true"}), on="task")
    counted = joined.group_by("worker").agg((pl.col("label") == pl.col("true")).mean().alias("share"))
    both = counted.join(workers, on="worker")
    assert both["share"].to_list() == pytest.approx(both["accuracy"].to_list())


def test_accuracy_from_tables_weighs_classes_by_the_truth():
    found = simulate_votes_on([0, 0, 0, 1], 1, kind="prototypes", prototypes=[[[0.8, 0.2], [0.6, 0.4]]])
    assert found.accuracy.tolist() == pytest.approx([0.75 * 0.8 + 0.25 * 0.4])


def test_assignments_by_name_and_number():
    assert simulate(100, 20, kind="one-coin", assignment="complete").votes.V == 2000
    assert simulate(100, 20, kind="one-coin", votes_per_task=7).votes.V == 700
    regular = simulate(100, 20, kind="one-coin", assignment="regular", votes_per_task=4.0)
    assert torch.bincount(regular.votes.worker).tolist() == [20] * 20


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: simulate(kind="beleivable"), UnknownName, "did you mean 'believable'"),
        (lambda: simulate(kind="copies", fidelty=1), UnknownName, "did you mean 'fidelity'.*kind 'copies'"),
        (lambda: simulate(assignment="compleet"), UnknownName, "did you mean 'complete'"),
        (lambda: simulate(kind="spammers", style="unform"), UnknownName, "did you mean 'uniform'"),
        (lambda: simulate(kind="naive-majority", votes_per_task=3), BadOption, "votes_per_task=3 has no meaning"),
        (lambda: simulate(kind="regular", votes_per_task=2.5), BadOption, "must be whole"),
        (lambda: simulate(kind="copies", share=2), BadOption, "share=2 is not"),
        (lambda: simulate(kind="copies", fidelity="all"), BadOption, "fidelity='all' is not"),
        (lambda: simulate(kind="one-coin", alpha=(2, 0)), BadOption, "above zero"),
        (lambda: simulate(kind="one-coin", alpha=2), BadOption, "two numbers"),
        (lambda: simulate(kind="prototypes", prototypes=[[1.0]]), BadOption, "give S x 4 x 4"),
        (lambda: simulate(kind="prototypes", weights=[1, -1, 1]), BadOption, "one number for each of the 3"),
        (lambda: simulate(kind="expertise", features=torch.ones(3, 2)), BadOption, "one row for each of the 1000"),
        (lambda: simulate(prior=[1, 2]), BadOption, "give 4 frequencies"),
        (lambda: simulate(0), BadOption, "tasks=0"),
        (lambda: simulate(workers=0), BadOption, "workers=0"),
        (lambda: simulate(classes=1), BadOption, "classes=1"),
        (lambda: simulate_votes_on([0, 1, -1]), BadInput, "truth of task 2 is -1"),
        (lambda: simulate_votes_on([0, 4], classes=3), BadInput, "truth of task 1 is 4"),
        (lambda: simulate_votes_on([0.5]), BadInput, "whole number"),
        (lambda: simulate_votes_on([]), BadInput, "whole number"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_options_are_listed():
    assert KINDS["copies"].options == {"share": 0.5, "sources": 3, "fidelity": 1.0, "alpha": (6.0, 4.0)}


def test_purposes_have_generators_of_their_own():
    """The truth does not change with the crowd, nor the crowd with the number of tasks."""
    few, many = simulate(10, kind="dirichlet", seed=3), simulate(5000, kind="dirichlet", seed=3)
    assert torch.equal(few.tables, many.tables)
    assert generator(3, "truth").initial_seed() != generator(3, "workers").initial_seed()
