"""Workers judged vote by vote, in a file that may be lost."""

from __future__ import annotations

import pytest

import voxpop as vp
from tests.loop.conftest import TASKS, first_votes, frame
from voxpop.loop import online
from voxpop.loop.loop import Loop

MORE = ("t08 joe yes", "t09 joe no", "t08 ann yes", "t10 zoe yes")


def votes(*rows: str) -> vp.Votes:
    return vp.Votes.from_frame(frame(*rows), tasks=TASKS, classes=["no", "yes"])


def same(found: vp.OnlineDawidSkene | None, expected: vp.OnlineDawidSkene) -> bool:
    assert found is not None
    ours, theirs = (
        {w: a for w, _, a in state.workers.select("worker", "votes", "accuracy").iter_rows() if a is not None}
        for state in (found, expected)
    )
    return ours == pytest.approx({**dict.fromkeys(ours), **theirs})


def anew(votes: vp.Votes) -> vp.OnlineDawidSkene:
    return vp.OnlineDawidSkene().partial_fit(votes).refine(online.PASSES)


def test_it_is_online_dawid_skene_told_the_same(loop: Loop):
    expected = anew(loop.store.votes()[0])
    assert same(online.learn(loop.store), expected)
    loop.tell(votes(*MORE))
    assert same(online.learn(loop.store), expected.partial_fit(loop.store.votes(after=24)[0]))


def test_what_was_told_while_nobody_learned_is_not_lost(loop: Loop):
    loop.tell(votes(*MORE[:2]))
    loop.tell(votes(*MORE[2:]))
    found = online.learn(loop.store)
    assert found is not None
    assert int(found.workers["votes"].sum()) == loop.store.last == 28


@pytest.mark.parametrize("damage", [None, b"", b"no such file " * 50])
def test_a_lost_or_damaged_file_is_made_anew(loop: Loop, damage: bytes | None):
    loop.tell(votes(*MORE))
    path = loop.directory / online.FILE
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    assert same(online.learn(loop.store), anew(loop.store.votes()[0]))
    assert path.stat().st_size > 100


def test_a_database_brought_back_from_an_older_copy_is_believed(loop: Loop):
    ahead = vp.OnlineDawidSkene().partial_fit(first_votes()).partial_fit(votes(*MORE))
    ahead.save(loop.directory / online.FILE)
    assert same(online.learn(loop.store), anew(loop.store.votes()[0]))
