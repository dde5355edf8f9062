"""The program as a process: pipes, full disks, Ctrl-C, terminals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import files_in, plain_env, read_csv

Start = Callable[..., "subprocess.Popen[bytes]"]
FAST = ("-m", "one-coin")
ENDLESS = ("-m", "dawid-skene", "--set", "tol=0", "--set", "max_iter=100000000")
INPUTS = {"votes.csv", "truth.csv"}


def test_a_pipeline(started: Start, here: Path):
    crowd = started("simulate", "experts", "--tasks", "40", "--workers", "8", "--truth-out", "known.csv")
    truth = started("aggregate", "-", "-o", "-", *FAST, stdin=crowd.stdout)
    out, err = truth.communicate(timeout=200)
    assert (crowd.wait(), truth.returncode, err) == (0, 0, b"")
    lines = out.decode().splitlines()
    assert lines[0].startswith("task,label,confidence")
    assert len(lines) == 41
    assert len(read_csv("known.csv")) == 40
    assert files_in(here) == INPUTS | {"known.csv"}


def test_a_full_disk(started: Start, here: Path):
    """/dev/full as an output file, and standard output into it, buffered or not."""
    unbuffered = plain_env(PYTHONUNBUFFERED="1")
    with open("/dev/full", "wb") as full:
        running = [
            started("aggregate", "votes.csv", "-o", "/dev/full", "--workers-out", "w.csv", *FAST),
            started("aggregate", "votes.csv", "-o", "-", "--workers-out", "w.csv", *FAST, stdout=full, env=unbuffered),
            started("aggregate", "votes.csv", "--workers-out", "w.csv", *FAST, stdout=full),
        ]
    for process in running:
        _, err = process.communicate(timeout=200)
        (line,) = err.decode().splitlines()
        assert process.returncode == 2
        assert line.startswith("error: ")
        assert "no space left on device" in line.lower()
    assert files_in(here) == INPUTS


def test_a_reader_that_stops_early(started: Start, here: Path):
    process = started("simulate", "spammers", "--tasks", "100000", env=plain_env(PYTHONUNBUFFERED="1"))
    assert process.stdout is not None
    assert process.stdout.readline() == b"task,worker,label\n"
    process.stdout.close()
    assert process.wait(timeout=200) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_a_reader_that_has_seen_enough_of_the_summary_costs_no_file(started: Start):
    process = started("aggregate", "votes.csv", "-o", "found.csv", *FAST, env=plain_env(PYTHONUNBUFFERED="1"))
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=200) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert Path("found.csv").read_text().startswith("task,label,confidence")


def test_interrupted_before_anything_is_written(started: Start, here: Path):
    os.mkfifo("pipe")
    process = started("aggregate", "pipe", "-o", "c.csv", "--save", "found.vox", *ENDLESS)
    with open("pipe", "wb") as pipe:  # opens once the program has begun to read
        pipe.write(Path("votes.csv").read_bytes())
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err) == (130, b"", b"interrupted: nothing was written\n")
    assert files_in(here) == INPUTS | {"pipe"}


def test_progress_is_drawn_on_a_terminal_and_only_there(started: Start, here: Path):
    ours, theirs = pty.openpty()
    process = started("aggregate", "votes.csv", "-o", "-", "-m", "gibbs-bcc", "--set", "max_iter=50", stderr=theirs)
    os.close(theirs)
    drawn = b""
    while piece := _read(ours):
        drawn += piece
    assert process.stdout is not None
    out = process.stdout.read()
    assert process.wait(timeout=200) == 0
    assert b"reading votes.csv" in drawn
    assert b"sampling" in drawn
    assert b"100/100" in drawn.replace(b"\x1b[32m", b"")
    assert out.startswith(b"task,label,confidence")
    assert b"\x1b" not in out


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""
