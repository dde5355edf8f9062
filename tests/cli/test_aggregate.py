"""voxpop aggregate: every option does what it says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from tests.cli.conftest import CLASSES, RIGHT, Run, files_in, read_csv, write_csv

FAST = ("-m", "one-coin")


def labels(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["task"]: row["label"] for row in rows}


def truth() -> dict[str, str]:
    return labels(read_csv("truth.csv"))


# -- answers ----------------------------------------------------------------------------------


def test_consensus_and_workers_have_the_promised_columns(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", "-o", "consensus.csv", "--workers-out", "workers.csv", *FAST)
    assert (done.code, done.err) == (0, "")
    consensus, workers = read_csv("consensus.csv"), read_csv("workers.csv")
    assert list(consensus[0])[:3] == ["task", "label", "confidence"]
    assert list(workers[0])[:3] == ["worker", "votes", "accuracy"]
    assert [row["task"] for row in consensus] == sorted(truth())
    assert {row["worker"] for row in workers} == set(RIGHT)
    assert {row["votes"] for row in workers} == {"30"}
    right = sum(labels(consensus)[task] == label for task, label in truth().items())
    assert right >= 27


def test_the_default_is_that_of_the_library(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", "--json")
    found = vp.consensus(vp.read("votes.csv"))
    answer = json.loads(done.out)
    assert answer["notes"] == list(found.notes)
    assert {row["task"]: row["label"] for row in answer["consensus"]} == dict(found.labels.iter_rows())


def test_a_method_and_its_options(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", "--json", "-m", "dawid-skene", "--set", "max-iter=7", "--set", "tol=0")
    answer = json.loads(done.out)
    assert answer["method"] == "DawidSkene"
    assert answer["iterations"] == 7
    assert answer["options"]["tol"] == 0
    assert answer["status"] == "out of steps"
    assert done.err == "warning: DawidSkene stopped before it converged: raise max_iter or tol\n"


def test_the_default_takes_options_too(voxpop: Run):
    plain = json.loads(voxpop("aggregate", "votes.csv", "--json").out)
    told = json.loads(voxpop("aggregate", "votes.csv", "--json", "--set", "held_out=0", "--set", "sweeps=20").out)
    assert told["options"]["held_out"] == 0
    assert told["notes"] != plain["notes"]


def test_the_summary_for_people_is_plain(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", *FAST)
    first, *lines = done.out.splitlines()
    assert first == "OneCoin, converged: 150 votes of 5 workers on 30 tasks, 3 classes"
    assert "\x1b" not in done.out
    (spam,) = [line.split() for line in lines if line.split()[:1] == ["spam"]]
    assert spam[-1] in ("unclear", "worse")


def test_ties_are_shown(voxpop: Run):
    write_csv(Path("tie.csv"), ("task", "worker", "label"), [("t", "a", "cat"), ("t", "b", "dog"), ("u", "a", "cat")])
    lines = [line.split() for line in voxpop("aggregate", "tie.csv", "-m", "majority-vote").out.splitlines()]
    assert ["t", "cat", "0.500", "2", "yes"] in lines
    assert ["mean", "confidence", "0.750,", "ties", "1"] in lines


def test_a_long_name_is_not_wrapped_where_there_is_no_terminal(voxpop: Run):
    name = "a very long name of a task " * 20
    write_csv(Path("long.csv"), ("task", "worker", "label"), [(name, w, "cat") for w in "abc"] + [("t", "a", "dog")])
    assert name.strip() in voxpop("aggregate", "long.csv", *FAST).out


def test_control_characters_in_names_do_not_reach_the_terminal(voxpop: Run):
    write_csv(
        Path("odd.csv"), ("task", "worker", "label"), [("\x1b[31mred", w, "cat") for w in "ab"] + [("t", "a", "dog")]
    )
    done = voxpop("aggregate", "odd.csv", *FAST)
    assert "\x1b" not in done.out
    assert r"\x1b[31mred" in done.out


# -- standard input and output -----------------------------------------------------------------


def test_stdin_and_stdout(voxpop: Run):
    done = voxpop("aggregate", "-", "-o", "-", *FAST, stdin=Path("votes.csv").read_bytes())
    assert (done.code, done.err) == (0, "")
    voxpop("aggregate", "votes.csv", "-o", "consensus.csv", *FAST)
    assert done.out == Path("consensus.csv").read_text()


def test_scores_go_to_stderr_where_stdout_has_the_consensus(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", "-o", "-", "--truth", "truth.csv", *FAST)
    assert labels(done.table).keys() == truth().keys()
    assert done.err.startswith("note: against the truth: accuracy ")


def test_json_holds_what_no_file_gets(voxpop: Run):
    whole = json.loads(voxpop("aggregate", "votes.csv", "--json", *FAST).out)
    assert [row["task"] for row in whole["consensus"]] == sorted(truth())
    assert {row["worker"] for row in whole["worker_table"]} == set(RIGHT)
    assert (whole["votes"], whole["tasks"], whole["workers"], whole["classes"]) == (150, 30, 5, list(CLASSES))
    assert whole["evaluation"] is None
    assert whole["written"] == {}
    brief = json.loads(voxpop("aggregate", "votes.csv", "--json", "-o", "c.csv", "--workers-out", "w.csv", *FAST).out)
    assert whole.keys() - brief.keys() == {"consensus", "worker_table"}
    assert brief["written"] == {"output": "c.csv", "workers_out": "w.csv"}


# -- known answers ------------------------------------------------------------------------------


def test_gold_is_certain(voxpop: Run):
    task, right = next(iter(truth().items()))
    wrong = next(c for c in CLASSES if c != right)
    write_csv(Path("gold.csv"), ("task", "label"), [(task, wrong)])
    done = voxpop("aggregate", "votes.csv", "--gold", "gold.csv", "-o", "-", *FAST)
    (row,) = [row for row in done.table if row["task"] == task]
    assert (row["label"], float(row["confidence"])) == (wrong, 1.0)


def test_truth_evaluates_and_never_reaches_the_answer(voxpop: Run):
    untold = voxpop("aggregate", "votes.csv", "-o", "untold.csv", "-m", "dawid-skene")
    liar = {task: CLASSES[(CLASSES.index(label) + 1) % 3] for task, label in truth().items()}
    write_csv(Path("lies.csv"), ("task", "label"), list(liar.items()))
    told = voxpop("aggregate", "votes.csv", "-o", "told.csv", "-m", "dawid-skene", "--truth", "lies.csv")
    assert Path("untold.csv").read_bytes() == Path("told.csv").read_bytes()
    assert untold.out != told.out


def test_scores_are_those_of_the_library(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", "--json", "--truth", "truth.csv", *FAST)
    expected = vp.OneCoin().infer(vp.read("votes.csv")).evaluate(truth())
    assert json.loads(done.out)["evaluation"] == pytest.approx(expected)
    shown = voxpop("aggregate", "votes.csv", "--truth", "truth.csv", *FAST).out
    assert f"against the truth of 30 tasks: accuracy {expected['accuracy']:.4f}, F1 {expected['f1']:.4f}" in shown
    assert f"calibration error {expected['calibration_error']:.4f}" in shown


def test_truth_of_other_tasks_is_left_out_and_counted(voxpop: Run):
    write_csv(Path("more.csv"), ("task", "label"), [*truth().items(), ("elsewhere", "cat"), ("nowhere", "zebra")])
    done = voxpop("aggregate", "votes.csv", "--json", "--truth", "more.csv", *FAST)
    assert done.err == "note: 2 of the 32 tasks in more.csv have no votes\n"
    assert json.loads(done.out)["evaluation"]["tasks"] == 30


# -- reading ------------------------------------------------------------------------------------


def test_columns_by_other_names(voxpop: Run):
    rows = [(r["label"], r["worker"], r["task"]) for r in read_csv("votes.csv")]
    write_csv(Path("renamed.csv"), ("answer", "who", "item"), rows)
    columns = ("--task", "item", "--worker", "who", "--label", "answer")
    plain = voxpop("aggregate", "votes.csv", "-o", "-", *FAST)
    assert voxpop("aggregate", "renamed.csv", *columns, "-o", "-", *FAST).out == plain.out


def test_abstentions_are_left_out_and_counted(voxpop: Run):
    rows = [tuple(r.values()) for r in read_csv("votes.csv")]
    write_csv(Path("shy.csv"), ("task", "worker", "label"), [*rows, ("t1", "shy", "don't know"), ("t2", "shy", "?")])
    done = voxpop("aggregate", "shy.csv", "--ignore", "don't know", "--ignore", "?", "--json", *FAST)
    answer = json.loads(done.out)
    assert answer["classes"] == list(CLASSES)
    assert answer["dropped"] == {"ignored": 2}
    assert done.err == "note: left out 2 of the answers (2 ignored)\n"


def test_missing_labels_are_an_error_or_dropped(voxpop: Run):
    rows = [tuple(r.values()) for r in read_csv("votes.csv")]
    write_csv(Path("gaps.csv"), ("task", "worker", "label"), [*rows, ("t1", "shy", ""), ("t2", "shy", "NaN")])
    failed = voxpop("aggregate", "gaps.csv", *FAST)
    assert failed.code == 2
    assert "row 151 (line 152)" in failed.error
    assert "--missing drop" in failed.error
    assert failed.error.endswith("(and 1 more)")
    done = voxpop("aggregate", "gaps.csv", "--missing", "drop", "--json", *FAST)
    assert json.loads(done.out)["dropped"] == {"missing": 2}


def test_repeats_are_kept_dropped_or_an_error(voxpop: Run):
    rows = [tuple(r.values()) for r in read_csv("votes.csv")]
    write_csv(Path("twice.csv"), ("task", "worker", "label"), [*rows, *rows[:3]])
    kept = json.loads(voxpop("aggregate", "twice.csv", "--json", *FAST).out)
    assert (kept["votes"], kept["repeated"]) == (153, 3)
    dropped = json.loads(voxpop("aggregate", "twice.csv", "--repeats", "drop", "--json", *FAST).out)
    assert (dropped["votes"], dropped["dropped"]) == (150, {"repeated": 3})
    failed = voxpop("aggregate", "twice.csv", "--repeats", "error", *FAST)
    assert failed.code == 2
    assert "voted twice or more on task 't0'" in failed.error


@pytest.mark.parametrize("by", ["zebra,dog,cat,bird", "classes.txt"])
def test_classes_in_their_order(voxpop: Run, by: str):
    Path("classes.txt").write_text("zebra\ndog\n\ncat\nbird\n")
    done = voxpop("aggregate", "votes.csv", "--classes", by, "--json", *FAST)
    assert json.loads(done.out)["classes"] == ["zebra", "dog", "cat", "bird"]


def label_studio(gold: bool = True) -> list[dict[str, object]]:
    """An export with two questions, a cancelled annotation, a gold answer and a model."""

    def answers(animal: str, mood: str) -> list[dict[str, object]]:
        said = {"animal": animal, "mood": mood}
        return [
            {"from_name": q, "to_name": "text", "type": "choices", "value": {"choices": [a]}} for q, a in said.items()
        ]

    return [
        {
            "id": i,
            "data": {"name": f"picture {i}"},
            "annotations": [
                {"id": 10 * i + w, "completed_by": w, "result": answers("cat" if (i + w) % 3 else "dog", "sad")}
                for w in (1, 2, 3)
            ]
            + [{"id": 10 * i + 4, "completed_by": 4, "was_cancelled": True, "result": answers("cat", "sad")}]
            + (
                [{"id": 10 * i + 5, "completed_by": 5, "ground_truth": True, "result": answers("dog", "sad")}]
                if gold and i == 1
                else []
            ),
            "predictions": [{"model_version": "m1", "score": 0.9, "result": answers("cat", "glad")}],
        }
        for i in range(1, 7)
    ]


def test_an_export_brings_its_gold(voxpop: Run):
    Path("export.json").write_text(json.dumps(label_studio()))
    command = ("aggregate", "export.json", "--source", "label-studio", "--question", "animal", "-o", "-", *FAST)
    done = voxpop(*command)
    assert {row["task"]: row["confidence"] for row in done.table}["1"] == "1.0"
    assert labels(done.table)["1"] == "dog"
    taking, left_out = sorted(done.err.splitlines(), reverse=True)
    assert taking == "note: taking as certain 1 gold answer that came with the votes; --no-gold leaves them out"
    assert left_out == "note: left out 6 of the answers (6 cancelled)"
    without = voxpop(*command, "--no-gold")
    assert without.err == f"{left_out}\n"
    assert float({row["task"]: row["confidence"] for row in without.table}["1"]) < 1
    write_csv(Path("gold.csv"), ("task", "label"), [("2", "dog")])
    given = voxpop(*command, "--gold", "gold.csv")
    assert {r["task"] for r in given.table if r["confidence"] == "1.0"} >= {"2"}
    assert given.err == f"{left_out}\n"


def test_models_vote_when_asked(voxpop: Run):
    Path("export.json").write_text(json.dumps(label_studio(gold=False)))
    command = ("aggregate", "export.json", "--question", "animal", "--json", *FAST)
    assert json.loads(voxpop(*command).out)["workers"] == 3
    with_models = json.loads(voxpop(*command, "--predictions").out)
    assert {row["worker"] for row in with_models["worker_table"]} == {"1", "2", "3", "m1"}


def test_the_task_of_an_export_may_be_a_field(voxpop: Run):
    Path("export.json").write_text(json.dumps(label_studio(gold=False)))
    done = voxpop("aggregate", "export.json", "--question", "animal", "--task", "name", "-o", "-", *FAST)
    assert done.table[0]["task"] == "picture 1"


def test_a_question_must_be_chosen(voxpop: Run):
    Path("export.json").write_text(json.dumps(label_studio()))
    failed = voxpop("aggregate", "export.json", *FAST)
    assert failed.code == 2
    assert "'animal', 'mood'; choose one with --question" in failed.error


# -- writing ------------------------------------------------------------------------------------


def test_beliefs(voxpop: Run):
    rows = voxpop("aggregate", "votes.csv", "-o", "-", "--beliefs", *FAST).table
    columns = [f"p({c})" for c in CLASSES]
    assert list(rows[0])[-3:] == columns
    assert all(sum(float(row[c]) for c in columns) == pytest.approx(1, abs=1e-5) for row in rows)
    first = json.loads(voxpop("aggregate", "votes.csv", "--json", "--beliefs", *FAST).out)["consensus"][0]
    assert set(columns) <= set(first)


def test_tables_in_every_format(voxpop: Run):
    voxpop("aggregate", "votes.csv", "-o", "c.csv", *FAST)
    expected = pl.read_csv("c.csv", schema_overrides={"confidence": pl.Float32})
    for name, read in (("c.parquet", pl.read_parquet), ("c.jsonl", pl.read_ndjson)):
        assert voxpop("aggregate", "votes.csv", "-o", name, *FAST).code == 0
        assert read(name)["label"].to_list() == expected["label"].to_list()
    voxpop("aggregate", "votes.csv", "-o", "c.txt", "--format", "tsv", *FAST)
    assert Path("c.txt").read_text() == Path("c.csv").read_text().replace(",", "\t")


@pytest.mark.parametrize("how", [("-o", "c.json"), ("-o", "c.txt", "--format", "label-studio")])
def test_label_studio_predictions(voxpop: Run, how: tuple[str, ...]):
    done = voxpop("aggregate", "votes.csv", *how, "--from-name", "animal", "--to-name", "image", *FAST)
    assert done.code == 0
    tasks = json.loads(Path(how[1]).read_text())
    found = {t["data"]["task"]: t["predictions"][0]["result"][0] for t in tasks}
    assert found.keys() == truth().keys()
    assert {(r["from_name"], r["to_name"]) for r in found.values()} == {("animal", "image")}
    plain = labels(voxpop("aggregate", "votes.csv", "-o", "-", *FAST).table)
    assert {task: r["value"]["choices"][0] for task, r in found.items()} == plain


def test_save_for_python(voxpop: Run):
    voxpop("aggregate", "votes.csv", "--save", "found.vox", "-o", "c.csv", *FAST)
    assert dict(vp.load("found.vox").labels.iter_rows()) == labels(read_csv("c.csv"))


def test_report(voxpop: Run):
    done = voxpop("aggregate", "votes.csv", "--report", "report.html", "--truth", "truth.csv", *FAST)
    assert (done.code, done.err) == (0, "")
    page = Path("report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "spam" in page
    assert files_in(Path()) == {"votes.csv", "truth.csv", "report.html"}


def test_gzipped_votes(voxpop: Run):
    Path("votes.csv.gz").write_bytes(gzip.compress(Path("votes.csv").read_bytes()))
    plain = voxpop("aggregate", "votes.csv", "-o", "-", *FAST)
    assert voxpop("aggregate", "votes.csv.gz", "-o", "-", *FAST).out == plain.out


def test_warnings_are_plain_lines(voxpop: Run):
    write_csv(Path("one.csv"), ("task", "worker", "label"), [("a", "ann", "cat"), ("b", "bob", "cat")])
    done = voxpop("aggregate", "one.csv", "-o", "-", *FAST)
    assert done.code == 0
    assert done.err.startswith("warning: every vote says 'cat'")
    assert len(done.err.splitlines()) == 1
