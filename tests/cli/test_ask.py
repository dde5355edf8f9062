"""voxpop ask: what to label next and by whom, from a model, all votes so far and a pool."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from tests.cli.conftest import Outcome, Run, files_in, read_csv, write_csv

ASK = ("ask", "model.vox", "votes.csv", "--features", "pool.npz")
WORKERS = ("both", "left", "right")  # right everywhere, on the left tasks, on the right tasks
VOTED, POOL = 80, 40  # the pool's tasks p0, p2, ... lie left


def side(task: str) -> str:
    return ("left", "right")[int(task[1:]) % 2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crowd of which two know one half of the tasks each; what DALC learned of it; a pool."""
    place = tmp_path_factory.mktemp("asking")
    rng = np.random.default_rng(1)
    count = VOTED + POOL
    where, truth = np.arange(count) % 2, rng.integers(0, 2, count)
    x = rng.normal(size=(count, 3)).astype(np.float32) * 0.3
    x[:, 0] += 4 * where - 2
    x[:, 1] += 2 * truth - 1
    names = [f"t{i}" for i in range(VOTED)] + [f"p{i}" for i in range(POOL)]
    rows = []
    for task in range(VOTED):
        for number, worker in ((0, "left"), (1, "right")):
            said = truth[task] if where[task] == number else rng.integers(0, 2)
            rows.append((names[task], worker, ("no", "yes")[said]))
        rows.append((names[task], "both", ("no", "yes")[truth[task]]))
    write_csv(place / "votes.csv", ("task", "worker", "label"), rows)
    np.savez(place / "pool.npz", x=x[VOTED:], tasks=names[VOTED:])
    votes = vp.read(str(place / "votes.csv"), tasks=names[:VOTED])
    vp.LFC(epochs=5).fit(x[:VOTED], votes).save(place / "lfc.vox")
    vp.DALC(epochs=5, topics=3, samples=5).fit(x[:VOTED], votes).save(place / "model.vox")
    vp.CrowdLayer(epochs=1).fit(x[:VOTED], votes).save(place / "deaf.vox")
    vp.MajorityVote().infer(votes).save(place / "con.vox")
    return place


@pytest.fixture(autouse=True)
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pairs(done: Outcome) -> list[tuple[str, str]]:
    assert done.code == 0
    return [(row["task"], row["worker"]) for row in done.table]


def crowd(*rows: tuple[str, ...], header: tuple[str, ...] = ("worker", "cost", "capacity", "available")) -> None:
    write_csv(Path("workers.csv"), header, rows)


# -- what is asked -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model.vox", "lfc.vox"])
def test_each_task_goes_to_who_knows_its_kind(voxpop: Run, model: str):
    crowd(("left",), ("right",), header=("worker",))
    done = voxpop("ask", model, *ASK[2:], "-k", "20", "--workers", "workers.csv", "-o", "next.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    rows = read_csv("next.csv")
    assert list(rows[0]) == ["task", "worker", "score"]
    assert len({row["task"] for row in rows}) == len(rows) == 20
    assert sum(side(row["task"]) == row["worker"] for row in rows) >= 18
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_it_is_ask_of_python(voxpop: Run):
    pool = np.load("pool.npz")
    expected = vp.load("model.vox").ask(k=7, X=pool["x"], tasks=pool["tasks"].tolist())
    assert pairs(voxpop(*ASK, "-k", "7")) == expected.select("task", "worker").rows()


def test_twenty_are_asked_for_where_nothing_is_said(voxpop: Run):
    assert len(pairs(voxpop(*ASK))) == 20


def test_votes_on_the_pool_count_and_are_not_asked_again(voxpop: Run):
    first = pairs(voxpop(*ASK, "-k", "40"))
    answered = [(f"p{i}", worker, "yes") for i in range(10) for worker in WORKERS]
    rows = [tuple(row.values()) for row in read_csv("votes.csv")]
    write_csv(Path("votes.csv"), ("task", "worker", "label"), [*rows, *answered])
    later = pairs(voxpop(*ASK, "-k", "30"))
    assert {task for task, _ in first} == {f"p{i}" for i in range(40)}
    assert {task for task, _ in later} == {f"p{i}" for i in range(10, 40)}


def test_a_doubtful_task_is_one_whose_votes_contradict(voxpop: Run):
    """Beliefs are those of the network and of the votes on the pool together."""
    agreed = [(f"p{i}", worker, "yes") for i in range(1, 40) for worker in ("both", "left")]
    write_csv(Path("more.csv"), ("task", "worker", "label"), [*agreed, ("p0", "both", "yes"), ("p0", "left", "no")])
    done = voxpop("ask", "model.vox", "more.csv", *ASK[3:], "-k", "1", "--worker-score", "mean")
    assert pairs(done) == [("p0", "right")]


def test_what_is_out_is_not_asked_again(voxpop: Run):
    voxpop(*ASK, "-k", "15", "-o", "next.csv")
    first = {(row["task"], row["worker"]) for row in read_csv("next.csv")}
    second = set(pairs(voxpop(*ASK, "-k", "15", "--outstanding", "next.csv")))
    assert not first & second
    third = pairs(voxpop(*ASK, "-k", "99", "--outstanding", "next.csv", "--cap-per-task", "1"))
    assert not {task for task, _ in first} & {task for task, _ in third}
    assert len(third) == POOL - 15


def test_costs_capacities_and_who_is_there(voxpop: Run):
    crowd(("both", "1", "3", "yes"), ("left", "1", "", "no"), ("right", "60", "2", "yes"))
    asked = [worker for _, worker in pairs(voxpop(*ASK, "-k", "9", "--workers", "workers.csv"))]
    assert asked.count("both") == 3
    assert asked.count("left") == 0
    assert asked.count("right") <= 2


def test_someone_new_is_taken_for_average_and_said(voxpop: Run):
    crowd(("zoe",), header=("worker",))
    done = voxpop(*ASK, "-k", "2", "--workers", "workers.csv")
    assert [worker for _, worker in pairs(done)] == ["zoe", "zoe"]
    assert done.err == "note: nothing was learned of 1 of the workers, who are taken for average: zoe\n"


def test_a_budget_and_diversity(voxpop: Run):
    crowd(("both", "2"), header=("worker", "cost"))
    done = voxpop(*ASK, "--workers", "workers.csv", "--budget", "9")
    assert len(pairs(done)) == 4
    assert done.err == "4 of 20 votes: the budget is spent\n"
    assert len(pairs(voxpop(*ASK, "-k", "6", "--diversity", "0.5"))) == 6


@pytest.mark.parametrize("score", ["margin", "bald", "relabel", "information", "error", "random"])
def test_every_score_of_tasks(voxpop: Run, score: str):
    assert len(pairs(voxpop(*ASK, "-k", "3", "--score", score))) == 3


@pytest.mark.parametrize("score", ["thompson", "ucb", "epsilon", "random"])
def test_every_score_of_workers(voxpop: Run, score: str):
    first = pairs(voxpop(*ASK, "-k", "3", "--worker-score", score, "--seed", "4"))
    assert len(first) == 3
    assert pairs(voxpop(*ASK, "-k", "3", "--worker-score", score, "--seed", "4")) == first


def test_nothing_is_kept(voxpop: Run):
    before = {path: path.read_bytes() for path in Path.cwd().iterdir()}
    first = voxpop(*ASK, "-k", "5").out
    assert voxpop(*ASK, "-k", "5").out == first
    assert {path: path.read_bytes() for path in Path.cwd().iterdir()} == before


# -- where and how it is written -----------------------------------------------------------------


def test_tools_get_tasks_to_import(voxpop: Run):
    plain = pairs(voxpop(*ASK, "-k", "4"))
    tasks = json.loads(voxpop(*ASK, "-k", "4", "--format", "label-studio").out)
    assert [(task["data"]["task"], task["data"]["assignee"]) for task in tasks] == plain
    voxpop(*ASK, "-k", "4", "--format", "argilla", "-o", "next.json")
    assert [record["id"] for record in json.loads(Path("next.json").read_text())] == [task for task, _ in plain]
    voxpop(*ASK, "-k", "4", "-o", "next.parquet")
    assert pl.read_parquet("next.parquet").select("task", "worker").rows() == plain


# -- when to stop --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [("--workers", "workers.csv"), ("--stop", "1000")])
def test_where_no_vote_pays_there_is_a_header_and_the_reason(voxpop: Run, how: tuple[str, ...]):
    crowd(("both", "1000"), header=("worker", "cost"))
    done = voxpop(*ASK, *how, "-o", "next.csv")
    assert (done.code, done.out) == (0, "")
    assert Path("next.csv").read_text() == "task,worker,score\n"
    (line,) = done.err.splitlines()
    assert line.startswith("stop: the best vote left is expected to gain ")
    assert "not more than its cost of" in line


def test_worth_moves_the_stop(voxpop: Run):
    crowd(("both", "1000"), header=("worker", "cost"))
    assert len(pairs(voxpop(*ASK, "--workers", "workers.csv", "--worth", "1e6", "-k", "3"))) == 3


def test_everything_answered(voxpop: Run):
    answered = [(f"p{i}", worker, "yes") for i in range(POOL) for worker in WORKERS]
    write_csv(Path("all.csv"), ("task", "worker", "label"), answered)
    done = voxpop("ask", "model.vox", "all.csv", *ASK[3:])
    assert (done.code, done.out) == (0, "task,worker,score\n")
    assert done.err.startswith("stop: ")


# -- bad input -----------------------------------------------------------------------------------

BAD = [
    ("ask model.vox votes.csv", "missing option '--features'"),
    ("ask none.vox votes.csv --features pool.npz", "none.vox: no such file"),
    ("ask con.vox votes.csv --features pool.npz", "con.vox: holds a consensus, which has no classifier"),
    (
        "ask deaf.vox votes.csv --features pool.npz",
        "deaf.vox: holds crowd-layer, which does not learn who is good at wh",
    ),
    ("ask deaf.vox votes.csv --features pool.npz", "cannot ask; learn with -m dalc, lfc or stal"),
    ("ask model.vox none.csv --features pool.npz", "none.csv: no such file"),
    ("ask model.vox votes.csv --features empty.npz", "empty.npz: the pool is empty: there is no task to ask about"),
    ("ask model.vox votes.csv --features wide.npz", "wide.npz: a row has 5 numbers, and the model was trained on 3"),
    ("ask model.vox strange.csv --features pool.npz", "the votes have a worker 'max' that nothing was learned of"),
    ("ask model.vox label.csv --features pool.npz", "the votes have a label 'maybe' that nothing was learned of"),
    ("ask model.vox votes.csv --features pool.npz -k 0", "k=0: a batch of no votes asks nothing; give 1 or more"),
    ("ask model.vox votes.csv --features pool.npz --budget 0", "budget=0: nothing can be asked for that"),
    ("ask model.vox votes.csv --features pool.npz --worth 0", "worth=0"),
    ("ask model.vox votes.csv --features pool.npz --diversity 2", "diversity=2 is not between 0 and 1"),
    ("ask model.vox votes.csv --features pool.npz --cap-per-task 0", "cap_per_task=0; give 1 or more"),
    ("ask model.vox votes.csv --features pool.npz --score entrpy", "did you mean 'entropy'?"),
    ("ask model.vox votes.csv --features pool.npz --worker-score meen", "did you mean 'mean'?"),
    (
        "ask model.vox votes.csv --features pool.npz --workers nobody.csv",
        "nobody.csv: none of its workers is available",
    ),
    (
        "ask model.vox votes.csv --features pool.npz --workers idle.csv",
        "no worker is available with a capacity above ze",
    ),
    (
        "ask model.vox votes.csv --features pool.npz --workers odd.csv",
        "odd.csv, row 1 (line 2): cost is 'much'; give a",
    ),
    ("ask model.vox votes.csv --features pool.npz --outstanding votes2.csv", "votes2.csv has no column 'worker'"),
    ("ask model.vox votes.csv --features pool.npz --format cvs", "unknown format 'cvs': did you mean 'csv'?"),
    ("ask model.vox votes.csv --features pool.npz -o votes.csv", "--output votes.csv would overwrite what is read"),
    ("ask lfc.vox votes.csv --features pool.npz -o no/next.csv", "no/next.csv"),
]


@pytest.mark.parametrize(("line", "says"), BAD)
def test_bad_input_is_one_line_and_writes_nothing(voxpop: Run, here: Path, line: str, says: str):
    np.savez("empty.npz", x=np.zeros((0, 3)), tasks=np.array([], dtype=str))
    np.savez("wide.npz", x=np.zeros((2, 5)), tasks=["a", "b"])
    write_csv(Path("strange.csv"), ("task", "worker", "label"), [("p0", "max", "no")])
    write_csv(Path("label.csv"), ("task", "worker", "label"), [("p0", "both", "maybe"), ("p1", "both", "no")])
    write_csv(Path("nobody.csv"), ("worker", "available"), [("both", "no")])
    write_csv(Path("idle.csv"), ("worker", "capacity"), [("both", "0")])
    write_csv(Path("odd.csv"), ("worker", "cost"), [("both", "much")])
    write_csv(Path("votes2.csv"), ("task", "person"), [("p0", "both")])
    before = files_in(here)
    failed = voxpop(*line.split(), *(() if " -o " in line else ("-o", "next.csv")))
    assert (failed.code, failed.out) == (2, "")
    assert says in failed.error
    assert files_in(here) == before
