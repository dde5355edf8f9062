"""Whatever goes wrong becomes one line and an exit code; a bug keeps its traceback."""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress

import pytest

from voxpop.cli import app
from voxpop.cli.errors import exit_code, in_the_shell, one_line
from voxpop.errors import BadInput, RunFailed, TooLarge, UnknownName


def raising(error: BaseException):
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BadInput("this", "that", "those"), 2, "error: this (and 2 more)"),
        (UnknownName("unknown thing"), 2, "error: unknown thing"),
        (TooLarge("too large"), 2, "error: too large"),
        (RunFailed("the loss is gone"), 1, "error: the loss is gone"),
        (BadInput("two\nlines\x1b[0m"), 2, r"error: two\nlines\x1b[0m"),
        (KeyboardInterrupt(), 130, "interrupted: nothing was written"),
        (OSError(errno.ENOSPC, "No space left on device", "c.csv"), 2, "error: c.csv: no space left on device; free"),
        (PermissionError(errno.EACCES, "Permission denied", "c.csv"), 2, "error: c.csv: permission denied; write"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "c"), 2, "error: c: is a directory; name a file in it"),
        (OSError(errno.EIO, "Input/output error"), 2, "error: input/output error; check the path"),
    ],
)
def test_errors(capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str):
    assert exit_code(raising(error)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert len(err.splitlines()) == 1


def test_a_broken_pipe_is_quiet(capsys: pytest.CaptureFixture[str]):
    assert exit_code(raising(BrokenPipeError(errno.EPIPE, "Broken pipe"))) == 141
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        exit_code(lambda: 1 / 0)


def swallowing(_: object) -> int:
    """What an import does when Ctrl-C comes at a bad moment: it goes on, and breaks of something else."""
    with suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    raise AttributeError("half imported")


def test_an_interrupt_that_was_swallowed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(app, "run", swallowing)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted: nothing was written\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_where_interrupts_are_ignored_they_stay_ignored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "run", lambda _: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit) as ended:
            app.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code is None  # as run has said


def test_without_an_interrupt_a_bug_stays_a_bug(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "run", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        app.main()


def test_success(capsys: pytest.CaptureFixture[str]):
    assert exit_code(lambda: None) == 0
    assert capsys.readouterr() == ("", "")


def test_arguments_are_spelled_as_options():
    assert in_the_shell("drop them with missing='drop'") == "drop them with --missing drop"
    assert in_the_shell("choose one with question=") == "choose one with --question"
    assert in_the_shell("leave out worker= and label=, please") == "leave out --worker and --label, please"


@pytest.mark.parametrize("text", ["the cell 'label=dog' is odd", "votes_per_task=2 is odd", "mislabel= this"])
def test_other_text_stays_as_it_is(text: str):
    assert in_the_shell(text) == text


def test_one_line_keeps_letters_of_every_script():
    assert one_line("größe 猫 \t\r\u2028") == r"größe 猫 \t\r\u2028"
