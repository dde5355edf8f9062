"""A small loop: 12 tasks, 4 workers, two classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from voxpop.loop.loop import Loop

TASKS = [f"t{i:02}" for i in range(12)]
WORKERS = ["ann", "bob", "eve", "joe"]


def frame(*rows: str) -> pl.DataFrame:
    """Votes from "task worker label"."""
    return pl.DataFrame([row.split() for row in rows], schema=["task", "worker", "label"], orient="row")


def first_votes() -> vp.Votes:
    """Three workers agree on most tasks; joe is new, and the last four tasks have no votes."""
    rows = [f"{task} {worker} {'no' if i % 2 else 'yes'}" for i, task in enumerate(TASKS[:8]) for worker in WORKERS[:3]]
    rows[0] = "t00 ann no"
    return vp.Votes.from_frame(frame(*rows), tasks=TASKS, classes=["no", "yes"])


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    crowd = pl.DataFrame({"worker": WORKERS, "cost": [1.0, 1.0, 1.0, 1.0], "capacity": None, "available": True})
    with Loop.begin(tmp_path / "crowd", first_votes(), tasks=TASKS, workers=crowd) as made:
        yield made
