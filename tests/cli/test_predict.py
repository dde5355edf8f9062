"""voxpop predict: a classifier at work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from tests.cli.conftest import CLASSES, Run, files_in, read_csv, write_csv

PREDICT = ("predict", "model.vox", "--features", "new.npz")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model of features of three numbers, as a file's content."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    x = (3 * np.eye(3)[truth] + rng.normal(size=(60, 3))).astype(np.float32)
    workers = {"ann": 0.95, "bob": 0.9, "eve": 0.6}
    rows = [
        (f"t{i}", worker, CLASSES[k if rng.random() < chance else (k + 1) % 3])
        for i, k in enumerate(truth)
        for worker, chance in workers.items()
    ]
    frame = pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")
    votes = vp.Votes.from_frame(frame, tasks=[f"t{i}" for i in range(60)])
    path = tmp_path_factory.mktemp("model") / "model.vox"
    vp.AggNet(epochs=30, lr=0.02).fit(x, votes).save(path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def model(features: Path, saved: bytes) -> vp.AggNet:
    (features / "model.vox").write_bytes(saved)
    return vp.load(features / "model.vox")


def test_predictions_have_the_promised_columns(voxpop: Run, model: vp.AggNet):
    done = voxpop(*PREDICT, "-o", "predictions.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    rows = read_csv("predictions.csv")
    assert list(rows[0]) == ["task", "label", "confidence"]
    assert [row["task"] for row in rows] == [f"n{i}" for i in range(12)]
    p = model.predict_proba(np.load("new.npz")["x"])
    assert [row["label"] for row in rows] == model.classes_[p.argmax(1)].tolist()
    np.testing.assert_allclose([float(row["confidence"]) for row in rows], p.max(1), atol=1e-5)
    right = [row["label"] == other["label"] for row, other in zip(rows, read_csv("new.csv"), strict=True)]
    assert sum(right) >= 10


def test_stdout_is_the_default_and_other_formats_hold_the_same(voxpop: Run):
    table = voxpop(*PREDICT).table
    voxpop(*PREDICT, "-o", "p.parquet")
    assert pl.read_parquet("p.parquet")["label"].to_list() == [row["label"] for row in table]


def test_probabilities_of_every_class(voxpop: Run, model: vp.AggNet):
    rows = voxpop(*PREDICT, "--probabilities").table
    assert list(rows[0]) == ["task", "label", "confidence", *(f"p({name})" for name in CLASSES)]
    found = [[float(row[f"p({name})"]) for name in CLASSES] for row in rows]
    np.testing.assert_allclose(found, model.predict_proba(np.load("new.npz")["x"]), atol=1e-5)


def test_votes_on_the_tasks_count_too(voxpop: Run, model: vp.AggNet):
    """As ``forecast`` has it: classifier and crowd together; tasks without votes keep the classifier's word."""
    alone = voxpop(*PREDICT).table
    wrong = CLASSES[(CLASSES.index(alone[0]["label"]) + 1) % 3]
    write_csv(Path("more.csv"), ("task", "worker", "label"), [("n0", worker, wrong) for worker in ("ann", "bob")])
    both = voxpop(*PREDICT, "--votes", "more.csv").table
    x = np.load("new.npz")["x"]
    p = model.forecast(x, vp.read("more.csv", tasks=[f"n{i}" for i in range(12)], classes=CLASSES))
    np.testing.assert_allclose([float(row["confidence"]) for row in both], p.max(1), atol=1e-5)
    assert [row["label"] for row in both] == model.classes_[p.argmax(1)].tolist()
    assert [row["label"] for row in both][1:] == [row["label"] for row in alone][1:]
    assert p[0, CLASSES.index(wrong)] > model.predict_proba(x)[0, CLASSES.index(wrong)]


def test_columns_are_found_by_their_names(voxpop: Run):
    file = np.load("x.npz")
    frame = pl.DataFrame({"task": file["tasks"].tolist(), **{c: file["x"][:, i] for i, c in enumerate("abc")}})
    frame.write_csv("x.csv")
    frame.select("c", "task", "a", pl.lit(7).alias("more"), "b").write_csv("turned.csv")
    voxpop("learn", "votes.csv", "--features", "x.csv", "-m", "crowd-layer", "--epochs", "2", "-o", "named.vox")
    plain = voxpop("predict", "named.vox", "--features", "x.csv")
    assert plain.code == 0
    assert voxpop("predict", "named.vox", "--features", "turned.csv").out == plain.out
    frame.drop("b").write_csv("fewer.csv")
    assert "fewer.csv has no column 'b'" in voxpop("predict", "named.vox", "--features", "fewer.csv").error


BAD = [
    ("predict none.vox --features new.npz", "none.vox: no such file"),
    ("predict votes.csv --features new.npz", "votes.csv: not a file that voxpop wrote, or a damaged one"),
    ("predict cut.vox --features new.npz", "cut.vox: not a file that voxpop wrote, or a damaged one"),
    ("predict con.vox --features new.npz", "con.vox: holds a consensus, which has no classifier; give what"),
    ("predict model.vox", "missing option '--features'"),
    ("predict model.vox --features wide.npz", "wide.npz: a row has 5 numbers, and the model was trained on 3"),
    ("predict model.vox --features texts.csv", "numbers or images, and these are texts"),
    ("predict model.vox --features new.npz -o new.npz", "--output new.npz would overwrite what is read"),
    ("predict model.vox --features new.npz -o p.xls", "p.xls"),
    ("predict model.vox --features new.npz --votes votes.csv", "none of the 30 tasks with votes has features"),
    ("predict model.vox --features new.npz --votes strange.csv", "the votes have a worker 'max' that nothing was lear"),
    ("predict model.vox --features new.npz --votes label.csv", "the votes have a label 'fish' that nothing was learn"),
]


@pytest.mark.parametrize(("line", "says"), BAD)
def test_bad_input_is_one_line_and_writes_nothing(voxpop: Run, here: Path, line: str, says: str):
    np.savez("wide.npz", x=np.zeros((2, 5)), tasks=["a", "b"])
    write_csv(Path("texts.csv"), ("task", "body"), [("a", "words")])
    write_csv(Path("strange.csv"), ("task", "worker", "label"), [("n0", "max", "cat"), ("n0", "ann", "dog")])
    write_csv(Path("label.csv"), ("task", "worker", "label"), [("n0", "ann", "cat"), ("n1", "ann", "fish")])
    vp.MajorityVote().infer(vp.read("votes.csv")).save("con.vox")
    Path("cut.vox").write_bytes(Path("model.vox").read_bytes()[:-100])
    before = files_in(here)
    failed = voxpop(*line.split())
    assert (failed.code, failed.out) == (2, "")
    assert says in failed.error
    assert files_in(here) == before
