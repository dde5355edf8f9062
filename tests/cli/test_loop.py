"""voxpop loop: ask, be told, ask again."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxpop as vp
from tests.cli.conftest import RIGHT, Run, files_in, read_csv, write_csv
from tests.loop.kills import ready

VOTES = ("task", "worker", "label")
STATUS = {
    "votes", "tasks", "classes", "workers", "available", "outstanding", "expected_accuracy", "stop", "reason",
    "method", "fitted", "fitting", "failed",
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_in_the_background(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The full fits that would have begun."""
    began: list[Any] = []
    monkeypatch.setattr("voxpop.loop.loop.start", began.append)
    return began


@pytest.fixture
def crowd(voxpop: Run, here: Path) -> Path:
    """A loop of the thirty tasks of votes.csv, and ten without votes."""
    write_csv(here / "pool.csv", ("task",), [(f"new{i}",) for i in range(10)])
    assert voxpop("loop", "init", "crowd", "--votes", "votes.csv", "--pool", "pool.csv").code == 0
    return here / "crowd"


def status(voxpop: Run) -> dict[str, Any]:
    done = voxpop("loop", "status", "crowd", "--json")
    assert (done.code, done.err) == (0, "")
    facts: dict[str, Any] = json.loads(done.out)
    return facts


def asked(voxpop: Run, *options: str) -> list[tuple[str, str]]:
    done = voxpop("loop", "ask", "crowd", *options)
    assert done.code == 0
    return [(row["task"], row["worker"]) for row in done.table]


# -- the whole of it ----------------------------------------------------------------------------


def test_a_loop_from_its_beginning_to_its_consensus(voxpop: Run, features: Path):
    """With features: asked, told, asked again, fitted, exported."""
    np.savez("pool.npz", **joined("x.npz", "new.npz"))
    begun = voxpop("loop", "init", "crowd", "--votes", "votes.csv", "--features", "pool.npz", "--set", "epochs=2")
    assert begun.out == "crowd: 150 votes of 5 workers (5 available) on 42 tasks, 3 classes\n"
    assert (begun.code, begun.err) == (0, "")

    first = asked(voxpop, "-k", "9")
    assert len(first) == len(set(first)) == 9
    assert status(voxpop)["outstanding"] == 9
    truth = {row["task"]: row["label"] for name in ("truth.csv", "new.csv") for row in read_csv(name)}
    write_csv(Path("answers.csv"), VOTES, [(task, worker, truth[task]) for task, worker in first])
    told = voxpop("loop", "tell", "crowd", "answers.csv")
    assert (told.code, told.out, told.err) == (0, "accepted 9, known 0\n", "")
    assert voxpop("loop", "tell", "crowd", "answers.csv").out == "accepted 0, known 9\n"
    second = asked(voxpop, "-k", "9")
    assert not set(first) & set(second)

    fitted = voxpop("loop", "fit", "crowd")
    assert (fitted.code, fitted.out, fitted.err) == (0, "crowd: DALC of 159 votes\n", "")
    facts = status(voxpop)
    assert facts.keys() == STATUS
    assert (facts["votes"], facts["tasks"], facts["workers"], facts["outstanding"]) == (159, 42, 5, len(second))
    assert (facts["method"], facts["fitted"], facts["fitting"], facts["failed"]) == ("dalc", 159, False, None)
    assert 0.8 < facts["expected_accuracy"] <= 1
    third = asked(voxpop, "-k", "3")
    assert not set(third) & {*first, *second}

    assert voxpop("loop", "export", "crowd", "-o", "consensus.csv").err == ""
    rows = read_csv("consensus.csv")
    assert list(rows[0])[:3] == ["task", "label", "confidence"]
    assert len(rows) == 42
    assert sum(truth[row["task"]] == row["label"] for row in rows) >= 36


def joined(*files: str) -> dict[str, Any]:
    parts = [np.load(file) for file in files]
    return {name: np.concatenate([part[name] for part in parts]) for name in ("x", "tasks")}


def test_status_in_words(voxpop: Run, crowd: Path):
    first, *lines = voxpop("loop", "status", "crowd").out.splitlines()
    assert first == "crowd: 150 votes of 5 workers (5 available) on 40 tasks, 3 classes"
    assert lines[0] == "  outstanding: 0"
    assert lines[2] == "  go on: the next vote is worth more than it costs"
    assert lines[3] == "  last full fit (default): of 0 votes"


# -- init ---------------------------------------------------------------------------------------


def test_init_without_votes(voxpop: Run):
    write_csv(Path("pool.csv"), ("item",), [("a",), ("b",), ("a",)])
    write_csv(Path("workers.csv"), ("worker",), [("ann",), ("bob",)])
    options = ("--pool", "pool.csv", "--task", "item", "--classes", "no,yes", "--workers", "workers.csv")
    done = voxpop("loop", "init", "crowd", *options)
    assert done.out == "crowd: 0 votes of 2 workers (2 available) on 2 tasks, 2 classes\n"
    assert {task for task, _ in asked(voxpop, "-k", "2")} == {"a", "b"}
    assert status(voxpop)["expected_accuracy"] == pytest.approx(0.5)


def test_init_with_a_list_of_workers_asks_nobody_else(voxpop: Run):
    write_csv(Path("workers.csv"), ("worker", "capacity"), [("ann", "2"), ("zoe", "1")])
    done = voxpop("loop", "init", "crowd", "--votes", "votes.csv", "--workers", "workers.csv", "--worth", "1e6")
    assert done.out == "crowd: 150 votes of 6 workers (2 available) on 30 tasks, 3 classes\n"
    assert [worker for _, worker in asked(voxpop)] == ["zoe"]  # ann has answered everything


def test_init_says_what_is_repeated(voxpop: Run):
    rows = [tuple(row.values()) for row in read_csv("votes.csv")]
    write_csv(Path("twice.csv"), VOTES, [*rows, *rows[:3]])
    done = voxpop("loop", "init", "crowd", "--votes", "twice.csv")
    assert done.err == "note: 3 of the votes repeat another one of twice.csv, and are counted once\n"
    assert status(voxpop)["votes"] == 150


# -- ask ----------------------------------------------------------------------------------------


def test_a_lease_expires(voxpop: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch):
    first = asked(voxpop, "-k", "5", "--lease", "30m")
    assert not set(first) & set(asked(voxpop, "-k", "5"))
    now = time.time()
    monkeypatch.setattr("voxpop.loop.loop.time.time", lambda: now + 1790)
    assert status(voxpop)["outstanding"] == 10
    monkeypatch.setattr("voxpop.loop.loop.time.time", lambda: now + 1810)
    assert status(voxpop)["outstanding"] == 5
    assert set(first) & set(asked(voxpop, "-k", "20"))


def test_where_no_vote_pays_there_is_a_header_and_the_reason(voxpop: Run, crowd: Path):
    write_csv(Path("dear.csv"), ("worker", "cost"), [(worker, "1000000") for worker in RIGHT])
    assert voxpop("loop", "tell", "crowd", "--workers", "dear.csv").code == 0
    done = voxpop("loop", "ask", "crowd", "-o", "next.csv")
    assert (done.code, done.out) == (0, "")
    assert Path("next.csv").read_text() == "task,worker,score\n"
    (line,) = done.err.splitlines()
    assert line.startswith("stop: the best vote left is expected to gain ")
    assert line.endswith("not more than its cost of 1e+06")
    facts = status(voxpop)
    assert (facts["stop"], facts["reason"], facts["outstanding"]) == (True, line, 0)


def test_a_full_fit_begins_when_it_pays(voxpop: Run, crowd: Path, nothing_in_the_background: list[Any]):
    asked(voxpop)
    assert nothing_in_the_background == [Path("crowd")]
    voxpop("loop", "fit", "crowd")
    asked(voxpop)
    assert len(nothing_in_the_background) == 1


def test_what_cannot_be_written_is_not_out(voxpop: Run, crowd: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("polars.DataFrame.write_csv", full)
        failed = voxpop("loop", "ask", "crowd", "-o", "next.csv")
    assert failed.code == 2
    assert "no space left on device" in failed.error.lower()
    assert not Path("next.csv").exists()
    assert status(voxpop)["outstanding"] == 0


def ask_aside(directory: str, out: str) -> None:
    """``voxpop loop ask`` in a process of its own, without a full fit."""
    import voxpop.loop.loop as loop
    from voxpop.cli.app import run

    loop.start = lambda directory: None
    os._exit(run(["loop", "ask", directory, "-k", "3", "-o", out]))


def test_a_killed_ask_leaves_no_half_file(crowd: Path, voxpop: Run):
    """A whole file whose pairs are out, or none."""
    context, luck = ready(), random.Random(0)
    start, longest, died = time.monotonic(), 0.0, 0
    for number in range(8):
        out = crowd.parent / f"next{number}.csv"
        process = context.Process(target=ask_aside, args=(str(crowd), str(out)))
        process.start()
        process.join(luck.uniform(0, longest) if longest else None)
        if process.is_alive():
            process.kill()
            process.join()
            died += 1
        elif number < 2:  # the first one waits for the server
            start, longest = time.monotonic(), 0 if number == 0 else time.monotonic() - start
        if out.exists():
            rows = [(row["task"], row["worker"]) for row in read_csv(out)]
            assert len(rows) == 3
            assert not set(rows) & set(asked(voxpop, "-k", "40"))
        with sqlite3.connect(crowd / "loop.db") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            database.execute("DELETE FROM lease")
        database.close()
    assert died >= 2  # or nothing was tested


# -- tell ---------------------------------------------------------------------------------------


def test_all_rows_or_none(voxpop: Run, crowd: Path):
    rows = [("new1", "ann", "cat"), ("new2", "ann", "fish"), ("elsewhere", "ann", "cat")]
    write_csv(Path("new.csv"), VOTES, rows)
    failed = voxpop("loop", "tell", "crowd", "new.csv")
    assert (failed.code, failed.out) == (2, "")
    assert "new.csv, row 3: 'elsewhere' is not one of this loop's tasks" in failed.error
    write_csv(Path("new.csv"), VOTES, rows[:2])
    failed = voxpop("loop", "tell", "crowd", "new.csv")
    assert "'fish' is not one of this loop's classes (bird, cat, dog); nothing was taken" in failed.error
    assert status(voxpop)["votes"] == 150
    write_csv(Path("new.csv"), VOTES, rows[:1])
    assert voxpop("loop", "tell", "crowd", "new.csv").out == "accepted 1, known 0\n"


def test_votes_on_stdin_and_new_workers(voxpop: Run, crowd: Path):
    done = voxpop("loop", "tell", "crowd", "-", stdin=b"task,worker,label\nnew1,zoe,cat\nnew1,zoe,cat\n")
    assert done.out == "accepted 1, known 1\n"
    assert done.err == "note: 1 new worker, who may be asked from now on: zoe\n"
    assert status(voxpop)["workers"] == 6


def test_workers_alone(voxpop: Run, crowd: Path):
    write_csv(Path("workers.csv"), ("worker", "available"), [("spam", "no"), ("eve", "no"), ("zoe", "yes")])
    done = voxpop("loop", "tell", "crowd", "--workers", "workers.csv")
    assert (done.code, done.out) == (0, "")
    assert (status(voxpop)["workers"], status(voxpop)["available"]) == (6, 4)
    assert not {"spam", "eve"} & {worker for _, worker in asked(voxpop, "-k", "20")}


# -- labelling tools ----------------------------------------------------------------------------


def answer(name: str) -> list[dict[str, Any]]:
    return [{"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": ["cat"]}}]


def test_label_studio_and_back(voxpop: Run, crowd: Path):
    """It gives the tasks numbers of its own; the export brings our names back."""
    voxpop("loop", "ask", "crowd", "-k", "4", "--format", "label-studio", "-o", "import.json")
    tasks = json.loads(Path("import.json").read_text())
    assert len(tasks) == 4
    export = [
        {"id": 70 + i, **task, "annotations": [{"completed_by": task["data"]["assignee"], "result": answer("animal")}]}
        for i, task in enumerate(tasks)
    ]
    Path("export.json").write_text(json.dumps(export))
    done = voxpop("loop", "tell", "crowd", "export.json")
    assert (done.out, done.err) == ("accepted 4, known 0\n", "")
    flat = [
        {**task["data"], "id": 70 + i, "animal": "cat", "annotator": task["data"]["assignee"], "annotation_id": i}
        for i, task in enumerate(tasks)
    ]
    Path("flat.json").write_text(json.dumps(flat))
    assert voxpop("loop", "tell", "crowd", "flat.json", "--question", "animal").out == "accepted 0, known 4\n"
    assert status(voxpop)["outstanding"] == 0
    done = voxpop("loop", "export", "crowd", "--format", "label-studio", "--from-name", "animal", "-o", "out.json")
    assert done.code == 0
    assert {record["data"]["task"] for record in json.loads(Path("out.json").read_text())} >= {"new1", "t1"}


def test_argilla_and_back(voxpop: Run, crowd: Path):
    voxpop("loop", "ask", "crowd", "-k", "4", "--format", "argilla", "-o", "import.json")
    records = json.loads(Path("import.json").read_text())
    people = [(record, worker) for record in records for worker in record["metadata"]["assignee"]]
    assert len(people) == 4
    export = [
        {**record, "responses": {"animal": [{"value": "dog", "user_id": w} for w in record["metadata"]["assignee"]]}}
        for record in records
    ]
    Path("export.json").write_text(json.dumps(export))
    assert voxpop("loop", "tell", "crowd", "export.json").out == "accepted 4, known 0\n"
    assert status(voxpop)["outstanding"] == 0


# -- export -------------------------------------------------------------------------------------


def test_export_is_the_consensus_of_all_votes(voxpop: Run, crowd: Path):
    voxpop("loop", "fit", "crowd")
    rows = {row["task"]: row for row in voxpop("loop", "export", "crowd", "--beliefs").table}
    found = vp.consensus(vp.read("votes.csv", tasks=list(rows)))
    assert {task: row["label"] for task, row in rows.items()} == dict(found.labels.iter_rows())
    beliefs = [float(rows["t1"][f"p({name})"]) for name in ("bird", "cat", "dog")]
    assert sum(beliefs) == pytest.approx(1, abs=1e-4)
    voxpop("loop", "tell", "crowd", "-", stdin=b"task,worker,label\nnew1,ann,cat\nnew1,bob,cat\n")
    later = voxpop("loop", "export", "crowd")
    assert later.err == ("note: of the votes, 2 came after the last full fit; 'voxpop loop fit' makes one of all\n")
    (row,) = [row for row in later.table if row["task"] == "new1"]
    assert (row["label"], row["votes"]) == ("cat", "2")
    assert float(row["confidence"]) > 0.8


# -- bad input ----------------------------------------------------------------------------------

BAD = [
    ("loop init full --votes votes.csv", "full is not empty; choose a directory that is"),
    ("loop init crowd --votes votes.csv", "crowd is a loop already; tell it more with 'voxpop loop tell'"),
    ("loop init votes.csv --votes votes.csv", "votes.csv is a file"),
    ("loop init a/b --votes votes.csv", "a/b cannot be made: there is no directory a; make it first"),
    ("loop init new", "without --votes, give --classes, and --features or --pool"),
    ("loop init new --votes none.csv", "none.csv: no such file"),
    ("loop init new --votes votes.csv --features x.npz --pool votes.csv", "both say what the tasks are"),
    ("loop init new --votes votes.csv --features wrong.npz", "30 of the 30 tasks with votes have no features"),
    ("loop init new --votes votes.csv --workers odd.csv", "odd.csv, row 1 (line 2): available is 'perhaps'"),
    ("loop init new --votes votes.csv -m dalc", "dalc learns from features, and there are none"),
    ("loop init new --votes votes.csv -m glda", "unknown method 'glda': did you mean 'glad'?"),
    ("loop init new --votes votes.csv --worth 0", "worth=0: a right label must be worth more than 0"),
    ("loop init new --votes votes.csv --classes cat,dog", "'bird' is not one of the given classes (cat, dog)"),
    ("loop init new --pool empty.csv --classes a,b", "empty.csv has a header but no rows"),
    ("loop ask nowhere", "nowhere: no such directory; make one with 'voxpop loop init nowhere --votes votes.csv'"),
    ("loop ask full", "full: not a loop: there is no loop.db in it"),
    ("loop ask crowd -k 0", "k=0 asks for nothing; give 1 or more"),
    ("loop ask crowd --lease 1", "--lease 1 is no time; give a number and s, m, h or d, such as 30m or 1h"),
    ("loop ask crowd --lease -5m", "--lease -5m is no time"),
    ("loop ask crowd --format label-studi", "unknown format 'label-studi': did you mean 'label-studio'?"),
    ("loop ask crowd -o full.csv", "full.csv is a directory"),
    ("loop tell crowd", "nothing to tell: name a file of votes, or --workers"),
    ("loop tell crowd none.csv", "none.csv: no such file"),
    ("loop tell crowd truth.csv", "truth.csv has no column 'worker'"),
    ("loop tell crowd --workers odd.csv", "available is 'perhaps'; give yes or no"),
    ("loop status newer", "newer: a loop of format 2, made by a newer voxpop (this one knows 1); upgrade voxpop"),
    ("loop tell newer votes.csv", "made by a newer voxpop"),
    ("loop ask newer", "made by a newer voxpop"),
    ("loop export newer", "made by a newer voxpop"),
    ("loop fit newer", "made by a newer voxpop"),
    ("loop export crowd -o c.xls", "c.xls"),
    ("loop aks crowd", "no such command 'aks'. Did you mean 'ask'?"),
]


@pytest.mark.parametrize(("line", "says"), BAD)
def test_bad_input_is_one_line_and_changes_nothing(voxpop: Run, here: Path, crowd: Path, line: str, says: str):
    (here / "full").mkdir()
    (here / "full" / "thing").touch()
    (here / "full.csv").mkdir()
    voxpop("loop", "init", "newer", "--votes", "votes.csv")
    with sqlite3.connect("newer/loop.db") as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    np.savez("wrong.npz", x=np.zeros((2, 3)), tasks=["a", "b"])
    write_csv(Path("odd.csv"), ("worker", "available"), [("ann", "perhaps")])
    write_csv(Path("empty.csv"), ("task",), [])
    before, votes = files_in(here), status(voxpop)
    failed = voxpop(*line.split())
    assert (failed.code, failed.out) == (2, "")
    assert says in failed.error
    assert files_in(here) == before
    assert status(voxpop) == votes


def test_nobody_to_ask(voxpop: Run, crowd: Path):
    write_csv(Path("gone.csv"), ("worker", "available"), [(worker, "no") for worker in RIGHT])
    voxpop("loop", "tell", "crowd", "--workers", "gone.csv")
    failed = voxpop("loop", "ask", "crowd", "-o", "next.csv")
    assert failed.code == 2
    assert "none of the 5 workers is available; say who is with 'voxpop loop tell --workers'" in failed.error
    assert not Path("next.csv").exists()
