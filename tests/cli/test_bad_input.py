"""Bad input: exit code 2, one plain line that says what, where and what to do, and nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, Run, files_in, write_csv

FAST = ("-m", "one-coin")
VOTES = "task,worker,label\n"


@pytest.fixture
def refused(voxpop: Run, here: Path):
    """Run a command line that must be refused; returns the one line."""

    def call(*arguments: str, stdin: bytes = b"") -> str:
        before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
        failed: Outcome = voxpop(*arguments, stdin=stdin)
        assert failed.code == 2
        assert failed.out == ""
        assert {path: path.stat().st_mtime_ns for path in here.rglob("*")} == before
        return failed.error

    return call


# -- the command line -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("agregate votes.csv", "no such command 'agregate'. Did you mean 'aggregate'? See 'voxpop --help'"),
        ("--bogus", "no such option: --bogus; see 'voxpop --help'"),
        ("aggregate", "missing argument 'VOTES'; see 'voxpop aggregate --help'"),
        ("aggregate votes.csv --metod glad", "no such option: --metod"),
        ("aggregate votes.csv -m", "option '-m' requires an argument"),
        ("aggregate votes.csv more.csv", "unexpected extra argument(s) (more.csv)"),
        ("aggregate votes.csv --missing maybe", "'maybe' is not one of 'error', 'drop'"),
        ("aggregate votes.csv -m dawidskene", "unknown method 'dawidskene': did you mean 'dawid-skene'?"),
        ("aggregate votes.csv --set max_itr=3", "unknown option of Default 'max_itr': did you mean 'max_iter'?"),
        ("aggregate votes.csv -m glad --set seed", "--set seed is not of the form NAME=VALUE"),
        ("aggregate votes.csv -m glad --set seed=1 --set seed=2", "--set gives seed more than once"),
        ("aggregate votes.csv -m glad --set max_iter=0", "max_iter must be a whole number of at least 1"),
        ("aggregate votes.csv -m glad --set max_iter=many", "max_iter must be a whole number of at least 1"),
        ("aggregate votes.csv -m glad --set device=abacus", "device=abacus cannot be used"),
        ("aggregate votes.csv --source label-studi", "unknown source 'label-studi': did you mean 'label-studio'?"),
        ("aggregate votes.csv --source label-studio --label x", "leave out --worker and --label"),
        ("aggregate votes.csv --question q", "takes no --question"),
        ("aggregate votes.csv --classes cat", "--classes cat: no such file"),
        ("aggregate votes.csv --classes ,", "--classes , names no class"),
        ("aggregate votes.csv --classes cat,dog", "'bird' is not one of the given classes (cat, dog)"),
        ("aggregate votes.csv --beliefs", "--beliefs says what --output or --json holds"),
        ("aggregate votes.csv --format csv", "name a file with -o"),
        ("aggregate votes.csv --from-name q", "name a file with -o"),
        ("aggregate votes.csv -o c.csv --to-name q", "only the label-studio format has such options"),
        ("aggregate votes.csv -o c.csv --format cvs", "unknown format 'cvs': did you mean 'csv'?"),
        ("aggregate votes.csv --gold truth.csv --no-gold", "--gold and --no-gold contradict each other"),
        ("aggregate - --gold -", "standard input can be read only once"),
        ("aggregate votes.csv -o - --json", "both write to standard output"),
        ("aggregate votes.csv --report -", "--report cannot write to standard output"),
        ("aggregate votes.csv --save -", "--save cannot write to standard output"),
        ("agreement votes.csv --level 2", "level=2.0 must lie between 0 and 1"),
        ("agreement votes.csv --metric ordinal", "is not a number, as --metric ordinal needs; take --metric nominal"),
        ("agreement votes.csv --resamples 0", "resamples=0 is too few"),
        ("convert label-studi export.json votes2.csv", "did you mean 'label-studio'?"),
        ("convert crowd-kit nothing.csv votes2.csv", "nothing.csv: no such file"),
        ("methods glat", "unknown method 'glat': did you mean 'glad'?"),
        ("simulate", "which kind of crowd?"),
        ("simulate spamers", "unknown kind of crowd 'spamers': did you mean 'spammers'?"),
        ("simulate spammers --set shaer=1", "unknown option of the kind spammers 'shaer': did you mean 'share'?"),
        ("simulate spammers --set share=2", "share=2 is not a share or a chance"),
        ("simulate spammers --set style=odd", "unknown style of spammers 'odd'"),
        ("simulate spammers --tasks 0", "tasks=0 is too few"),
        ("simulate spammers --assignment odd", "unknown assignment 'odd'"),
        ("simulate spammers --json", "--json goes with --list only"),
        ("demo --report .", ". is a directory"),
    ],
)  # fmt: skip
def test_the_command_line(refused, line: str, says: str):
    assert says in refused(*line.split())


# -- the votes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"task,worker,label\n", "has a header but no rows"),
        (b"task,who,label\na,b,c\n", "no column 'worker'"),
        (b"task,worker,label\na,b,c\na,b\n", "row 2 (line 3): 2 fields where the header has 3"),
        (b'task,worker,label\na,b,"c\n', "a quote opens and never closes"),
        (b"task,worker,label\na,b,\0\n", "is a NUL"),
        (b"task,worker,label\na,b,\xff\n", "is not UTF-8"),
        (b"PK\x03\x04rest", "is a zip or Excel file"),
        (b"PAR1 and then nothing", "Parquet"),
        (b"task,worker,label\na,b,c\na,d,\n", "row 2 (line 3): nothing (or NaN) in column 'label'"),
    ],
)
def test_the_votes(refused, content: bytes, says: str):
    Path("bad.csv").write_bytes(content)
    for line in (refused("aggregate", "bad.csv", "-o", "c.csv", *FAST), refused("agreement", "bad.csv")):
        assert "bad.csv" in line
        assert says in line


def test_the_votes_on_stdin(refused):
    assert "standard input is empty" in refused("aggregate", "-")
    assert "standard input has a header but no rows" in refused("aggregate", "-", stdin=VOTES.encode())


def test_a_directory(refused):
    Path("folder").mkdir()
    assert "folder is a directory; name a file in it" in refused("aggregate", "folder")


def test_a_file_that_is_not_there(refused):
    assert "vote.csv: no such file; did you mean 'votes.csv'?" in refused("aggregate", "vote.csv")


def test_a_line_stays_one_line_whatever_is_in_it(refused):
    Path("bad.csv").write_text('task,worker,label\n"a\nb",\x1b[1mw,x\n')
    line = refused("aggregate", "bad.csv", "--classes", "y,z", *FAST)
    assert "'x' is not one of the given classes (y, z)" in line
    strange = refused("aggregate", "no\nsuch\x1b.csv")
    assert r"no\nsuch\x1b.csv" in strange


# -- known answers ------------------------------------------------------------------------------


def test_gold_for_an_unknown_task(refused):
    write_csv(Path("gold.csv"), ("task", "label"), [("t1", "cat"), ("t99", "cat"), ("t98", "cat")])
    line = refused("aggregate", "votes.csv", "--gold", "gold.csv", "-o", "c.csv")
    assert "gold for an unknown task 't99'" in line
    assert line.endswith("(and 1 more)")


def test_gold_with_an_unknown_class(refused):
    write_csv(Path("gold.csv"), ("task", "label"), [("t1", "zebra")])
    assert "gold label 'zebra' is not one of the classes" in refused("aggregate", "votes.csv", "--gold", "gold.csv")


def test_gold_that_contradicts_itself(refused):
    write_csv(Path("gold.csv"), ("task", "label"), [("t1", "cat"), ("t1", "dog")])
    assert "different labels, 'cat' and 'dog'" in refused("aggregate", "votes.csv", "--gold", "gold.csv")


def test_truth_of_other_tasks_only(refused):
    write_csv(Path("other.csv"), ("task", "label"), [("x", "cat")])
    line = refused("aggregate", "votes.csv", "--truth", "other.csv")
    assert "other.csv: none of its 1 tasks is among the votes" in line


# -- the outputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--output", "--workers-out", "--report", "--save"])
def test_outputs_are_checked_before_the_votes_are_read(refused, option: str):
    """The votes are bad too, so the message about the output comes from before they were read."""
    Path("bad.csv").write_text("nothing")
    Path("folder.csv").mkdir()
    assert "folder.csv is a directory" in refused("aggregate", "bad.csv", option, "folder.csv")
    assert "there is no directory nowhere" in refused("aggregate", "bad.csv", option, "nowhere/out.csv")
    assert "/proc/out.csv cannot be written" in refused("aggregate", "bad.csv", option, "/proc/out.csv")
    assert "would overwrite what is read" in refused("aggregate", "bad.csv", option, "./bad.csv")


@pytest.mark.parametrize("option", ["--output", "--workers-out"])
def test_a_table_needs_an_extension_that_is_known(refused, option: str):
    assert "out.foo has no extension that tells its format" in refused("aggregate", "votes.csv", option, "out.foo")


def test_two_outputs_need_two_files(refused):
    line = refused("aggregate", "votes.csv", "-o", "out.csv", "--workers-out", "./out.csv")
    assert "--workers-out and --output both write to out.csv" in line


def test_a_read_only_file_is_not_replaced(refused, monkeypatch: pytest.MonkeyPatch):
    Path("out.csv").write_text("precious")
    Path("out.csv").chmod(0o444)
    if os.access("out.csv", os.W_OK):  # permissions do not stop this user
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "out.csv" or mode != os.W_OK)
    assert "out.csv cannot be written: no permission" in refused("aggregate", "votes.csv", "-o", "out.csv")


def test_all_that_is_wrong_with_a_command_line_is_counted(refused):
    line = refused("aggregate", "votes.csv", "-m", "glat", "-o", "nowhere/c.csv", "--source", "toloca")
    assert "unknown method 'glat'" in line
    assert line.endswith("(and 2 more)")


@pytest.mark.parametrize("option", ["--output", "--truth-out", "--workers-out"])
def test_outputs_of_simulate(refused, option: str):
    others = () if option == "--output" else ("--output", "votes2.csv")
    assert "there is no directory nowhere" in refused("simulate", "spammers", option, "nowhere/out.csv", *others)


def test_convert_does_not_overwrite_what_it_reads(refused):
    assert "VOTES votes.csv would overwrite" in refused("convert", "crowd-kit", "votes.csv", "votes.csv")


# -- later ----------------------------------------------------------------------------------------


def test_too_large_says_what_fits(refused):
    rows = [(f"t{i}", f"w{i}", f"c{i}") for i in range(4000)]
    write_csv(Path("wide.csv"), ("task", "worker", "label"), rows)
    line = refused("aggregate", "wide.csv", "-m", "dawid-skene", "-o", "c.csv")
    assert "use OneCoin" in line


def test_no_files_are_left_behind(refused, here: Path):
    refused("aggregate", "votes.csv", "-o", "c.csv", "--workers-out", "nowhere/w.csv")
    assert files_in(here) == {"votes.csv", "truth.csv"}
