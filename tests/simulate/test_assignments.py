"""Who votes on what: degrees, repeats, and the distribution of weighted draws without replacement."""

from __future__ import annotations

from math import gcd

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from voxpop.errors import BadOption
from voxpop.numerics.seeds import generator
from voxpop.simulate import Complete, Random, Regular
from voxpop.simulate.distinct import distinct_workers
from voxpop.simulate.regular import _trade, regular_graph


def drawn(assignment, tasks: int, workers: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    key = assignment.begin(tasks, workers, generator(seed, "test"))(0, tasks)
    return key // workers, key % workers


def assert_no_repeats(task: Tensor, worker: Tensor) -> None:
    assert torch.stack([task, worker], 1).unique(dim=0).shape[0] == task.numel()


@settings(max_examples=80, deadline=None)
@given(workers=st.integers(1, 14), times=st.integers(1, 12), seed=st.integers(0, 1000), data=st.data())
def test_regular_degrees_are_exact_and_nobody_votes_twice(workers, times, seed, data):
    votes = data.draw(st.integers(0, workers))
    tasks = times * workers // gcd(workers, votes)
    graph = regular_graph(tasks, workers, votes, generator(seed, "test"))
    assert graph.shape == (tasks, votes)
    per_worker = torch.bincount(graph.view(-1), minlength=workers)
    assert per_worker.tolist() == [tasks * votes // workers] * workers
    assert_no_repeats(torch.arange(tasks).repeat_interleave(votes), graph.view(-1))


def test_regular_as_in_the_paper():
    task, worker = drawn(Regular(3), 1000, 750)  # Kim et al., section 4.1: (3, 4)-regular
    assert torch.bincount(task).tolist() == [3] * 1000
    assert torch.bincount(worker).tolist() == [4] * 750
    assert_no_repeats(task, worker)


def test_regular_graphs_let_every_pair_of_workers_meet_equally_often():
    tasks, workers, votes = 20_000, 10, 4
    graph = regular_graph(tasks, workers, votes, generator(3, "test")).long()
    seen = torch.zeros(tasks, workers).scatter_(1, graph, 1.0)
    meet = (seen.t() @ seen)[*torch.triu_indices(workers, workers, 1)]
    expected = tasks * votes * (votes - 1) / (workers * (workers - 1))
    assert (meet - expected).abs().max() < 5 * expected**0.5


@settings(max_examples=60, deadline=None)
@given(votes=st.integers(1, 6), workers=st.integers(1, 6), seed=st.integers(0, 1000))
def test_a_trade_shares_out_repeated_workers_evenly(votes, workers, seed):
    """What makes the repair end: of each worker's copies the two tasks get the same number, but for one."""
    draw = generator(seed, "test")
    tasks = torch.randint(workers, (2, 20, votes), generator=draw)
    before = torch.nn.functional.one_hot(tasks, workers).sum(2)  # 2,pairs,workers
    after = torch.nn.functional.one_hot(torch.stack(_trade(*tasks, draw)), workers).sum(2)
    assert torch.equal(before.sum(0), after.sum(0))
    assert (after[0] - after[1]).abs().max() <= 1


def test_regular_says_what_would_fit():
    with pytest.raises(BadOption, match=r"1000 tasks x 3 votes cannot be shared equally by the 7 .* 6 each does 500"):
        drawn(Regular(3), 1000, 7)
    with pytest.raises(BadOption, match="4 votes on every task need as many workers"):
        drawn(Regular(4), 10, 3)


@settings(max_examples=60, deadline=None)
@given(
    tasks=st.integers(1, 30),
    workers=st.integers(1, 40),
    votes=st.integers(0, 45),
    skew=st.sampled_from([0.0, 1.0, 3.0]),
    seed=st.integers(0, 1000),
)
def test_random_gives_each_task_different_workers(tasks, workers, votes, skew, seed):
    task, worker = drawn(Random(votes, skew=skew), tasks, workers, seed)
    assert torch.bincount(task, minlength=tasks).tolist() == [min(votes, workers)] * tasks
    assert_no_repeats(task, worker)


def test_a_fraction_is_the_chance_of_one_vote_more():
    per_task = torch.bincount(drawn(Random(1.3), 20_000, 50)[0], minlength=20_000)
    assert set(per_task.tolist()) == {1, 2}
    assert abs(per_task.double().mean() - 1.3) < 5 * (0.21 / 20_000) ** 0.5


def test_varying_votes_are_one_and_a_poisson_number():
    per_task = torch.bincount(drawn(Random(4, varying=True), 20_000, 200)[0], minlength=20_000).double()
    assert per_task.min() == 1
    assert abs(per_task.mean() - 4) < 5 * (3 / 20_000) ** 0.5
    assert abs(per_task.var() - 3) < 0.25


@pytest.mark.parametrize("workers", [4, 40])  # the first looks at every worker, the second draws again
def test_weighted_draws_follow_successive_sampling(workers):
    tasks, p = 40_000, 1.0 / torch.arange(1, workers + 1)
    key = distinct_workers(torch.full((tasks,), 2), p, generator(1, "test"))
    share = torch.bincount(key % workers, minlength=workers) / tasks
    p = p / p.sum()
    second = p * ((p / (1 - p)).sum() - p / (1 - p))  # p_i sum_{j != i} p_j / (1 - p_j)
    chance = p + second
    assert ((share - chance).abs() < 5 * (chance * (1 - chance) / tasks).sqrt()).all()


def test_a_few_workers_do_most():
    worker = drawn(Random(2, skew=1.0), 5_000, 100)[1]
    busy = torch.bincount(worker, minlength=100).sort(descending=True).values
    assert busy[:20].sum() > 0.6 * worker.numel()
    even = torch.bincount(drawn(Random(2), 5_000, 100)[1], minlength=100).sort(descending=True).values
    assert even[:20].sum() < 0.3 * worker.numel()


def test_complete():
    task, worker = drawn(Complete(), 6, 5)
    assert sorted(zip(task.tolist(), worker.tolist(), strict=True)) == [(t, w) for t in range(6) for w in range(5)]


def test_complete_with_a_share_is_a_coin_for_each_pair():
    task, worker = drawn(Complete(0.3), 4_000, 30)
    assert_no_repeats(task, worker)
    per_task = torch.bincount(task, minlength=4_000).double()
    assert abs(per_task.mean() - 9) < 5 * (6.3 / 4_000) ** 0.5
    assert abs(per_task.var() - 6.3) < 0.8
    per_worker = torch.bincount(worker, minlength=30).double()
    assert (per_worker - 1200).abs().max() < 5 * (4_000 * 0.21) ** 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: Random(-1),
        lambda: Random(float("nan")),
        lambda: Random(0.5, varying=True),
        lambda: Random(skew=-1),
        lambda: Regular(-1),
        lambda: Complete(1.5),
    ],
)
def test_options_out_of_range(make):
    with pytest.raises(BadOption, match="give"):
        make()
