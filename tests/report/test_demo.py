"""The demonstration, run once: it must show what it promises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from rich.console import Console

from voxpop.report import DemoResult, run_demo
from voxpop.report.digits import vote_on_digits


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("demo") / "new" / "report.html"


@pytest.fixture(scope="module")
def result(place: Path) -> DemoResult:
    return run_demo(place)


def test_the_default_is_far_better_than_the_majority(result: DemoResult):
    by_name = {row.method: row for row in result.methods}
    ours = next(row for row in result.methods if row.found)
    assert set(by_name) == {"default", "majority-vote", "mace", "dawid-skene"}
    assert ours.wrong < 0.6 * by_name["majority-vote"].wrong
    assert ours.scores["calibration_error"] < by_name["majority-vote"].scores["calibration_error"] / 4
    assert result.gain.fewer == pytest.approx(1 - ours.wrong / by_name["majority-vote"].wrong)
    assert result.gain.righted - result.gain.spoiled == by_name["majority-vote"].wrong - ours.wrong


def test_spammers_are_found_out_and_nobody_else(result: DemoResult):
    assert result.of_kind("spammer").flagged >= 5  # of 7
    assert result.accused == 0
    assert result.recall >= 5 / 7
    assert result.precision == 1


def test_workers_are_judged_nearly_as_they_are(result: DemoResult):
    assert {row.kind for row in result.judged} == {"expert", "sloppy", "spammer", "copy"}
    assert sum(row.workers for row in result.judged) == 50
    assert max(abs(row.judged - row.accuracy) for row in result.judged) < 0.06


def test_copies_are_caught_and_nobody_else(result: DemoResult):
    assert result.copies_caught == result.of_kind("copy").workers == 5
    assert all(pair.planted for pair in result.pairs)


def test_the_report_is_written(result: DemoResult, place: Path):
    html = place.read_text(encoding="utf-8")
    assert result.report == place
    assert html.count("data:image/png;base64,") >= 6  # the digits
    assert "digit 0" in html
    assert len(html) < 500_000


def test_the_terminal_shows_a_calm_screenful(result: DemoResult, place: Path):
    console = Console(width=80, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        console.print(result)
        lines = console.export_text().splitlines()
    text = "\n".join(line.rstrip() for line in lines)
    assert 25 <= len(lines) <= 34
    assert "…" not in text  # every column fits into 80
    for shown in ("majority-vote", "spammers", "planted copies are caught", "digits"):
        assert shown in text
    assert place.name in text


def test_the_crowd_is_what_it_is_said_to_be():
    digits = vote_on_digits(seed=0)
    assert Counter(digits.kinds.values()) == {"expert": 20, "sloppy": 18, "spammer": 7, "copy": 5}
    copy = next(worker for worker, kind in digits.kinds.items() if kind == "copy")
    votes = digits.votes
    ours, theirs = (
        {int(t): int(c) for t, c in zip(votes.task[mine], votes.label[mine], strict=True)}
        for mine in (votes.worker == votes.workers.position(who) for who in (copy, digits.original[copy]))
    )
    assert ours.keys() == theirs.keys()
    assert sum(ours[task] == theirs[task] for task in ours) / len(ours) > 0.85


def test_pictures_are_of_their_task():
    from io import BytesIO

    from matplotlib.image import imread

    digits = vote_on_digits(seed=0)
    pixels = torch.from_numpy(imread(BytesIO(digits.picture("digit 0010")))[::6, ::6, 0])
    assert torch.allclose(1 - pixels, torch.from_numpy(digits.images[10]).float() / 16, atol=0.08)
