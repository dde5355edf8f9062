"""voxpop agreement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import voxpop as vp
from tests.cli.conftest import Run, read_csv, write_csv


def test_the_numbers_are_those_of_the_library(voxpop: Run):
    found = json.loads(voxpop("agreement", "votes.csv", "--json").out)
    assert found == vp.agreement(vp.read("votes.csv")).to_dict()
    assert 0 < found["alpha"]["low"] < found["alpha"]["value"] < found["alpha"]["high"] < 1


def test_the_table_for_people(voxpop: Run):
    expected = vp.agreement(vp.read("votes.csv"))
    done = voxpop("agreement", "votes.csv")
    assert (done.code, done.err) == (0, "")
    (alpha,) = [line for line in done.out.splitlines() if "Krippendorff's alpha" in line]
    numbers = [expected.alpha.value, expected.alpha.low, expected.alpha.high]
    assert alpha.split()[-3:] == [f"{n:.3f}" for n in numbers]
    assert any("Fleiss' kappa" in line for line in done.out.splitlines())
    assert "150 of 150 votes can be compared: those on the 30 tasks with two votes or more" in done.out


def test_level_resamples_and_seed(voxpop: Run):
    plain, wide, other = (
        json.loads(voxpop("agreement", "votes.csv", "--json", *options).out)
        for options in ((), ("--level", "0.99", "--resamples", "500"), ("--seed", "7"))
    )
    assert (wide["level"], wide["resamples"]) == (0.99, 500)
    assert wide["alpha"]["low"] < plain["alpha"]["low"]
    assert other["alpha"]["value"] == plain["alpha"]["value"]
    assert other["alpha"]["low"] != plain["alpha"]["low"]


def test_metric(voxpop: Run):
    number = {"bird": "1", "cat": "2", "dog": "4"}
    rows = [(r["task"], r["worker"], number[r["label"]]) for r in read_csv("votes.csv")]
    write_csv(Path("numbers.csv"), ("task", "worker", "label"), rows)
    alphas = {
        metric: json.loads(voxpop("agreement", "numbers.csv", "--json", "--metric", metric).out)["alpha"]["value"]
        for metric in ("nominal", "ordinal", "interval")
    }
    assert len(set(alphas.values())) == 3
    expected = vp.agreement(vp.read("numbers.csv"), metric="interval").alpha.value
    assert alphas["interval"] == pytest.approx(expected)


def test_reading_takes_the_same_options_as_aggregate(voxpop: Run):
    rows = [tuple(r.values()) for r in read_csv("votes.csv")]
    write_csv(Path("odd.csv"), ("item", "who", "says"), [*rows, ("t1", "ann", "?"), ("t1", "bob", "")])
    columns = ("--task", "item", "--worker", "who", "--label", "says")
    done = voxpop("agreement", "odd.csv", *columns, "--ignore", "?", "--missing", "drop", "--json")
    assert done.out == voxpop("agreement", "votes.csv", "--json").out
    assert done.err == "note: left out 2 of the answers (1 missing, 1 ignored)\n"


def test_where_nothing_can_be_compared(voxpop: Run):
    write_csv(Path("thin.csv"), ("task", "worker", "label"), [("a", "ann", "cat"), ("b", "bob", "dog")])
    done = voxpop("agreement", "thin.csv", "--json")
    assert done.code == 0
    assert done.err.startswith("warning: no task has two votes")
    assert json.loads(done.out)["alpha"] == {"value": None, "low": None, "high": None}
    assert voxpop("agreement", "thin.csv").out.count(" - ") >= 3
