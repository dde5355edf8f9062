"""What workers say: draws follow their tables, and copies copy."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from voxpop.errors import BadOption
from voxpop.numerics.seeds import generator
from voxpop.simulate import ByDifficulty, ByExpertise, Complete, Copying, Crowd, FromTables, Random, Simulated, tables
from voxpop.simulate.sampler import Sampler


def confusion(found: Simulated) -> tuple[Tensor, Tensor]:
    """How often each worker said each label to each truth (M,K,K), and how often they saw it (M,K,1)."""
    votes = found.votes
    cell = (votes.worker * votes.K + found.truth[votes.task]) * votes.K + votes.label
    counts = torch.bincount(cell, minlength=votes.M * votes.K**2).view(votes.M, votes.K, votes.K).double()
    return counts, counts.sum(2, keepdim=True)


def assert_follows(found: Simulated, p: Tensor) -> None:
    """Each frequency within five standard deviations of a binomial share (and 1/n, where that is tiny)."""
    counts, seen = confusion(found)
    assert seen.min() > 100
    p = p.double()
    assert ((counts / seen - p).abs() <= 5 * (p * (1 - p) / seen).sqrt() + 1 / seen).all()


@settings(max_examples=30, deadline=None)
@given(classes=st.integers(1, 9), seed=st.integers(0, 1000))
def test_a_sampler_follows_its_rows_and_never_draws_what_cannot_be(classes, seed):
    draw = generator(seed, "rows")
    rows = torch.rand(3, classes, generator=draw) * (torch.rand(3, classes, generator=draw) < 0.6)
    rows[:, seed % classes] += 0.1
    n = 3000
    label = Sampler(rows).draw(torch.arange(3).repeat_interleave(n), draw).view(3, n)
    share = torch.nn.functional.one_hot(label, classes).double().mean(1)
    p = (rows / rows.sum(1, keepdim=True)).double()
    assert (share[p == 0] == 0).all()
    assert ((share - p).abs() <= 5.5 * (p * (1 - p) / n).sqrt() + 1 / n).all()


@pytest.mark.parametrize("classes", [2, 5])
def test_votes_follow_the_tables(classes):
    draw = generator(0, "test")
    crowd = Crowd.of(
        ("one coin", tables.one_coin(2, classes, (2.0, 1.0), draw)),
        ("two coins", tables.two_coin(2, classes, (2.0, 1.0), draw)),
        ("dirichlet", tables.dirichlet_rows(2, classes, (2.0, 1.0), draw)),
        ("hammer", tables.hammers(1, classes)),
        ("constant", tables.constant_spammers(torch.tensor([classes - 1]), classes)),
        assignment=Random(4),
    )
    found = crowd.vote(torch.randint(classes, (20_000,), generator=draw), seed=1)
    assert_follows(found, found.tables)


def test_every_table_has_rows_that_sum_to_one_and_means_what_it_says():
    K, M, draw = 4, 3000, generator(0, "test")
    prior = torch.tensor([0.1, 0.2, 0.3, 0.4])
    made = {
        "one coin": tables.one_coin(M, K, (2.0, 1.0), draw),
        "two coins": tables.two_coin(M, K, (2.0, 1.0), draw),
        "dirichlet": tables.dirichlet_rows(M, K, (2.0, 1.0), draw),
        "hammer": tables.hammers(M, K),
        "uniform": tables.uniform_spammers(M, K),
        "constant": tables.constant_spammers(torch.zeros(M, dtype=torch.int64), K),
        "marginal": tables.marginal_spammers(M, prior),
        "adversary": tables.adversaries(M, K, 0.1),
        "class expert": tables.class_experts(M, K, 2, 0.9, draw),
    }
    for name, table in made.items():
        assert table.shape == (M, K, K), name
        torch.testing.assert_close(table.sum(2), torch.ones(M, K), msg=name)
        assert (table >= 0).all(), name
    for name in ("one coin", "two coins", "dirichlet"):  # Dir(2, 1): right is Beta(2, 1) for any K, of mean 2/3
        right = made[name][:, 1, 1]
        assert abs(right.mean() - 2 / 3) < 5 * (1 / 18 / M) ** 0.5, name
        assert abs(right.var() - 1 / 18) < 0.01, name
    assert (made["one coin"].diagonal(dim1=1, dim2=2).std(1) < 1e-6).all()
    assert (made["two coins"].diagonal(dim1=1, dim2=2).std(1) > 1e-3).float().mean() > 0.99
    off = made["one coin"][:, 0, 1:]
    assert ((off.amax(1) - off.amin(1)) < 1e-6).all()
    torch.testing.assert_close(made["marginal"][5, 2], prior)
    assert (made["adversary"][:, [0, 1, 2, 3], [1, 2, 3, 0]] == 0.9).all()
    known = made["class expert"].diagonal(dim1=1, dim2=2)
    assert ((known == 0.9).sum(1) == 2).all()
    assert (known[known != 0.9] == 0.25).all()


def test_bias_mixes_in_a_favourite():
    table = tables.biased(tables.hammers(2, 3), torch.tensor([0, 2]), 0.25)
    torch.testing.assert_close(table[1], torch.tensor([[0.75, 0, 0.25], [0, 0.75, 0.25], [0, 0, 1.0]]))


def test_easy_tasks_are_answered_right_and_unskilled_workers_are_not():
    skill, ease = torch.tensor([2.0, 0.5, -1.0]), torch.tensor([0.2, 3.0])
    n = 4000
    answers = ByDifficulty(skill, ease.repeat(n), 4)
    crowd = Crowd(("worker",) * 3, answers, Complete())
    found = crowd.vote(torch.full((2 * n,), 2))
    votes = found.votes
    right = (
        torch.zeros(2, 3).index_put_((votes.task % 2, votes.worker), (votes.label == 2).float(), accumulate=True) / n
    )
    p = torch.sigmoid(ease[:, None] * skill)
    assert ((right - p).abs() < 5 * (p * (1 - p) / n).sqrt()).all()
    wrong = torch.bincount(votes.label[votes.label != 2], minlength=4).double()
    assert (wrong[[0, 1, 3]] / wrong.sum() - 1 / 3).abs().max() < 5 * (2 / 9 / wrong.sum()) ** 0.5
    assert found.tables is None
    torch.testing.assert_close(found.accuracy, right.mean(0).double())


def test_expertise_is_right_on_its_side():
    expertise, place = torch.tensor([[1.0, 0.0], [0.0, -1.0]]), torch.tensor([[1.0, 1.0], [-1.0, 2.0], [2.0, -1.0]])
    votes = Crowd(("worker",) * 2, ByExpertise(expertise, place, 3), Complete()).vote(torch.tensor([0, 1, 2])).votes
    right = (votes.label == votes.task).view(3, 2)  # the truth of task i is i
    assert right.tolist() == [[True, False], [False, False], [True, True]]


def followed(fidelity: float, seed: int = 0) -> tuple[Simulated, FromTables]:
    own = FromTables(tables.one_coin(6, 3, (2.0, 1.0), generator(seed, "own")))
    source = torch.tensor([-1, 0, -1, 2, -1, 0])
    crowd = Crowd(("worker",) * 6, own, Random(2), copying=Copying(source, fidelity))
    return crowd.vote(torch.randint(3, (8000,), generator=generator(seed, "truth")), seed), own


def by_worker(found: Simulated, worker: int) -> tuple[Tensor, Tensor]:
    mine = found.votes.worker == worker
    return found.votes.task[mine], found.votes.label[mine]


@pytest.mark.parametrize(("follower", "source"), [(1, 0), (3, 2), (5, 0)])
def test_copies_copy(follower, source):
    found, _ = followed(1.0)
    for mine, theirs in zip(by_worker(found, follower), by_worker(found, source), strict=True):
        assert torch.equal(mine, theirs)
    torch.testing.assert_close(found.tables[follower], found.tables[source])


def test_only_some_votes_are_copied():
    found, own = followed(0.7)
    task, label = by_worker(found, 1)
    same_task, copied = by_worker(found, 0)
    assert torch.equal(task, same_task)
    truth = found.truth[task]
    by_chance = (own.tables[0] * own.tables[1]).sum(1)[truth]  # both say the same by themselves
    expected = (0.7 + 0.3 * by_chance.double()).mean()
    assert abs((label == copied).double().mean() - expected) < 5 * (0.25 / task.numel()) ** 0.5
    torch.testing.assert_close(found.tables[1], 0.7 * own.tables[0] + 0.3 * own.tables[1])
    assert_follows(found, found.tables)


def test_nobody_copies_a_copy():
    with pytest.raises(BadOption, match="copies one who copies"):
        Copying(torch.tensor([-1, 0, 1]))


def test_the_reach_of_eager_workers():
    crowd = Crowd.of(
        ("worker", tables.hammers(4, 2)),
        ("spammer", tables.uniform_spammers(2, 2)),
        reach=torch.tensor([0, 0, 0, 0, 1.0, 0.5]),
    )
    found = crowd.vote(torch.zeros(4000, dtype=torch.int64))
    per_worker = torch.bincount(found.votes.worker).double()
    assert per_worker[:5].tolist() == [4000] * 5  # the default 5 votes, of the four who wait for them
    assert abs(per_worker[5] - 2000) < 5 * 1000**0.5
