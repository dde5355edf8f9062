"""What a loop keeps: votes once, workers, leases; and whose directory it is."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from tests.loop.conftest import TASKS, WORKERS, first_votes, frame
from voxpop.errors import BadInput, BadOption
from voxpop.loop import schema
from voxpop.loop.loop import Loop


def told(loop: Loop, *rows: str) -> tuple[int, int]:
    axes = {"tasks": loop.store.tasks.names, "classes": loop.store.classes.names}
    return loop.tell(vp.Votes.from_frame(frame(*rows), **axes))[:2]


def test_what_is_told_is_kept(loop: Loop):
    votes, last = loop.store.votes()
    assert last == votes.V == loop.store.last == 24
    assert list(votes.tasks) == TASKS
    assert list(votes.classes) == ["no", "yes"]
    before = set(first_votes().to_frame().iter_rows())
    assert set(votes.to_frame().iter_rows()) == before
    assert told(loop, "t09 ann yes", "t09 joe no") == (2, 0)
    assert set(loop.store.votes()[0].to_frame().iter_rows()) == before | {("t09", "ann", "yes"), ("t09", "joe", "no")}
    new, last = loop.store.votes(after=24)
    assert (new.V, last) == (2, 26)
    assert new.tasks == votes.tasks
    with Loop(loop.directory) as again:
        assert again.store.votes()[0] == loop.store.votes()[0]


def test_a_vote_told_twice_is_counted_once_and_another_label_is_another_vote(loop: Loop):
    assert told(loop, "t09 ann yes", "t09 ann yes", "t01 ann no") == (1, 2)
    assert told(loop, "t09 ann yes") == (0, 1)
    assert told(loop, "t09 ann no") == (1, 0)
    assert loop.store.last == 26


def test_all_rows_or_none(loop: Loop):
    for row, what in (("t99 ann yes", "tasks"), ("t01 ann maybe", "classes")):
        good = frame("t09 new yes", row)
        with pytest.raises(BadInput, match=what):
            loop.tell(vp.Votes.from_frame(good))
    assert loop.store.last == 24
    assert loop.store.workers()["worker"].to_list() == WORKERS

    def interrupted() -> None:
        with loop.store.changing():
            loop.store.tell(frame("t09 new yes"))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        interrupted()
    assert loop.store.last == 24
    assert loop.store.workers()["worker"].to_list() == WORKERS


def test_new_workers_are_welcome(loop: Loop):
    votes = vp.Votes.from_frame(frame("t09 zoe yes", "t09 ann yes"), tasks=TASKS, classes=["no", "yes"])
    assert loop.tell(votes).newcomers == ["zoe"]
    assert loop.store.workers().row(4) == ("zoe", 1.0, None, True)
    assert loop.store.votes()[0].workers.names.to_list() == [*WORKERS, "zoe"]


def test_what_is_said_of_workers_stays_until_something_else_is(loop: Loop):
    schema = {"worker": pl.String, "cost": pl.Float64, "capacity": pl.Int64, "available": pl.Boolean}
    more = pl.DataFrame([("bob", 2.5, 3, False), ("zoe", 0.0, None, True)], schema=schema, orient="row")
    assert loop.tell(workers=more) == (0, 0, ["zoe"])
    rows = {row[0]: row[1:] for row in loop.store.workers().iter_rows()}
    assert rows["bob"] == (2.5, 3, False)
    assert rows["zoe"] == (0.0, None, True)
    assert rows["ann"] == (1.0, None, True)


def test_who_is_not_on_the_list_at_first_is_not_available(tmp_path: Path):
    crowd = pl.DataFrame({"worker": ["ann"], "cost": [1.0], "capacity": [1], "available": [True]})
    with Loop.begin(tmp_path / "crowd", first_votes(), tasks=TASKS, workers=crowd) as made:
        workers = made.store.workers()
        assert workers.filter("available")["worker"].to_list() == ["ann"]
        assert set(workers["worker"]) == {"ann", "bob", "eve"}


def test_a_lease_ends_with_its_answer_or_its_time(loop: Loop):
    pairs = pl.DataFrame({"task": ["t08", "t09"], "worker": ["ann", "bob"]})
    now = time.time()
    with loop.store.changing():
        assert loop.store.lease(pairs, now, now + 100) == [True, True]
    assert loop.store.outstanding(now + 99).rows() == [(8, 0), (9, 1)]
    assert loop.store.outstanding(now + 101).rows() == []
    told(loop, "t08 ann no")
    assert loop.store.outstanding(now).rows() == [(9, 1)]
    with loop.store.changing():  # what was answered is not out again, what has expired can be
        assert loop.store.lease(pairs, now + 200, now + 300) == [False, True]
    assert loop.store.outstanding(now + 250).rows() == [(9, 1)]


def test_what_is_committed_has_reached_the_disk(loop: Loop):
    connection = loop.store._connection
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_what_is_cached_is_never_replaced_by_what_knows_less(loop: Loop):
    loop.store.cache("state", 5, b"five")
    loop.store.cache("state", 4, b"four")
    assert loop.store.cached("state") == (5, b"five")
    loop.store.cache("state", 6, b"six")
    assert loop.store.cached("state") == (6, b"six")
    assert loop.store.cached("other") is None


# -- whose directory it is ---------------------------------------------------------------------------


def test_a_directory_of_a_newer_version_is_not_touched(loop: Loop):
    loop.store._connection.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    with pytest.raises(BadInput, match=r"crowd: a loop of format 2, made by a newer voxpop .*; upgrade voxpop$"):
        Loop(loop.directory)


def test_what_is_no_loop_is_said_to_be_none(tmp_path: Path):
    with pytest.raises(BadInput, match=r"nowhere: no such directory; make one with 'voxpop loop init"):
        Loop(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"not a loop: there is no loop.db in it; make one"):
        Loop(tmp_path)
    assert not list(tmp_path.iterdir())
    sqlite3.connect(tmp_path / "loop.db").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(BadInput, match="made by another program"):
        Loop(tmp_path)
    (tmp_path / "loop.db").write_bytes(b"no database " * 400)
    with pytest.raises(BadInput, match=r"damaged .*; bring loop.db back from a copy$"):
        Loop(tmp_path)


def test_a_damaged_database_is_one_plain_error(loop: Loop):
    loop.store.close()
    path = loop.directory / "loop.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + b"\xff" * (len(whole) - 5000))
    with pytest.raises(BadInput, match="damaged"), Loop(loop.directory) as here:
        here.known()


# -- making one --------------------------------------------------------------------------------------


def test_a_loop_is_made_whole_or_not_at_all(tmp_path: Path):
    crowd = pl.DataFrame({"worker": ["ann"], "cost": [None], "capacity": [None], "available": [True]})
    with pytest.raises(sqlite3.IntegrityError):
        Loop.begin(tmp_path / "crowd", first_votes(), workers=crowd)
    assert not list(tmp_path.iterdir())


def test_it_needs_a_free_place(tmp_path: Path, loop: Loop):
    with pytest.raises(BadInput, match="is a loop already"):
        Loop.begin(loop.directory, first_votes())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").touch()
    with pytest.raises(BadInput, match="is not empty"):
        Loop.begin(tmp_path / "full", first_votes())
    with pytest.raises(BadInput, match="is a file"):
        Loop.begin(tmp_path / "full" / "thing", first_votes())
    with pytest.raises(BadInput, match=r"there is no directory .*none; make it first"):
        Loop.begin(tmp_path / "none" / "crowd", first_votes())
    (tmp_path / "empty").mkdir()
    with Loop.begin(tmp_path / "empty", first_votes()) as made:
        assert made.store.last == 24


def test_tasks_and_classes_must_be_there(tmp_path: Path):
    none = vp.Votes.from_frame(frame(), tasks=[], classes=["no", "yes"])
    with pytest.raises(BadInput, match="the pool is empty"):
        Loop.begin(tmp_path / "crowd", none)
    with pytest.raises(BadInput, match="1 classes"):
        Loop.begin(tmp_path / "crowd", vp.Votes.from_frame(frame("a b c")))
    with pytest.raises(BadOption, match="worth"):
        Loop.begin(tmp_path / "crowd", first_votes(), worth=0)
    with Loop.begin(tmp_path / "crowd", tasks=["a", "b"], classes=["no", "yes"]) as made:
        assert made.store.votes()[0].N == 2
        assert made.store.last == 0


def test_repeated_votes_at_first_are_counted_once(tmp_path: Path):
    votes = vp.Votes.from_frame(frame("a ann yes", "a ann yes", "a ann no"))
    with Loop.begin(tmp_path / "crowd", votes) as made:
        assert made.store.last == 2
