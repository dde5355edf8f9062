"""Pairs who vote as one: planted ones are found, and honest crowds are left in peace."""

from __future__ import annotations

import polars as pl
import pytest
import torch

import voxpop.audit.copies as module
from voxpop.audit.copies import copies
from voxpop.errors import TooLarge
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.methods.hierarchical import HierarchicalDawidSkene
from voxpop.methods.majority import MajorityVote
from voxpop.results import Consensus
from voxpop.simulate import simulate
from voxpop.votes import Votes


def complete(table: torch.Tensor, truth: torch.Tensor, seed: int) -> torch.Tensor:
    """Everyone's label on every task, each by himself: N,M."""
    rng = torch.Generator().manual_seed(seed)
    return torch.stack([torch.multinomial(rows[truth], 1, generator=rng)[:, 0] for rows in table], 1)


def votes_of(matrix: torch.Tensor) -> Votes:
    return Votes.from_matrix(matrix.numpy())


@pytest.fixture(scope="module")
def crowd() -> tuple[torch.Tensor, torch.Tensor]:
    """Nine workers, right in 50 to 90% of 400 tasks of four classes: the truth and their labels."""
    truth = torch.arange(400) % 4
    right = torch.linspace(0.5, 0.9, 9)
    table = torch.stack([torch.full((4, 4), float(1 - r) / 3).fill_diagonal_(float(r)) for r in right])
    return truth, complete(table, truth, seed=0)


def test_a_planted_copy_is_the_only_pair(crowd):
    _, labels = crowd
    rng = torch.Generator().manual_seed(1)
    copied = labels[:, 2].clone()
    own = torch.rand(400, generator=rng) < 0.15
    copied[own] = torch.randint(4, (int(own.sum()),), generator=rng)
    found = copies(DawidSkene().infer(votes_of(torch.cat([labels, copied[:, None]], 1))))
    assert found.select("worker", "other").rows() == [(2, 9)]
    assert found["shared"].item() == 400
    assert found["agreed"].item() == int((copied == labels[:, 2]).sum())
    assert found["expected"].item() < 250
    assert found["copied"].item() == pytest.approx(0.85, abs=0.12)


def test_independent_workers_are_left_in_peace(crowd):
    assert copies(DawidSkene().infer(votes_of(crowd[1]))).is_empty()


@pytest.mark.parametrize("kind", ["one-coin", "spammers", "adversaries", "difficulty", "class-experts"])
def test_crowds_without_copies_are_left_in_peace(kind: str):
    for seed in range(3):
        votes = simulate(600, 30, 4, kind, seed=seed, votes_per_task=6).votes
        assert copies(HierarchicalDawidSkene(sweeps=10).infer(votes)).is_empty()


def test_what_is_expected_is_what_independent_workers_do():
    """With the true tables and the truth as belief, agreement has the expected mean (3 standard errors)."""
    truth = torch.arange(6000) % 3
    table = torch.tensor(
        [[[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], [[0.5, 0.4, 0.1], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]]]
    )
    votes = votes_of(complete(table, truth, seed=5))
    belief = torch.nn.functional.one_hot(truth, 3).float()
    found = Consensus(votes, belief, "Truth", MajorityVote().infer(votes).status, fitted_table=table)
    pair = module._agreements(found)
    assert pair["expected"].item() == pytest.approx(2000 * float((table[0] * table[1]).sum()), rel=1e-5)
    assert abs(pair["agreed"].item() - pair["expected"].item()) < 3 * (6000 * 0.25) ** 0.5


def test_agreements_equal_a_count_by_hand():
    rows = [("a", "x", 0), ("a", "y", 0), ("a", "z", 1), ("b", "x", 1), ("b", "z", 1), ("c", "y", 0), ("c", "y", 1)]
    votes = Votes.from_frame(pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row"))
    table = module._agreements(MajorityVote().infer(votes))
    assert table.select("worker", "other", "shared", "agreed").rows() == [
        ("x", "y", 1, 1),
        ("x", "z", 2, 1),
        ("y", "z", 1, 0),
    ]


def test_of_too_many_pairs_a_part_is_looked_at(crowd, monkeypatch):
    labels = crowd[1]
    found = DawidSkene().infer(votes_of(torch.cat([labels, labels[:, 2:3]], 1)))
    monkeypatch.setattr(module, "MOST_PAIRS", 100 * 45)  # 45 pairs of votes on each task: 100 tasks
    part = copies(found)
    assert part.select("worker", "other").rows() == [(2, 9)]
    assert part["shared"].item() == 100


def test_one_crowded_task_does_not_take_all_room(monkeypatch):
    rows = [("crowded", f"w{i:03}", "x") for i in range(100)] + [
        (f"t{i}", w, "x") for i in range(20) for w in ("a", "b")
    ]
    votes = Votes.from_frame(pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row"), classes=["x", "y"])
    monkeypatch.setattr(module, "MOST_PAIRS", 1000)
    first, _ = module._pairs_of_votes(votes)
    assert len(first) == 20


@pytest.mark.filterwarnings("ignore::voxpop.errors.DataWarning")
@pytest.mark.parametrize("labels", [[[0]], [[0, 0]], [[0, 1], [1, 0]], [[-1, -1], [0, -1]]])
def test_too_little_to_go_by_accuses_nobody(labels: list[list[int]]):
    found = copies(MajorityVote().infer(votes_of(torch.tensor(labels))))
    assert found.is_empty()
    assert found.columns == ["worker", "other", "shared", "agreed", "expected", "copied", "p"]


def test_matrices_that_do_not_fit_are_refused():
    votes = Votes.from_arrays([0, 0], [0, 1], [0, 0], tasks=[0], workers=range(10_000), classes=range(200))
    found = Consensus(votes, torch.full((1, 200), 1 / 200), "Mine", MajorityVote().infer(_two_votes()).status)
    with pytest.raises(TooLarge, match="do not fit"):
        copies(found)


def _two_votes() -> Votes:
    return Votes.from_arrays([0, 1], [0, 1], [0, 1])
