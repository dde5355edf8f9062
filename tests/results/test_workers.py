"""voxpop.results.workers: the judgement of every worker."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from scipy import stats

from tests.crowds import crowd
from voxpop.errors import DataWarning
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.results.workers import chance, information, intervals, worker_frame
from voxpop.votes import Votes


def test_with_certain_truths_the_interval_is_that_of_a_beta_distribution() -> None:
    c = crowd(0, N=40, M=5, K=3, per_task=3)
    sure = torch.nn.functional.one_hot(torch.tensor(c.truth), 3).float()
    mean, low, high = intervals(c.votes.whole, sure, None)
    for w in range(5):
        hit = (c.label == c.truth[c.task])[c.worker == w]
        beta = stats.beta(hit.sum() + 1, (~hit).sum() + 1)
        np.testing.assert_allclose([mean[w], low[w], high[w]], [beta.mean(), *beta.ppf([0.05, 0.95])], rtol=1e-6)


def test_doubt_about_the_truths_widens_it() -> None:
    c = crowd(1, N=40, M=5, K=2, per_task=3)
    certain = torch.nn.functional.one_hot(torch.tensor(c.truth), 2).float()
    widths = []
    for doubt in (0.0, 0.1, 0.3):
        mean, low, high = intervals(c.votes.whole, (1 - 2 * doubt) * certain + doubt, None)
        assert ((low < mean) & (mean < high)).all()
        widths.append(float((high - low).mean()))
    assert widths[0] < widths[1] < widths[2]


def test_without_votes_nothing_is_known() -> None:
    votes = Votes.from_arrays([0, 0], [0, 1], [0, 1], workers=range(3))
    mean, low, high = intervals(votes.whole, torch.tensor([[1.0, 0.0]]), None)
    np.testing.assert_allclose([mean[2], low[2], high[2]], [0.5, 0.05, 0.95], atol=1e-9)  # a uniform distribution


def test_draws_give_intervals_that_cover_nine_tenths_also_when_there_are_few() -> None:
    """30 draws and one more: how often is the one between the 5% and 95% points of the others? 20,000 workers."""
    rng = np.random.default_rng(0)
    for draws in (30, 80, 400):
        values = torch.tensor(rng.beta(8, 2, (draws + 1, 20_000)))
        votes = Votes.from_arrays([0, 0], [0, 1], [0, 1]).whole
        _, low, high = intervals(votes, torch.zeros(1, 2), values[1:])
        inside = ((low <= values[0]) & (values[0] <= high)).double().mean()
        assert abs(inside - 0.9) < 0.01, f"{draws} draws: {inside:.3f}"


def test_information_of_the_infallible_and_of_those_who_do_not_look() -> None:
    tables = torch.stack([torch.eye(4), torch.full((4, 4), 0.25), torch.eye(4).roll(1, 1), torch.eye(4)[[2] * 4]])
    share = torch.full((4,), 0.25)
    np.testing.assert_allclose(information(tables, share), [2, 0, 2, 0], atol=1e-5)  # always wrong is as good as right


def test_information_equals_the_sum_over_truths_and_labels() -> None:
    rng = np.random.default_rng(0)
    table, share = rng.dirichlet(np.ones(3), (6, 3)), rng.dirichlet(np.ones(3))
    joint = share[None, :, None] * table
    apart = share[None, :, None] * joint.sum(1)[:, None, :]
    expected = (joint * np.log2(joint / apart)).sum((1, 2))
    np.testing.assert_allclose(information(torch.tensor(table).float(), torch.tensor(share)), expected, atol=1e-5)


def test_chance_is_agreement_of_habits_with_the_classes() -> None:
    votes = Votes.from_arrays([0, 1, 2, 0, 1], ["a", "a", "a", "b", "b"], [0, 0, 0, 0, 1])
    found = chance(votes.whole, torch.tensor([0.7, 0.3]))
    np.testing.assert_allclose(found, [0.7, 0.5])


def test_verdicts_follow_the_interval() -> None:
    truth = np.random.default_rng(0).integers(0, 2, 60)
    columns = [truth, truth, truth, 1 - truth, np.random.default_rng(1).integers(0, 2, 60)]
    votes = Votes.from_matrix(np.stack(columns, 1))
    sure = torch.nn.functional.one_hot(torch.tensor(truth), 2).float()
    frame = worker_frame(votes, sure, sure, None, None)
    assert frame["better_than_chance"].to_list() == ["yes", "yes", "yes", "worse", "unclear"]
    assert frame.columns[:5] == ["worker", "votes", "accuracy", "low", "high"]


def test_information_is_there_where_matrices_are() -> None:
    votes = Votes.from_arrays([0, 0], [0, 1], [0, 1])
    sure = torch.tensor([[0.5, 0.5]])
    assert "information" not in worker_frame(votes, sure, sure, None, None).columns
    with_table = worker_frame(votes, sure, sure, torch.eye(2).expand(2, 2, 2), None)
    assert with_table["information"].dtype == pl.Float64


def test_no_workers_at_all() -> None:
    votes = Votes.from_arrays([], [], [], tasks=["t"], workers=[], classes=["x", "y"])
    sure = torch.tensor([[0.5, 0.5]])
    assert worker_frame(votes, sure, sure, None, torch.zeros(4, 0)).height == 0


def test_where_all_say_one_class_nobody_is_judged() -> None:
    with pytest.warns(DataWarning, match="how good the workers are cannot be known"):
        found = DawidSkene().infer(Votes.from_arrays(np.arange(60), np.arange(60) % 3, np.zeros(60, int)))
    assert found.workers["better_than_chance"].to_list() == ["unclear"] * 3
