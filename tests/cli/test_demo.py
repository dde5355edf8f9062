"""voxpop demo; what it shows is tested with the report."""

from __future__ import annotations

from pathlib import Path

import pytest

import voxpop.report
from tests.cli.conftest import Run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path | None, int]]:
    """What the demonstration was asked for, in place of half a minute of work."""
    calls: list[tuple[Path | None, int]] = []

    def run_demo(report: Path | None, seed: int) -> str:
        calls.append((report, seed))
        return "what was found"

    monkeypatch.setattr(voxpop.report, "run_demo", run_demo)
    return calls


def test_demo_shows_what_was_found(voxpop: Run, asked: list[tuple[Path | None, int]]):
    done = voxpop("demo")
    assert (done.code, done.out, done.err) == (0, "what was found\n", "")
    assert asked == [(None, 0)]


def test_the_report_and_its_directory(voxpop: Run, asked: list[tuple[Path | None, int]]):
    assert voxpop("demo", "--report", "demo/report.html", "--seed", "3").code == 0
    assert asked == [(Path("demo/report.html"), 3)]
    assert Path("demo").is_dir()


@pytest.mark.parametrize("place", [".", "/proc/report.html", "/proc/nowhere/report.html", "votes.csv/report.html"])
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    voxpop: Run, asked: list[tuple[Path | None, int]], place: str
):
    failed = voxpop("demo", "--report", place)
    assert failed.code == 2
    assert place.partition("/report")[0] in failed.error
    assert asked == []
