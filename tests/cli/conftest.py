"""A small crowd on disk, and the program: run inside the test, or as a process of its own."""

from __future__ import annotations

import csv
import io
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxpop.cli.app import run

CLASSES = ("bird", "cat", "dog")
RIGHT = {"ann": 0.95, "bob": 0.9, "eve": 0.85, "joe": 0.8, "spam": 1 / 3}  # worker -> chance of being right


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line on stderr; a test fails where there are more, or where it is no plain error."""
        (line,) = self.err.splitlines()
        assert line.startswith("error: "), line
        return line

    @property
    def table(self) -> list[dict[str, str]]:
        """Standard output as CSV."""
        return list(csv.DictReader(io.StringIO(self.out)))


Run = Callable[..., Outcome]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is the current one, with votes.csv and truth.csv in it."""
    monkeypatch.chdir(tmp_path)
    luck = random.Random(1)
    truth = {f"t{i}": luck.choice(CLASSES) for i in range(30)}
    votes = [
        (task, worker, right if luck.random() < chance else luck.choice(CLASSES))
        for task, right in truth.items()
        for worker, chance in RIGHT.items()
    ]
    write_csv(tmp_path / "votes.csv", ("task", "worker", "label"), votes)
    write_csv(tmp_path / "truth.csv", ("task", "label"), list(truth.items()))
    return tmp_path


@pytest.fixture
def features(here: Path) -> Path:
    """x.npz: features that tell the classes of the tasks of votes.csv; new.npz and new.csv: twelve tasks more."""
    rng = np.random.default_rng(0)
    truth = [CLASSES.index(row["label"]) for row in read_csv(here / "truth.csv")]
    more = [i % 3 for i in range(12)]
    for name, labels, tasks in (
        ("x", truth, [f"t{i}" for i in range(30)]),
        ("new", more, [f"n{i}" for i in range(12)]),
    ):
        x = 3 * np.eye(3)[labels] + rng.normal(size=(len(labels), 3))
        np.savez(here / f"{name}.npz", x=x.astype(np.float32), tasks=tasks)
    write_csv(here / "new.csv", ("task", "label"), [(f"n{i}", CLASSES[k]) for i, k in enumerate(more)])
    return here


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def read_csv(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def voxpop(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``voxpop("aggregate", "votes.csv")`` runs that command line in this process."""

    def call(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run(arguments)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def started(here: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """``started("aggregate", "votes.csv")`` starts a process; keywords go to Popen."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        settings = {**streams, "env": plain_env(), **options}
        process = subprocess.Popen([sys.executable, "-m", "voxpop.cli", *arguments], **settings)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        with process:  # closes its pipes
            pass


def plain_env(**more: str) -> dict[str, str]:
    """The environment without what would colour or buffer the output differently; one thread, as in the tests."""
    away = {"FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "NO_COLOR", "PYTHONUNBUFFERED"}
    return {name: value for name, value in os.environ.items() if name not in away} | {"OMP_NUM_THREADS": "1"} | more


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}
