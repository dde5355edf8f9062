"""Features kept in the loop's directory, so that it needs nothing outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from tests.loop.conftest import frame
from voxpop.errors import BadInput
from voxpop.io.features import read_features
from voxpop.loop import pool
from voxpop.loop.loop import Loop


def test_numbers(tmp_path: Path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.savez(tmp_path / "x.npz", x=x, tasks=[7, 5, 6])
    pool.keep(read_features(tmp_path / "x.npz"), tmp_path)
    found = pool.kept(tmp_path)
    assert found is not None
    np.testing.assert_array_equal(found.X, x)
    assert found.tasks.to_list() == ["7", "5", "6"]


def test_a_table_of_numbers_and_one_of_texts(tmp_path: Path):
    pl.DataFrame({"task": ["b", "a"], "u": [1, 2], "v": [3.5, 4.5]}).write_csv(tmp_path / "x.csv")
    pool.keep(read_features(tmp_path / "x.csv"), tmp_path)
    found = pool.kept(tmp_path)
    assert found is not None
    assert found.X.tolist() == [[1, 3.5], [2, 4.5]]
    pl.DataFrame({"task": ["b", "a"], "body": ["some words", "others"]}).write_csv(tmp_path / "t.csv")
    pool.keep(read_features(tmp_path / "t.csv", text="body"), tmp_path)
    found = pool.kept(tmp_path)
    assert found is not None
    assert (found.kind, list(found.X)) == ("texts", ["some words", "others"])


def test_images_are_copied(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "crowd").mkdir()
    for name in ("cat", "dog"):
        (tmp_path / "photos" / f"{name}.png").write_bytes(name.encode())
    pool.keep(read_features(tmp_path / "photos"), tmp_path / "crowd")
    (tmp_path / "photos" / "cat.png").unlink()
    (tmp_path / "crowd").rename(tmp_path / "moved")
    found = pool.kept(tmp_path / "moved")
    assert found is not None
    assert (found.kind, found.tasks.to_list()) == ("images", ["cat", "dog"])
    assert [Path(path).read_bytes() for path in found.X] == [b"cat", b"dog"]


def test_there_may_be_none(tmp_path: Path):
    assert pool.kept(tmp_path) is None


def test_votes_on_tasks_without_features_are_refused(tmp_path: Path):
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 2)), tasks=["a", "b"])
    votes = vp.Votes.from_frame(frame("a ann yes", "c ann no"))
    with pytest.raises(BadInput, match=r"x.npz: 1 of the 2 tasks with votes have no features \(first: 'c'\)"):
        Loop.begin(tmp_path / "crowd", votes, read_features(tmp_path / "x.npz"))
    assert not (tmp_path / "crowd").exists()
