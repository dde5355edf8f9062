"""What is asked: never what is out or answered, by expertise where a fit has learned it, and no more than pays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from tests.loop.conftest import TASKS, WORKERS, frame
from voxpop.active.expertise import Expertise
from voxpop.active.skills import Skills
from voxpop.errors import BadInput, BadOption
from voxpop.io.features import Features
from voxpop.loop.asking import ask, expertise
from voxpop.loop.loop import Loop

SIDES = [f"t{i:03}" for i in range(120)]  # the first 80 have votes


def crowd(**columns: object) -> pl.DataFrame:
    """What ``read_workers`` would give."""
    given = {"cost": [1.0] * 4, "capacity": [None] * 4, "available": [True] * 4, **columns}
    schema = {"cost": pl.Float64, "capacity": pl.Int64, "available": pl.Boolean}
    return pl.DataFrame({"worker": WORKERS}).with_columns(
        [pl.Series(name, values, schema[name]) for name, values in given.items()]
    )


@pytest.fixture(scope="module")
def sided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """Each task lies left or right. 'left' is right on the left ones and guesses elsewhere, 'right' the other way."""
    rng = np.random.default_rng(0)
    side, truth = np.arange(120) % 2, rng.integers(0, 2, 120)
    x = rng.normal(size=(120, 3)).astype(np.float32) * 0.5
    x[:, 0] += 4 * side - 2
    x[:, 1] += 1 * truth
    rows = []
    for task in range(80):
        for number, worker in enumerate(("left", "right")):
            said = truth[task] if side[task] == number else rng.integers(0, 2)
            rows.append(f"{SIDES[task]} {worker} {('no', 'yes')[said]}")
        rows.append(f"{SIDES[task]} judge {('no', 'yes')[truth[task]]}")
    votes = vp.Votes.from_frame(frame(*rows), classes=["no", "yes"])
    features = Features("x", pl.Series(SIDES), "numbers", x)
    people = pl.DataFrame({"worker": ["left", "right"], "cost": [1.0] * 2, "capacity": [None] * 2, "available": True})
    place = tmp_path_factory.mktemp("sided") / "crowd"
    with Loop.begin(
        place, votes, features, workers=people.cast({"capacity": pl.Int64}), method="lfc", options=["epochs=5"]
    ) as made:
        made.fit()
        yield made


def test_what_is_out_is_not_asked_again_before_its_time(loop: Loop):
    now = 1000.0
    first = ask(loop.store, 4, lease=60, now=now).frame.select("task", "worker").rows()
    again = ask(loop.store, 4, lease=60, now=now + 59).frame.select("task", "worker").rows()
    assert len({*first, *again}) == 8
    assert len(loop.store.outstanding(now + 59)) == 8
    best = ask(loop.store, 4, lease=60, now=now + 200).frame.select("task", "worker").rows()
    assert set(best) <= {*first, *again}


def test_what_is_out_on_a_task_makes_another_vote_there_worth_less(loop: Loop):
    """So two who ask one after the other get different tasks, not the same ones for different workers."""
    first, second = (ask(loop.store, 2, lease=60, now=1000.0).frame["task"].to_list() for _ in range(2))
    assert sorted(first + second) == TASKS[8:]


def test_nobody_is_asked_about_what_he_answered(loop: Loop):
    votes = frame(*(f"{task} {worker} yes" for task in TASKS[8:] for worker in WORKERS[:2]))
    loop.tell(vp.Votes.from_frame(votes, tasks=TASKS, classes=["no", "yes"]), crowd(cost=[0.0] * 4))
    answered = set(loop.store.votes()[0].to_frame().select("task", "worker").iter_rows())
    found = loop.ask(200, background=False).frame.select("task", "worker").rows()
    assert {(task, worker) for task in TASKS[8:] for worker in WORKERS[2:]} <= {*found}
    assert not {*found} & answered
    assert len(found) == len({*found})


def test_costs_capacities_and_availability_are_kept(loop: Loop):
    loop.tell(workers=crowd(capacity=[2, 1, None, None], available=[True, True, False, True], cost=[1, 1, 1, 1e6]))
    count = loop.ask(10, background=False).frame["worker"].value_counts()
    assert dict(count.iter_rows()) == {"ann": 2, "bob": 1}
    assert "more votes" in loop.status()["reason"] or "cost" in loop.status()["reason"]


def test_it_stops_where_no_vote_pays(loop: Loop):
    loop.tell(workers=crowd(cost=[1e4] * 4))
    asked = loop.ask(5, background=False)
    assert asked.frame.is_empty()
    assert asked.reason.startswith("stop: the best vote left is expected to gain ")
    status = loop.status()
    assert (status["stop"], status["outstanding"]) == (True, 0)
    assert "not more than its cost of 1e+04" in status["reason"]


def test_what_cannot_be_asked_is_refused(loop: Loop):
    with pytest.raises(BadOption, match="k=0 asks for nothing"):
        loop.ask(0)
    with pytest.raises(BadOption, match="lease=0"):
        loop.ask(1, lease=0)
    loop.tell(workers=crowd(available=[False] * 4))
    with pytest.raises(BadInput, match="none of the 4 workers is available; say who is"):
        loop.ask(1)
    assert loop.status()["stop"]


def test_a_loop_without_workers_says_so(tmp_path: Path):
    with (
        Loop.begin(tmp_path / "crowd", tasks=["a"], classes=["no", "yes"]) as made,
        pytest.raises(BadInput, match=r"there is no worker to ask; name some with 'voxpop loop tell --workers'"),
    ):
        made.ask(1)


def test_without_a_fit_workers_are_judged_by_their_votes(loop: Loop):
    loop.tell(vp.Votes.from_frame(frame(*(f"{t} joe {'yes' if i % 2 else 'no'}" for i, t in enumerate(TASKS[:8])))))
    skills = expertise(loop.known())
    assert isinstance(skills, Skills)
    assert skills.mean.argmin() == WORKERS.index("joe")  # who contradicts the others


def test_a_fit_that_learned_expertise_says_who_knows_what(sided: Loop):
    asked = ask(sided.store, 12, lease=1, now=time.time())
    side = {task: ("left", "right")[i % 2] for i, task in enumerate(SIDES)}
    hits = [side[task] == worker for task, worker in asked.frame.select("task", "worker").iter_rows()]
    assert len(hits) == 12
    assert sum(hits) >= 11
    learned = expertise(sided.known())
    assert isinstance(learned, Expertise)
    fit = sided.known().fit
    assert fit is not None
    assert fit.learner is not None
    torch.testing.assert_close(learned.workers, fit.learner.objective_.theta["workers"])


def test_who_came_after_the_fit_is_learned_from_what_he_says(sided: Loop):
    """Somebody new, right on the left tasks and wrong on the others, is told apart before the next full fit."""
    said = dict(
        sided.store.votes()[0].to_frame().filter(pl.col("worker") == "judge").select("task", "label").iter_rows()
    )
    other = {"no": "yes", "yes": "no"}
    rows = [f"{t} late {said[t] if i % 2 == 0 else other[said[t]]}" for i, t in enumerate(SIDES[:80])]
    named = pl.DataFrame({"worker": ["new"], "cost": [1.0], "capacity": [None], "available": [True]})
    sided.tell(
        vp.Votes.from_frame(frame(*rows), tasks=SIDES, classes=["no", "yes"]), named.cast({"capacity": pl.Int64})
    )
    facts = sided.known()
    assert (facts.since, facts.votes.V) == (80, 320)
    learned, workers = expertise(facts), facts.votes.workers
    assert isinstance(learned, Expertise)
    chance = torch.sigmoid(learned.block(torch.arange(120)))  # N,M
    late, new = chance[:, workers.position("late")], chance[:, workers.position("new")]
    assert late[0::2].mean() > 0.75 > 0.35 > late[1::2].mean()
    torch.testing.assert_close(new, new[:1].expand(120))  # of whom there is no vote
