"""voxpop.votes.batch: some tasks with their votes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.crowds import crowd
from voxpop.numerics import segments
from voxpop.votes import Votes


def test_the_whole_is_every_vote_grouped_in_three_ways() -> None:
    c = crowd(0, N=13, M=6, K=3, per_task=3)
    batch = c.votes.whole
    table = torch.rand(6 * 3, 2, generator=torch.Generator().manual_seed(0))
    by_task, by_worker = np.zeros((13, 2)), np.zeros((13, 2))
    by_pair, counts = np.zeros((18, 2)), np.zeros((13, 3))
    belief = torch.rand(13, 2, generator=torch.Generator().manual_seed(1))
    for i, w, label in zip(c.task, c.worker, c.label, strict=True):
        by_task[i] += table[w * 3 + label].numpy()
        by_worker[i] += table[w].numpy()
        by_pair[w * 3 + label] += belief[i].numpy()
        counts[i, label] += 1
    np.testing.assert_allclose(batch.by_task.sum(table), by_task, rtol=1e-5)
    np.testing.assert_allclose(batch.workers_by_task.sum(table[:6]), by_worker, rtol=1e-5)
    np.testing.assert_allclose(batch.by_pair.sum_exact(belief), by_pair, rtol=1e-5)
    assert batch.counts().tolist() == counts.tolist()
    assert (batch.B, batch.M, batch.K, batch.V) == (13, 6, 3, 39)


def test_votes_grouped_by_pair_in_many_blocks_and_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 4 tasks and pieces of 3 votes: the sums and the counts stay what they are."""
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 29, 400), rng.integers(0, 3, 400), rng.integers(0, 3, 400)
    axes = {"tasks": range(31), "workers": range(4), "classes": range(3)}
    belief = torch.rand(31, 3, generator=torch.Generator().manual_seed(1))
    plain = Votes.from_arrays(*columns, **axes).whole.by_pair
    monkeypatch.setattr("voxpop.votes.batch.WORTHWHILE", 0)
    monkeypatch.setattr(segments, "BLOCK", 12)
    monkeypatch.setattr(segments, "PIECE", 3)
    cut = Votes.from_arrays(*columns, **axes).whole.by_pair
    assert cut.owner.numel() > plain.owner.numel()
    assert cut.counts.tolist() == plain.counts.tolist()
    np.testing.assert_array_equal(
        cut.counts, np.bincount(columns[1] * 3 + columns[2], minlength=12), "votes of each (worker, label)"
    )
    torch.testing.assert_close(cut.sum_exact(belief), plain.sum_exact(belief), atol=1e-5, rtol=1e-6)


def test_votes_in_the_order_of_workers() -> None:
    batch = crowd(1, N=9, M=4, K=2, per_task=2).votes.whole
    order, offsets = batch.order_by_worker, batch.worker_offsets
    for w in range(4):
        own = order[offsets[w] : offsets[w + 1]]
        assert (batch.worker[own] == w).all()
        assert (own.diff() > 0).all()


def test_a_batch_of_rows_is_those_tasks_in_that_order() -> None:
    votes = crowd(2, N=11, M=5, K=3, per_task=3).votes
    rows = torch.tensor([7, 2, 7, 10])
    batch = votes.batch(rows)
    assert batch.B == 4
    assert (batch.total_tasks, batch.total_votes) == (11, 33)
    for place, task in enumerate(rows.tolist()):
        a, b = votes.offsets[task : task + 2].tolist()
        x, y = batch.offsets[place : place + 2].tolist()
        assert batch.worker[x:y].tolist() == votes.worker[a:b].tolist()
        assert batch.label[x:y].tolist() == votes.label[a:b].tolist()
        assert (batch.task[x:y] == place).all()
        assert (batch.task_ids[x:y] == task).all()


def test_tasks_and_workers_without_votes_are_empty_segments() -> None:
    votes = Votes.from_arrays([3, 1], [2, 2], [1, 0], tasks=range(6), workers=range(4), classes=range(2))
    batch = votes.whole
    assert batch.votes_per_task.tolist() == [0, 1, 0, 1, 0, 0]
    assert batch.worker_offsets.diff().tolist() == [0, 0, 2, 0]
    assert batch.by_task.sum(torch.ones(8, 1))[:, 0].tolist() == [0, 1, 0, 1, 0, 0]
    empty = votes.batch(torch.tensor([0, 5]))
    assert empty.V == 0
    assert empty.counts().tolist() == [[0, 0], [0, 0]]
    none = votes.batch(torch.zeros(0, dtype=torch.int64))
    assert (none.B, none.V) == (0, 0)


def test_no_votes_at_all() -> None:
    votes = Votes.from_arrays([], [], [], tasks=["a"], workers=["w"], classes=["x", "y"])
    assert votes.whole.counts().tolist() == [[0, 0]]
    assert votes.whole.by_pair.sum_exact(torch.ones(1, 2)).tolist() == [[0, 0], [0, 0]]
