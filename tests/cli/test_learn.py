"""voxpop learn: features and votes in, a classifier out."""

from __future__ import annotations

import json
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from tests.cli.conftest import CLASSES, RIGHT, Run, files_in, read_csv, write_csv

pytestmark = pytest.mark.usefixtures("features")
QUICK = ("-m", "crowd-layer", "--epochs", "2")
LEARN = ("learn", "votes.csv", "--features", "x.npz")


def right(rows: list[dict[str, str]]) -> float:
    truth = {row["task"]: row["label"] for row in read_csv("truth.csv")}
    return sum(truth[row["task"]] == row["label"] for row in rows) / len(rows)


# -- what comes out -----------------------------------------------------------------------------


def test_a_model_that_python_reads(voxpop: Run):
    done = voxpop(*LEARN, "-o", "model.vox", "-m", "crowd-layer", "--epochs", "30", "--set", "lr=0.02")
    assert (done.code, done.err) == (0, "")
    model, file = vp.load("model.vox"), np.load("x.npz")
    votes = vp.read("votes.csv", tasks=file["tasks"])
    assert type(model) is vp.CrowdLayer
    again = vp.CrowdLayer(epochs=30, lr=0.02).fit(file["x"], votes)
    np.testing.assert_allclose(model.predict_proba(file["x"]), again.predict_proba(file["x"]), atol=1e-5)
    assert done.out.splitlines()[0] == "classifier: mlp with 899 weights, 30 epochs"
    assert "CrowdLayer, trained" in done.out


def test_all_that_can_be_written(voxpop: Run, here: Path):
    before = files_in(here)
    outputs = ("--consensus-out", "c.csv", "--workers-out", "w.csv", "--report", "r.html", "--export", "c.pt")
    done = voxpop(*LEARN, "-o", "model.vox", *outputs, "--json", *QUICK)
    assert done.code == 0
    assert files_in(here) - before == {"model.vox", "c.csv", "w.csv", "r.html", "c.pt"}
    consensus, workers = read_csv("c.csv"), read_csv("w.csv")
    assert list(consensus[0])[:3] == ["task", "label", "confidence"]
    assert [row["task"] for row in consensus] == [f"t{i}" for i in range(30)]
    assert right(consensus) > 0.8
    assert list(workers[0])[:3] == ["worker", "votes", "accuracy"]
    assert {row["worker"] for row in workers} == set(RIGHT)
    answer = json.loads(done.out)
    assert answer["written"].keys() == {"output", "consensus_out", "workers_out", "report", "export"}
    assert (answer["method"], answer["epochs"], len(answer["loss"])) == ("CrowdLayer", 2, 2)
    assert answer["held_out"] is answer["test"] is None


def test_the_report_is_a_whole_page(voxpop: Run):
    assert voxpop(*LEARN, "--report", "r.html", "--truth", "truth.csv", *QUICK).code == 0
    page = Path("r.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert "What a classifier learned from 5 workers on 30 tasks" in page
    assert "Loss by epoch" in page
    assert "http://" not in page.replace("http://www.w3.org", "")  # nothing to fetch


def test_the_exported_classifier_says_the_same_without_voxpop(voxpop: Run):
    voxpop(*LEARN, "-o", "model.vox", "--export", "c.pt", *QUICK)
    x = np.load("new.npz")["x"]
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):  # torch means to replace this form
        p = torch.jit.load("c.pt")(torch.from_numpy(x))
    np.testing.assert_allclose(p.numpy(), vp.load("model.vox").predict_proba(x), atol=1e-4)


def test_json_and_tables_go_to_stdout(voxpop: Run):
    table = voxpop(*LEARN, "--consensus-out", "-", *QUICK)
    assert (table.code, table.err) == (0, "")
    assert right(table.table) > 0.8
    whole = json.loads(voxpop(*LEARN, "--json", *QUICK).out)
    assert (whole["votes"], whole["tasks"], whole["classes"]) == (150, 30, list(CLASSES))


# -- what goes in -------------------------------------------------------------------------------


def test_votes_on_stdin(voxpop: Run):
    done = voxpop("learn", "-", *LEARN[2:], "--json", *QUICK, stdin=Path("votes.csv").read_bytes())
    assert json.loads(done.out) == json.loads(voxpop(*LEARN, "--json", *QUICK).out)


@pytest.mark.parametrize("form", ["x.parquet", "x.csv", "lists.parquet"])
def test_features_of_every_form_teach_the_same(voxpop: Run, form: str):
    file = np.load("x.npz")
    frame = pl.DataFrame({"task": file["tasks"].tolist(), **{f"f{i}": file["x"][:, i] for i in range(3)}})
    if form == "x.parquet":
        frame.sample(fraction=1, shuffle=True, seed=1).select("f0", "f1", "f2", "task").write_parquet(form)
    elif form == "x.csv":
        frame.write_csv(form)
    else:
        frame.select("task", pl.concat_list("f0", "f1", "f2").alias("embedding")).write_parquet(form)
    done = voxpop("learn", "votes.csv", "--features", form, "--consensus-out", "-", "-m", "aggnet", "--epochs", "20")
    assert done.code == 0
    assert {row["task"] for row in done.table} == {f"t{i}" for i in range(30)}
    assert right(done.table) > 0.9


def test_texts_are_read_as_words(voxpop: Run):
    words = {"bird": "feathers and wings", "cat": "whiskers purring", "dog": "barking at postmen"}
    texts = [(row["task"], f"it has {words[row['label']]}") for row in read_csv("truth.csv")]
    write_csv(Path("texts.csv"), ("task", "body"), texts)
    quick = ("-m", "two-stage", "--epochs", "40", "--set", "lr=0.02")
    done = voxpop("learn", "votes.csv", "--features", "texts.csv", "--text", "body", "-o", "model.vox", *quick)
    assert (done.code, done.err) == (0, "")
    write_csv(Path("more.csv"), ("task", "body"), [(c, f"It has {words[c]}!") for c in CLASSES])
    found = voxpop("predict", "model.vox", "--features", "more.csv", "--text", "body")
    assert [row["label"] for row in found.table] == list(CLASSES)
    wrong = voxpop("predict", "model.vox", "--features", "new.npz")
    assert (wrong.code, wrong.error) == (
        2,
        "error: new.npz: the model was trained on texts; name their column with --text",
    )


def test_a_folder_of_images(voxpop: Run, here: Path):
    image = pytest.importorskip("PIL.Image")
    (here / "photos").mkdir()
    colours = {"bird": (250, 0, 0), "cat": (0, 250, 0), "dog": (0, 0, 250)}
    for row in read_csv("truth.csv"):
        image.new("RGB", (8, 8), colours[row["label"]]).save(here / "photos" / f"{row['task']}.png")
    done = voxpop("learn", "votes.csv", "--features", "photos", "-o", "model.vox", *QUICK, "--model", "cnn")
    assert done.code == 0
    found = voxpop("predict", "model.vox", "--features", "photos")
    assert len(found.table) == 30


def test_tasks_without_votes_are_counted(voxpop: Run):
    rows = [tuple(row.values()) for row in read_csv("votes.csv") if row["task"] not in ("t1", "t2")]
    write_csv(Path("fewer.csv"), ("task", "worker", "label"), rows)
    done = voxpop("learn", "fewer.csv", *LEARN[2:], "--consensus-out", "-", *QUICK)
    assert done.err == "note: 2 of the 30 tasks with features have no votes\n"
    assert {"t1", "t2"} <= {row["task"] for row in done.table}


def test_gold_is_certain(voxpop: Run):
    task, label = read_csv("truth.csv")[0].values()
    wrong = next(c for c in CLASSES if c != label)
    write_csv(Path("gold.csv"), ("task", "label"), [(task, wrong)])
    done = voxpop(*LEARN, "--gold", "gold.csv", "--consensus-out", "-", *QUICK)
    (row,) = [row for row in done.table if row["task"] == task]
    assert (row["label"], float(row["confidence"])) == (wrong, 1.0)


# -- scores -------------------------------------------------------------------------------------


def test_truth_evaluates_and_never_reaches_the_answer(voxpop: Run):
    voxpop(*LEARN, "-o", "untold.vox", *QUICK)
    told = voxpop(*LEARN, "-o", "told.vox", "--truth", "truth.csv", *QUICK)
    x, (one, other) = np.load("x.npz")["x"], map(vp.load, ("told.vox", "untold.vox"))
    np.testing.assert_array_equal(one.predict_proba(x), other.predict_proba(x))
    assert one.consensus_.labels.equals(other.consensus_.labels)
    assert "against the truth of 30 tasks: accuracy" in told.out


def test_test_tasks_score_the_classifier(voxpop: Run):
    tests = ("--test-features", "new.npz", "--test-truth", "new.csv")
    done = voxpop(*LEARN, *tests, "--json", "-o", "model.vox", *QUICK)
    score = json.loads(done.out)["test"]
    p = vp.load("model.vox").predict(np.load("new.npz")["x"])
    expected = np.mean(p == [row["label"] for row in read_csv("new.csv")])
    assert (score["tasks"], score["accuracy"]) == (12, pytest.approx(expected))
    assert "on 12 test tasks: accuracy" in voxpop(*LEARN, *tests, *QUICK).out


# -- which method, how long ---------------------------------------------------------------------


def test_without_a_method_held_out_votes_choose_and_it_is_said(voxpop: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("voxpop.methods.learning.choose.candidates", lambda: ("two-stage", "crowd-layer"))
    done = voxpop(*LEARN, "--json", "--epochs", "5")
    answer = json.loads(done.out)
    (said,) = [note for note in answer["notes"] if "foretells held-out votes best" in note]
    named = {"TwoStage": "two-stage", "CrowdLayer": "crowd-layer"}
    assert said.startswith(named[answer["method"]])
    assert all(name in said for name in named.values())


def test_without_epochs_held_out_votes_choose_them(voxpop: Run):
    answer = json.loads(voxpop(*LEARN, "--json", "-m", "crowd-layer", "--model", "linear").out)
    curve = answer["held_out"]["curve"]
    assert answer["epochs"] == 1 + int(np.argmax(curve))
    assert answer["held_out"]["log_probability"] < 0
    assert any("held-out vote" in note for note in answer["notes"])


def test_network_seed_and_options_arrive(voxpop: Run):
    options = ("--model", "mlp:7", "--seed", "3", "--set", "batch_size=5", "--set", "kind=VW")
    found = json.loads(voxpop(*LEARN, "--json", *QUICK, *options).out)["options"]
    assert (found["model"], found["seed"], found["batch_size"], found["kind"]) == ("mlp:7", 3, 5, "VW")


# -- checkpoints --------------------------------------------------------------------------------


def test_a_checkpoint_is_gone_on_from(voxpop: Run):
    half, whole = (*QUICK[:2], "--epochs", "3"), (*QUICK[:2], "--epochs", "6")
    voxpop(*LEARN, "-o", "straight.vox", *whole)
    voxpop(*LEARN, *half, "--checkpoint", "ck")
    assert Path("ck").stat().st_size > 100
    again = voxpop(*LEARN, "-o", "resumed.vox", *whole, "--checkpoint", "ck", "--json")
    assert json.loads(again.out)["epochs"] == 6
    x = np.load("x.npz")["x"]
    np.testing.assert_allclose(
        vp.load("resumed.vox").predict_proba(x), vp.load("straight.vox").predict_proba(x), atol=1e-6
    )


def test_ctrl_c_says_that_the_checkpoint_is_there(here: Path, started: Callable[..., Any]):
    process = started(*LEARN, "-m", "crowd-layer", "--epochs", "1000000", "--checkpoint", "ck", "-o", "model.vox")
    while not (here / "ck").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        err.decode().splitlines()[-1] == "interrupted: ck holds the training so far; the same command goes on from it"
    )
    assert not (here / "model.vox").exists()


# -- bad input ----------------------------------------------------------------------------------


BAD = [
    ("learn votes.csv", "missing option '--features'"),
    ("learn votes.csv --features none.npz", "none.npz: no such file"),
    ("learn votes.csv --features x.npz -m crowdlayer", "unknown method 'crowdlayer': did you mean 'crowd-layer'?"),
    ("learn votes.csv --features x.npz -m glad", "glad is a method for 'voxpop aggregate'"),
    ("learn votes.csv --features x.npz --model mpl", "mpl"),
    ("learn votes.csv --features x.npz --epochs 0", "epochs is 0; it must be a whole number"),
    ("learn votes.csv --features x.npz --set leer=1", "unknown option of"),
    ("learn votes.csv --features x.npz --epochs 2 --set epochs=3", "--epochs and --set epochs= are the same"),
    ("learn votes.csv --features x.npz --test-truth new.csv", "--test-features and --test-truth belong together"),
    ("learn votes.csv --features x.npz --gold truth.csv --no-gold", "contradict each other"),
    ("learn votes.csv --features x.npz -o -", "--output cannot write to standard output"),
    ("learn votes.csv --features x.npz -o x.npz", "would overwrite what is read"),
    ("learn votes.csv --features x.npz --export c.onx", "name it .pt for TorchScript or .onnx for ONNX"),
    ("learn votes.csv --features x.npz --embed minilm -m aggnet", "--embed minilm: only texts are embedded"),
    ("learn votes.csv --features x.npz --text body", "x.npz: has no columns"),
    ("learn votes.csv --features new.npz", "none of the 30 tasks with votes has features"),
    ("learn votes.csv --features few.npz", "few.npz: 28 of the 30 tasks with votes have no features"),
    ("learn votes.csv --features nan.npz", "nan.npz: 1 tasks have NaN or infinity among their features"),
    ("learn votes.csv --features short.npz", "x has the shape (1, 3) and tasks (2,)"),
    ("learn votes.csv --features nox.npz", "nox.npz has no array 'x'"),
    ("learn votes.csv --features votes.csv", "column 'worker' holds 'ann', which is no number"),
    ("learn votes.csv --features x.npz --test-features new.npz --test-truth truth.csv", "do the names match?"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "says"), BAD)
def test_bad_input_is_one_line_and_writes_nothing(voxpop: Run, here: Path, line: str, says: str):
    x = np.zeros((2, 3), np.float32)
    np.savez("few.npz", x=x, tasks=["t0", "t1"])
    np.savez("short.npz", x=x[:1], tasks=["t0", "t1"])
    np.savez("nox.npz", rows=x, tasks=["t0", "t1"])
    whole = np.load("x.npz")
    np.savez("nan.npz", x=np.where(np.arange(30)[:, None] == 4, np.nan, whole["x"]), tasks=whole["tasks"])
    before = files_in(here)
    failed = voxpop(*line.split(), *(() if " -o " in line else ("--consensus-out", "c.csv")))
    assert (failed.code, failed.out) == (2, "")
    assert says in failed.error
    assert files_in(here) == before


def test_a_loss_that_is_gone_is_a_failed_run(voxpop: Run, here: Path):
    before = files_in(here)
    failed = voxpop(*LEARN, "-o", "model.vox", "-m", "crowd-layer", "--epochs", "50", "--set", "lr=1e30")
    assert failed.code == 1
    assert "epoch" in failed.error or "step" in failed.error
    assert files_in(here) == before
