"""Kills, full disks, two processes at once: no accepted vote is lost or counted twice, nothing is half-written."""

from __future__ import annotations

import json
import re
import resource
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import voxpop as vp
from tests.loop.conftest import TASKS, first_votes, frame
from tests.loop.kills import ready, series, tell
from voxpop.errors import BadInput
from voxpop.loop.loop import Loop


def written(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    path.write_text("task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


def test_killed_tells_lose_no_accepted_vote_and_count_none_twice():
    seen = series(15, seed=1)
    assert not seen.lost
    assert seen.died >= 5  # or nothing was tested
    assert seen.votes > 50  # some got through


def test_two_tells_at_once(loop: Loop, tmp_path: Path):
    """Both have the same rows, and rows of their own."""
    shared = [(task, "shared", "yes") for task in TASKS]
    own = [[(task, f"w{number}-{i}", "no") for task in TASKS for i in range(40)] for number in range(2)]
    files = [written(tmp_path / f"new{number}.csv", shared + rows) for number, rows in enumerate(own)]
    outs, context = [tmp_path / f"out{number}" for number in range(2)], ready()
    running = [
        context.Process(target=tell, args=(str(loop.directory), str(file), str(out)))
        for file, out in zip(files, outs, strict=True)
    ]
    for process in running:
        process.start()
    for process in running:
        process.join()
        assert process.exitcode == 0
    said = [tuple(map(int, re.findall(r"\d+", out.read_text()))) for out in outs]
    assert sorted(said) == [(480, 12), (492, 0)]
    votes = Counter(loop.store.votes()[0].to_frame().iter_rows())
    assert votes == Counter(first_votes().to_frame().iter_rows()) + Counter(shared + own[0] + own[1])


def test_threads_that_ask_at_once_never_get_the_same_pair(loop: Loop):
    found: list[tuple[str, str]] = []

    def ask() -> None:
        with Loop(loop.directory) as here:
            for _ in range(3):
                found.extend(here.ask(2, background=False).frame.select("task", "worker").iter_rows())

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 12
    answered = set(first_votes().to_frame().select("task", "worker").iter_rows())
    assert not answered & set(found)


def test_a_tell_waits_for_nobody_who_asks_or_fits(loop: Loop):
    from voxpop.loop.locks import ASKING, FITTING, held

    votes = vp.Votes.from_arrays(["t09"], ["ann"], ["yes"], tasks=TASKS, classes=["no", "yes"])
    with held(loop.directory, ASKING), held(loop.directory, FITTING), Loop(loop.directory) as other:
        assert other.tell(votes).accepted == 1


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file can grow beyond this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_tell_on_a_full_disk_keeps_nothing_and_says_so(loop: Loop):
    rows = [(task, f"w{i}", "no") for task in TASKS for i in range(400)]
    votes = vp.Votes.from_frame(frame(*map(" ".join, rows)), tasks=TASKS, classes=["no", "yes"])
    before = loop.store.votes()[0]
    with small_disk(100_000), pytest.raises(BadInput, match=r"nothing of this was kept; make room, and do it again$"):
        loop.tell(votes)
    assert loop.store.votes()[0] == before
    with Loop(loop.directory) as again:
        assert again.store.votes()[0] == before
    assert loop.tell(votes)[:2] == (len(rows), 0)  # with room, it works


def test_a_loop_on_a_full_disk_is_not_made(tmp_path: Path):
    with small_disk(20_000), pytest.raises(BadInput, match="make room"):
        Loop.begin(tmp_path / "crowd", first_votes())
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_handed_out_is_not_out(loop: Loop):
    def refuse(_: object) -> None:
        raise OSError(28, "no space left on device")

    with pytest.raises(OSError, match="no space"):
        loop.ask(3, hand_out=refuse, background=False)
    assert loop.status()["outstanding"] == 0


def test_an_unwritable_database_is_one_plain_error(loop: Loop):
    loop.store._connection.execute("PRAGMA query_only = ON")  # what a read-only directory amounts to, also for root
    votes = vp.Votes.from_arrays(["t09"], ["ann"], ["yes"], tasks=TASKS, classes=["no", "yes"])
    with pytest.raises(BadInput, match="cannot be written"):
        loop.tell(votes)


def test_status_is_plain_json(loop: Loop):
    assert json.loads(json.dumps(loop.status()))["votes"] == 24
