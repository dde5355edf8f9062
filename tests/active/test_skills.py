"""Who is good, who may be, and how often somebody is tried at random."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from tests.crowds import coin_tables, crowd
from voxpop.active.skills import SCHEDULE, STRENGTH, Skills, exploration, explored


def test_the_prior_is_the_spread_of_the_crowds_own_skills() -> None:
    rng = np.random.default_rng(0)
    chance = rng.beta(12, 4, 2000)
    right = torch.from_numpy(rng.binomial(50, chance))
    a, b = Skills.of_counts(right, 50 - right).prior
    assert a / (a + b) == pytest.approx(0.75, abs=0.01)
    assert a + b == pytest.approx(16, rel=0.15)


def test_a_worker_without_votes_is_one_of_the_crowd() -> None:
    skills = Skills.of_counts(torch.tensor([9.0, 7.0, 0.0]), torch.tensor([1.0, 3.0, 0.0]))
    a, b = skills.prior
    assert float(skills.mean[2]) == pytest.approx(a / (a + b))
    assert skills.mean[0] > skills.mean[1]
    with_two = skills.with_newcomers(2)
    assert with_two.mean.tolist() == pytest.approx([*skills.mean.tolist(), a / (a + b), a / (a + b)])


@pytest.mark.parametrize(("right", "wrong"), [([0.0], [0.0]), ([5.0], [0.0]), ([5.0, 5.0], [5.0, 5.0]), ([], [])])
def test_of_few_workers_something_finite_is_believed(right: list[float], wrong: list[float]) -> None:
    skills = Skills.of_counts(torch.tensor(right), torch.tensor(wrong)).with_newcomers(1)
    assert bool(((skills.mean > 0) & (skills.mean < 1)).all())
    assert STRENGTH[0] - 1e-9 <= sum(skills.prior) <= STRENGTH[1] + 1e-9


def test_each_worker_is_judged_by_what_the_others_say() -> None:
    """Beliefs that take everybody for alike; from them the workers are told apart, spread and all."""
    chance = np.array([0.55, 0.65, 0.7, 0.75, 0.85])
    made = crowd(0, N=4000, K=2, per_task=3, table=coin_tables(chance, 2))
    share = np.zeros((made.N, 2))
    np.add.at(share, (made.task, made.label), 1.0)
    odds = (0.7 / 0.3) ** share
    belief = torch.from_numpy(odds / odds.sum(1, keepdims=True)).float()
    assert Skills.of_votes(made.votes, belief).mean.tolist() == pytest.approx(chance.tolist(), abs=0.06)


def test_a_vote_that_nobody_else_gave_a_word_on_says_nothing_of_its_worker() -> None:
    alone = crowd(0, N=200, K=2, per_task=1, table=coin_tables(np.array([0.9, 0.7]), 2))
    belief = torch.where(torch.eye(2, dtype=torch.bool)[torch.from_numpy(alone.label)], 0.8, 0.2)
    assert Skills.of_votes(alone.votes, belief).mean.tolist() == pytest.approx([0.8, 0.8], abs=0.02)


def test_thompson_draws_from_what_is_believed() -> None:
    skills = Skills(torch.tensor([8.0, 2.0]), torch.tensor([2.0, 2.0]))
    drawn = skills.thompson(0, 1, 3000).t().numpy()
    for worker, (a, b) in enumerate([(8, 2), (2, 2)]):
        assert stats.kstest(drawn[:, worker], stats.beta(a, b).cdf).pvalue > 0.001
    assert torch.equal(skills.thompson(1, 5), skills.thompson(1, 5))
    assert not torch.equal(skills.thompson(1, 5), skills.thompson(2, 5))


@pytest.mark.parametrize("step", [2, 10, 1000])
def test_the_upper_bound_is_the_quantile_of_the_step(step: int) -> None:
    skills = Skills(torch.tensor([8.0, 2.0, 40.0]), torch.tensor([2.0, 2.0, 10.0]))
    expected = stats.beta([8, 2, 40], [2, 2, 10]).ppf(1 - 1 / step)
    assert skills.upper(step).tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_doubt_counts_in_a_workers_favour() -> None:
    known, unknown = Skills(torch.tensor([80.0, 1.6]), torch.tensor([20.0, 0.4])).upper(100).tolist()
    assert unknown > known


def test_the_schedule_is_the_tutorials() -> None:
    assert SCHEDULE == ((100, 0.5), (1000, 0.05))
    assert [exploration(t) for t in (1, 100, 101, 1000, 5000)] == [0.5, 0.5, 0.05, 0.05, 0.05]


def test_as_many_are_tried_as_the_schedule_says() -> None:
    early = np.mean([explored(100, 1, seed) for seed in range(200)])
    late = np.mean([explored(100, 101, seed) for seed in range(200)])
    across = np.mean([explored(100, 51, seed) for seed in range(200)])
    assert (early, late, across) == (
        pytest.approx(50, abs=1.5),
        pytest.approx(5, abs=0.7),
        pytest.approx(27.5, abs=1.2),
    )
