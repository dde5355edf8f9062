"""voxpop simulate loop."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run, read_csv
from voxpop.loop.rehearsal import STRATEGIES

TINY = ("--on", "none", "--tasks", "30", "--workers", "6", "-k", "20", "--rounds", "2", "--start", "20", "--seeds", "2")
COLUMNS = ["strategy", "votes", "seeds", "consensus", "consensus_low", "consensus_high"]


def test_curves_of_every_strategy(voxpop: Run):
    done = voxpop("simulate", "loop", *TINY, "-o", "curves.csv")
    assert (done.code, done.err) == (0, "")
    rows = read_csv("curves.csv")
    assert list(rows[0]) == COLUMNS
    assert [(row["strategy"], row["votes"]) for row in rows] == [
        (name, votes) for name in STRATEGIES for votes in ("20", "40", "60")
    ]
    assert {row["seeds"] for row in rows} == {"2"}
    for row in rows:
        assert float(row["consensus_low"]) <= float(row["consensus"]) <= float(row["consensus_high"])
        assert row["votes"] in done.out
    assert "active worker" in done.out


def test_json_and_csv_say_the_same_and_a_rerun_too(voxpop: Run):
    options = (*TINY, "--strategy", "both")
    said = json.loads(voxpop("simulate", "loop", "experts", *options, "--json").out)
    table = voxpop("simulate", "loop", "experts", *options, "-o", "-").table
    assert [list(map(str, row.values())) for row in said] == [list(row.values()) for row in table]
    assert list(said[0]) == COLUMNS


def test_exploring_asks_others(voxpop: Run):
    options = (*TINY, "--seeds", "1", "--strategy", "both")
    best, drawn = (
        voxpop("simulate", "loop", *options, "--worker-score", w, "--json").out for w in ("mean", "thompson")
    )
    assert best != drawn


def test_one_seed_has_no_interval(voxpop: Run):
    (row, *_) = json.loads(voxpop("simulate", "loop", *TINY, "--seeds", "1", "--json").out)
    assert row["consensus_low"] is None


def test_with_features_the_classifier_is_scored_too(voxpop: Run):
    options = ("--tasks", "60", "--start", "60", "-k", "10", "--rounds", "1", "--seeds", "1", "--epochs", "1")
    (first, last) = json.loads(
        voxpop("simulate", "loop", *options, "--strategy", "both", "--model", "linear", "--json").out
    )
    assert (first["votes"], last["votes"]) == (60, 70)
    assert 0 < last["classifier"] < 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--strategy", "bth"), "did you mean 'both'?"),
        (("--score", "entrpy"), "did you mean 'entropy'?"),
        (("nobody",), "unknown kind of crowd 'nobody'"),
        (("--on", "nothing"), "unknown data 'nothing'"),
        (("--on", "labelme"), "Name the folder"),
        (("--on", "digits", "-m", "aggnet"), "name dalc, lfc or stal"),
        (("-m", "dalc"), "a method for 'voxpop learn'"),
        (("--start", "1000"), "start=1000"),
        (("--worker-score", "thomson"), "did you mean 'thompson'"),
        (("--json", "-o", "-"), "both write to stdout"),
        (("-o", "curves.txt"), "curves.txt"),
    ],
)
def test_bad_input_is_one_line(voxpop: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str):
    monkeypatch.delenv("VOXPOP_DATA", raising=False)
    done = voxpop("simulate", "loop", *TINY, *options)
    assert done.code == 2
    assert said in done.error


def test_it_explains_itself_and_kinds_of_crowds_are_as_before(voxpop: Run):
    assert "Example: voxpop simulate loop" in voxpop("simulate", "loop", "--help").out
    assert len(voxpop("simulate", "one-coin", "--tasks", "3", "--votes-per-task", "2").table) == 6
