"""voxpop convert."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, files_in, read_csv
from tests.cli.test_aggregate import label_studio


@pytest.fixture
def export(here: Path) -> str:
    (here / "export.json").write_text(json.dumps(label_studio()))
    return "export.json"


def test_label_studio(voxpop: Run, export: str):
    done = voxpop("convert", "label-studio", export, "out.csv", "--question", "animal", "--gold-out", "gold.csv")
    assert (done.code, done.out) == (0, "")
    assert done.err == "note: left out 6 of the answers (6 cancelled)\n"
    votes = read_csv("out.csv")
    assert list(votes[0]) == ["task", "worker", "label"]
    assert len(votes) == 18
    assert read_csv("gold.csv") == [{"task": "1", "label": "dog"}]


def test_what_is_converted_can_be_aggregated(voxpop: Run, export: str):
    voxpop("convert", "label-studio", export, "out.csv", "--question", "animal")
    done = voxpop("aggregate", "out.csv", "-o", "-", "-m", "majority-vote")
    direct = voxpop("aggregate", export, "--question", "animal", "--no-gold", "-o", "-", "-m", "majority-vote")
    assert done.out == direct.out


def test_predictions_and_task(voxpop: Run, export: str):
    done = voxpop("convert", "label-studio", export, "-", "--question", "animal", "--predictions", "--task", "name")
    assert {row["worker"] for row in done.table} == {"1", "2", "3", "m1"}
    assert {row["task"] for row in done.table} == {f"picture {i}" for i in range(1, 7)}


def test_stdin(voxpop: Run, export: str):
    command = ("--question", "mood")
    named = voxpop("convert", "label-studio", export, "-", *command)
    piped = voxpop("convert", "label-studio", "-", "-", *command, stdin=Path(export).read_bytes())
    assert piped.out == named.out
    assert {row["label"] for row in piped.table} == {"sad"}


def test_an_export_without_gold_says_so(voxpop: Run):
    Path("plain.json").write_text(json.dumps(label_studio(gold=False)))
    done = voxpop("convert", "label-studio", "plain.json", "o.csv", "--question", "animal", "--gold-out", "gold.csv")
    assert done.err.splitlines()[-1] == "note: plain.json has no gold answers, so gold.csv has no rows"
    assert Path("gold.csv").read_text() == "task,label\n"


def test_several_questions_must_be_chosen_from_and_nothing_is_written(voxpop: Run, export: str, here: Path):
    failed = voxpop("convert", "label-studio", export, "out.csv")
    assert failed.code == 2
    assert "'animal', 'mood'; choose one with --question" in failed.error
    wrong = voxpop("convert", "label-studio", export, "out.csv", "--question", "anmal")
    assert "unknown question 'anmal': did you mean 'animal'?" in wrong.error
    assert files_in(here) == {"votes.csv", "truth.csv", "export.json"}
