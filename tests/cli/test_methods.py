"""voxpop methods."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from voxpop.methods.registry import LEARNERS, METHODS


def test_the_table_has_a_line_for_each_method(voxpop: Run):
    lines = voxpop("methods").out.splitlines()
    for name, entry in {**METHODS, **LEARNERS}.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.split()[1] == ("aggregate" if name in METHODS else "learn")
        assert entry.summary in line
        assert entry.paper in line


def test_the_list_for_machines(voxpop: Run):
    found = json.loads(voxpop("methods", "--json").out)
    assert [method["name"] for method in found] == ["default", *METHODS, *LEARNERS]
    assert {method["for"] for method in found if method["name"] in METHODS} == {"aggregate"}
    assert {method["for"] for method in found if method["name"] in LEARNERS} <= {"learn"}
    assert {"name", "for", "python", "summary", "paper", "equations"} == set(found[1])


def test_one_method_shows_every_option_with_default_rule_and_help(voxpop: Run):
    shown = voxpop("methods", "belief-propagation").out
    (line,) = [line for line in shown.splitlines() if line.split()[:1] == ["damping"]]
    assert " ".join(line.split()) == "damping 0 a number from 0 to below 1 how much of the last message is kept"
    (line,) = [line for line in shown.splitlines() if line.split()[:1] == ["alpha"]]
    assert line.split()[:2] == ["alpha", "2,1"]


@pytest.mark.parametrize("name", ["default", *METHODS])
def test_every_method_can_be_shown_and_its_defaults_can_be_set(voxpop: Run, name: str):
    method = json.loads(voxpop("methods", name, "--json").out)
    assert method["name"] == name
    shown = voxpop("methods", name)
    example = [line for line in shown.out.splitlines() if line.startswith("Example: voxpop ")]
    if method["options"]:
        assert example[0].split()[-2:][0] == "--set"
        assert voxpop(*example[0].split()[2:], "-o", "-").code == 0
    else:
        assert "no options" in shown.out


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_is_shown_with_its_own_command(voxpop: Run, name: str):
    method = json.loads(voxpop("methods", name, "--json").out)
    assert (method["name"], method["for"]) == (name, "learn")
    assert {"model", "epochs"} <= {option["name"] for option in method["options"]}
    assert f"Example: voxpop learn votes.csv --features x.npz -m {name} --set " in voxpop("methods", name).out


def test_an_unknown_method(voxpop: Run):
    failed = voxpop("methods", "dawidskene")
    assert failed.code == 2
    assert "did you mean 'dawid-skene'?" in failed.error
