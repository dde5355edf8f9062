"""The table of workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxpop.errors import BadInput
from voxpop.loop.crowd import read_workers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "workers.csv"


def test_what_is_not_said_has_a_default(file: Path):
    file.write_text("worker,cost,capacity,available\nann,2.5,3,no\nbob,,,\neve,0,0,TRUE\n")
    assert read_workers(file).rows() == [("ann", 2.5, 3, False), ("bob", 1.0, None, True), ("eve", 0.0, 0, True)]
    file.write_text("who,worker\nx,007\n")
    assert read_workers(file).rows() == [("007", 1.0, None, True)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name,cost\nann,1\n", "no column 'worker'.*name the column of workers so"),
        ("worker,cost\n,1\n", r"row 1 \(line 2\): no worker; fill it in"),
        ("worker\nann\nbob\nann\n", r"row 3 \(line 4\): worker 'ann' a second time; keep one row a worker"),
        ("worker,cost\nann,-1\n", r"row 1 \(line 2\): cost is '-1'; give a number, zero or more"),
        ("worker,cost\nann,inf\n", "cost is 'inf'"),
        ("worker,cost\nann,nan\n", "cost is 'nan'"),
        ("worker,cost\nann,cheap\n", "cost is 'cheap'"),
        ("worker,capacity\nann,1.5\n", "capacity is '1.5'; give a whole number of at least 0, or nothing for any"),
        ("worker,capacity\nann,-1\n", "capacity is '-1'"),
        ("worker,available\nann,maybe\n", "available is 'maybe'; give yes or no"),
        ("worker,cost,available\nann,x,y\nbob,1,z\n", r"row 1 .* cost is 'x'.*\(and 1 more\)$"),
    ],
)
def test_every_mistake_is_named_with_its_place(file: Path, content: str, says: str):
    file.write_text(content)
    with pytest.raises(BadInput, match=says):
        read_workers(file)
