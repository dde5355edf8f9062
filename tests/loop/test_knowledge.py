"""What all votes say: the last full fit, and Bayes' rule for the votes that came after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from tests.loop.conftest import TASKS, first_votes, frame
from voxpop.loop import online
from voxpop.loop.loop import Loop


@pytest.fixture
def fitted(tmp_path: Path) -> Iterator[Loop]:
    """With a full fit of the first 24 votes by Dawid and Skene's method."""
    with Loop.begin(tmp_path / "crowd", first_votes(), tasks=TASKS, method="dawid-skene") as made:
        made.fit()
        yield made


def tell(loop: Loop, *rows: str) -> None:
    loop.tell(vp.Votes.from_frame(frame(*rows), tasks=TASKS, classes=["no", "yes"]))


def test_right_after_a_fit_it_is_the_fit(fitted: Loop):
    known = fitted.known()
    assert known.since == 0
    torch.testing.assert_close(known.belief, vp.DawidSkene().infer(first_votes()).belief)


def test_votes_after_a_fit_count_by_bayes_rule(fitted: Loop):
    before = fitted.known()
    table = before.found.table  # M,K,K
    assert table is not None
    tell(fitted, "t00 ann yes", "t09 bob no", "t09 eve no")
    known = fitted.known()
    assert known.since == 3
    people, belief = list(before.votes.workers), before.belief.double().numpy().copy()  # N,K
    for task, worker, label in ((0, "ann", 1), (9, "bob", 0), (9, "eve", 0)):
        belief[task] *= table[people.index(worker), :, label].double().numpy()
    np.testing.assert_allclose(known.belief.numpy(), belief / belief.sum(1, keepdims=True), rtol=1e-4)
    assert known.belief[9, 0] > 0.9 > 0.6 > before.belief[9, 0]
    assert known.votes.V == 27


def test_whom_the_fit_does_not_know_is_judged_online(fitted: Loop):
    before = fitted.known().belief[9].double()
    tell(fitted, "t09 zoe yes")
    known, state = fitted.known(), online.learn(fitted.store)
    assert state is not None
    zoe = state.consensus_.table[list(state.consensus_.votes.workers).index("zoe")]  # K,K
    expected = before * zoe[:, 1].double()
    torch.testing.assert_close(known.belief[9].double(), expected / expected.sum(), rtol=1e-4, atol=1e-6)


def test_without_a_fit_all_votes_count_online(loop: Loop):
    known, state = loop.known(), online.learn(loop.store)
    assert known.fit is None
    assert state is not None
    assert state.consensus_.votes.tasks.names.to_list() == TASKS[:8]  # it knows of tasks with votes only
    torch.testing.assert_close(known.belief[:8], state.consensus_.belief, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(known.belief[8:].amax(1), torch.full((4,), 0.5), rtol=0, atol=0.1)


def test_a_worker_who_is_only_named_changes_nothing(fitted: Loop):
    before = fitted.known().belief
    with fitted.store.changing():
        fitted.store.employ(pl.DataFrame({"worker": ["zoe"], "cost": [1.0], "capacity": [None], "available": [True]}))
    known = fitted.known()
    assert known.votes.M == 4
    torch.testing.assert_close(known.belief, before)


def test_a_fit_whose_file_is_gone_is_no_fit(fitted: Loop):
    (file,) = fitted.directory.glob("fit-*.vox")
    file.unlink()
    assert fitted.known().fit is None
    fitted.fit()
    assert fitted.known().since == 0
