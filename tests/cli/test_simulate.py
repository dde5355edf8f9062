"""voxpop simulate."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from tests.cli.conftest import Run, files_in, read_csv
from voxpop.simulate import ASSIGNMENTS, KINDS

SMALL = ("--tasks", "20", "--workers", "7", "--classes", "3")


def test_votes_truth_and_workers(voxpop: Run, here: Path):
    outputs = ("-o", "v.csv", "--truth-out", "t.csv", "--workers-out", "w.csv")
    done = voxpop("simulate", "spammers", *outputs, *SMALL, "--seed", "5", "--set", "share=0.5")
    assert (done.code, done.out, done.err) == (0, "", "")
    expected = vp.simulate(20, 7, 3, "spammers", 5, share=0.5)
    for name, frame in (
        ("v", expected.votes.to_frame()),
        ("t", expected.truth_frame()),
        ("w", expected.worker_frame()),
    ):
        assert pl.read_csv(f"{name}.csv").equals(frame.select(pl.read_csv(f"{name}.csv").columns))
    assert list(read_csv("v.csv")[0]) == ["task", "worker", "label"]
    assert files_in(here) == {"votes.csv", "truth.csv", "v.csv", "t.csv", "w.csv"}


def test_stdout_is_the_default(voxpop: Run):
    table = voxpop("simulate", "one-coin", *SMALL).table
    assert {row["task"] for row in table} == {str(i) for i in range(20)}


def test_votes_per_task_and_assignment(voxpop: Run):
    assert len(voxpop("simulate", "one-coin", *SMALL, "--votes-per-task", "2").table) == 40
    assert len(voxpop("simulate", "one-coin", *SMALL, "--assignment", "complete").table) == 140


def test_options_of_every_type(voxpop: Run):
    done = voxpop("simulate", "biased", *SMALL, "--set", "alpha=5,1", "--set", "together=true", "--set", "bias=0.9")
    expected = vp.simulate(20, 7, 3, "biased", alpha=(5, 1), together=True, bias=0.9)
    assert done.out == expected.votes.to_frame().write_csv()


def test_the_list_names_every_kind_and_assignment(voxpop: Run):
    shown = voxpop("simulate", "--list").out
    lines = {line.split()[0]: line for line in shown.splitlines() if line.split()}
    for name, kind in KINDS.items():
        assert kind.about in lines[name]
    assert "style=mixed" in lines["spammers"]
    assert lines["assignments:"] == f"assignments: {', '.join(ASSIGNMENTS)}"


def test_the_list_for_machines_holds_options_that_can_be_set(voxpop: Run):
    found = json.loads(voxpop("simulate", "--list", "--json").out)
    assert [kind["name"] for kind in found["kinds"]] == list(KINDS)
    assert found["assignments"] == list(ASSIGNMENTS)
    options = {kind["name"]: kind["options"] for kind in found["kinds"]}
    assert options["spammers"]["share"] == 0.3
    assert options["expertise"] == {}  # it takes an array, which only Python can give


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_runs_with_its_defaults_set(voxpop: Run, kind: str):
    found = json.loads(voxpop("simulate", "--list", "--json").out)
    (options,) = [k["options"] for k in found["kinds"] if k["name"] == kind]
    settings = [f"{n}={','.join(map(str, v)) if isinstance(v, list) else v}" for n, v in options.items()]
    told = voxpop("simulate", kind, "--tasks", "500", *(word for s in settings for word in ("--set", s)))
    untold = voxpop("simulate", kind, "--tasks", "500")
    assert told.code == 0
    assert told.out == untold.out
