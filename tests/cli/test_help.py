"""Help, version, completion, and what starting the program costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import voxpop as vp
from tests.cli.conftest import Run, plain_env
from voxpop.cli.app import EXAMPLES, main
from voxpop.io import IMPORTERS
from voxpop.methods.registry import LEARNERS, METHODS

COMMANDS = (
    "aggregate", "learn", "predict", "ask", "agreement", "convert", "methods", "simulate", "demo", "bench", "loop"
)  # fmt: skip
LOOP = ("init", "ask", "tell", "status", "fit", "export")
HEAVY = ("torch", "polars", "numpy", "sklearn", "scipy", "matplotlib", "pandas", "jinja2")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom voxpop.cli.app import run\n"
        f"assert run(['--help']) == 0\nprint([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=plain_env(), check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(command in done.stdout for command in COMMANDS)


def test_help_names_every_command_and_an_example_of_each(voxpop: Run):
    shown = voxpop("--help")
    assert (shown.code, shown.err) == (0, "")
    for command in COMMANDS:
        assert f"voxpop {command} " in shown.out
        assert any(example.startswith(f"voxpop {command} ") for example in EXAMPLES)


def test_without_a_command_there_is_the_same_help(voxpop: Run):
    shown = voxpop()
    assert shown.code == 0
    assert shown.out.split() == voxpop("--help").out.split()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_an_example(voxpop: Run, command: str):
    shown = voxpop(command, "--help")
    assert shown.code == 0
    assert f"Example: voxpop {command}" in shown.out
    assert "\x1b" not in shown.out
    assert shown.out == voxpop(command, "-h").out


@pytest.mark.parametrize("command", LOOP)
def test_each_command_of_the_loop_explains_itself_with_an_example(voxpop: Run, command: str):
    shown = voxpop("loop", command, "--help")
    assert shown.code == 0
    assert f"Example: voxpop loop {command} crowd" in shown.out
    assert f" {command} " in voxpop("loop").out


def test_the_examples_are_commands_that_parse(voxpop: Run):
    for example in EXAMPLES:
        if example.startswith("voxpop "):
            assert voxpop(*example.split()[1:], "--help").code == 0


def test_help_of_convert_names_every_source(voxpop: Run):
    shown = " ".join(voxpop("convert", "--help").out.split())
    assert "Sources: " + ", ".join(IMPORTERS) in shown


def test_version(voxpop: Run):
    assert voxpop("--version").out == f"voxpop {vp.__version__}\n"


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], list[str]]:
    """What bash is told when the line ends where the cursor is."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_VOXPOP_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "choices"),
    [
        ("voxpop ag", ["aggregate", "agreement"]),
        ("voxpop aggregate votes.csv -m mea", ["mean-field"]),
        ("voxpop learn votes.csv -m max", ["max-mig"]),
        ("voxpop methods ", ["default", *METHODS, *LEARNERS]),
        ("voxpop simulate spam", ["spammers"]),
        ("voxpop convert label", ["label-studio"]),
        ("voxpop aggregate votes.csv --source label", ["label-studio"]),
    ],
)
def test_the_shell_completes(completed: Callable[[str], list[str]], line: str, choices: list[str]):
    assert completed(line) == choices


def test_zsh_gets_its_completion():
    done = subprocess.run(
        [sys.executable, "-m", "voxpop.cli"],
        capture_output=True,
        text=True,
        env=plain_env(_VOXPOP_COMPLETE="source_zsh"),
        check=True,
    )
    assert "#compdef voxpop" in done.stdout
