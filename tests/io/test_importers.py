"""Exports of labelling tools, each in exactly the shape that the tool writes."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from voxpop import io as vio
from voxpop.errors import BadInput, BadOption, UnknownName


def votes_of(found: vio.Imported) -> set[tuple[str, ...]]:
    return set(found.votes.iter_rows())


def gold_of(found: vio.Imported) -> dict[str, str]:
    return dict(found.gold.iter_rows())


# -- Label Studio -------------------------------------------------------------------------------


def choice(label: Any, question: str = "mood") -> dict[str, Any]:
    return {"id": "r1", "from_name": question, "to_name": "text", "type": "choices", "value": {"choices": label}}


def annotation(by: Any, *result: dict[str, Any], **more: Any) -> dict[str, Any]:
    fields = {"id": 1, "completed_by": by, "result": list(result), "was_cancelled": False, "ground_truth": False}
    return fields | {"created_at": "2026-01-01T00:00:00Z", "lead_time": 3.5} | more


def task(name: int, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": name, "data": {"text": f"text {name}"}, "annotations": list(annotations), "predictions": []} | more


def test_label_studio(write: Any) -> None:
    model = {"model_version": "m1", "score": 0.9, "result": [choice(["A"])]}
    export = [
        task(
            1,
            annotation(7, choice(["A"])),
            annotation({"id": 8, "email": "eve@x.org"}, choice(["B"])),
            annotation(None, choice(["A"])),
            annotation(9, choice(["A"]), was_cancelled=True),
            annotation(9),
            predictions=[model],
        ),
        task(
            2,
            annotation(7, choice(["B"])),
            annotation(7, choice(["A"])),
            annotation(1, choice(["B"]), ground_truth=True),
        ),
    ]
    path = write("export.json", export)
    found = vio.load(path, "label-studio")
    people = {("1", "7", "A"), ("1", "eve@x.org", "B"), ("2", "7", "B"), ("2", "7", "A")}
    assert votes_of(found) == people
    assert gold_of(found) == {"2": "B"}
    assert found.dropped == {"no annotator": 1, "cancelled": 1, "no answer": 1}
    assert found.questions == ("mood",)
    assert votes_of(vio.load(path, predictions=True)) == people | {("1", "m1", "A")}
    assert votes_of(vio.load(path, task="text")) >= {("text 2", "7", "B")}

    votes = vio.read(path)  # told by its shape
    assert set(votes.to_frame().iter_rows()) == people
    assert votes.known == {"2": "B"}
    assert votes.dropped == found.dropped


@pytest.mark.parametrize(
    ("kind", "value", "label"),
    [
        ("choices", {"choices": ["A"]}, "A"),
        ("choices", {"choices": ["B", "A"]}, '["A", "B"]'),
        ("choices", {"choices": [["A", "a1"]]}, "A/a1"),
        ("taxonomy", {"taxonomy": [["One"], ["Three", "Sub"]]}, '["One", "Three/Sub"]'),
        ("taxonomy", {"taxonomy": [["One"]]}, "One"),
        ("number", {"number": 2}, "2"),
        ("pairwise", {"selected": "left"}, "left"),
        ("rating", {"rating": 4}, "4"),
        ("textarea", {"text": ["some words"]}, "some words"),
    ],
)
def test_label_studio_values(write: Any, kind: str, value: Any, label: str) -> None:
    item = {"id": "r", "from_name": "q", "to_name": "text", "type": kind, "value": value}
    found = vio.load(write("export.json", [task(1, annotation(7, item))]))
    assert votes_of(found) == {("1", "7", label)}
    minimal = write("min.json", [{"text": "x", "id": 1, "q": [value], "annotator": 7, "annotation_id": 3}])
    assert votes_of(vio.load(minimal)) == {("1", "7", label)}


def test_label_studio_regions_are_no_answers(write: Any) -> None:
    span = {"from_name": "ner", "type": "labels", "value": {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}}
    box = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "y": 2, "rectanglelabels": ["Car"]}}
    found = vio.load(write("export.json", [task(1, annotation(7, choice(["A"]), span, box))]))
    assert votes_of(found) == {("1", "7", "A")}
    assert found.questions == ("mood",)


def test_label_studio_two_questions(write: Any) -> None:
    path = write("export.json", [task(1, annotation(7, choice(["A"], "mood"), choice(["x"], "topic")))])
    with pytest.raises(BadInput, match="2 questions: 'mood', 'topic'; choose one"):
        vio.read(path)
    with pytest.raises(UnknownName, match="did you mean 'topic'"):
        vio.read(path, question="topics")
    assert votes_of(vio.load(path, question="topic")) == {("1", "7", "x")}
    assert vio.load(path, question="topic").questions == ("mood", "topic")


def test_label_studio_old_completions(write: Any) -> None:
    old = {"id": 1, "data": {}, "completions": [annotation(7, choice(["A"]))]}
    assert votes_of(vio.load(write("export.json", [old]))) == {("1", "7", "A")}


FLAT = [
    {"text": "a, b", "id": 5, "mood": "Good", "tags": '{"choices": ["y", "x"]}', "annotator": 1, "annotation_id": 11},
    {"text": "c", "id": 6, "mood": "Bad", "tags": "x", "annotator": 2, "annotation_id": 12},
]
META = {"created_at": "2026-01-01", "updated_at": "2026-01-02", "lead_time": 1.5}


@pytest.mark.parametrize("name", ["export.csv", "export.tsv", "export.json"])
def test_label_studio_flat(write: Any, name: str) -> None:
    rows = [row | META for row in FLAT]
    path = write(name, rows)
    if not name.endswith("json"):
        vio.write_frame(pl.DataFrame(rows), path)
    assert votes_of(vio.load(path, question="mood")) == {("5", "1", "Good"), ("6", "2", "Bad")}
    assert votes_of(vio.load(path, "label-studio", "tags")) == {("5", "1", '["x", "y"]'), ("6", "2", "x")}
    with pytest.raises(BadInput, match="2 questions: 'mood', 'tags'"):
        vio.load(path)


def test_label_studio_flat_with_one_question_between_id_and_annotator(write: Any) -> None:
    text = "text,source,id,mood,annotator,annotation_id\nhi,web,1,Good,7,1\nho,web,1,,8,2\n"
    found = vio.load(write("export.csv", text))
    assert votes_of(found) == {("1", "7", "Good")}
    assert found.dropped == {"no answer": 1}


# -- Argilla ------------------------------------------------------------------------------------

NESTED = {
    "id": "r1",
    "fields": {"text": "hello"},
    "metadata": {"doc": "d1"},
    "suggestions": {"mood": {"value": "good", "score": 0.8, "agent": "gpt"}},
    "responses": {"mood": [{"value": "good", "user_id": "u-1"}, {"value": "bad", "user_id": "None"}]},
    "status": "completed",
}


def test_argilla_nested(write: Any) -> None:
    path = write("records.json", [NESTED])
    found = vio.load(path)
    assert votes_of(found) == {("r1", "u-1", "good")}
    assert found.dropped == {"no annotator": 1}
    assert votes_of(vio.load(path, predictions=True)) == {("r1", "u-1", "good"), ("r1", "gpt", "good")}
    assert votes_of(vio.load(path, task="doc")) == {("d1", "u-1", "good")}
    assert votes_of(vio.load(path, task="text")) == {("hello", "u-1", "good")}


FLAT_ARGILLA = {
    "id": "r1",
    "text": "hello",
    "mood.responses": ["good", "bad", "bad"],
    "mood.responses.users": ["u-1", "u-2", "u-3"],
    "mood.responses.status": ["submitted", "draft", "discarded"],
    "mood.suggestion": "good",
    "mood.suggestion.agent": None,
    "mood.suggestion.score": 0.5,
}


@pytest.mark.parametrize("shape", ["records", "lines", "columns", "parquet"])
def test_argilla_flat(write: Any, shape: str) -> None:
    records: Any = [FLAT_ARGILLA, FLAT_ARGILLA | {"id": "r2", "mood.responses": None, "mood.responses.users": None}]
    if shape == "columns":
        path = write("records.json", {key: [record[key] for record in records] for key in FLAT_ARGILLA})
    elif shape == "parquet":
        path = write("records.parquet", "")
        vio.write_frame(pl.DataFrame(records, schema_overrides={"mood.suggestion.agent": pl.String}), path)
    else:
        path = write("records.json", records if shape == "records" else tuple(records))
    found = vio.load(path, "argilla", predictions=True)
    assert votes_of(found) == {("r1", "u-1", "good"), ("r1", "suggestions", "good"), ("r2", "suggestions", "good")}
    assert found.dropped == {"draft": 2, "discarded": 2, "no annotator": 1}


def test_argilla_questions(write: Any) -> None:
    two = NESTED | {"responses": {q: [{"value": ["b", "a"], "user_id": "u"}] for q in ("mood", "topic")}}
    path = write("records.json", [two])
    with pytest.raises(BadInput, match="'mood', 'topic'"):
        vio.read(path)
    assert votes_of(vio.load(path, question="topic")) == {("r1", "u", '["a", "b"]')}


# -- Prodigy ------------------------------------------------------------------------------------


def line(who: str | None, answer: str, **more: Any) -> dict[str, Any]:
    names = {} if who is None else {"_annotator_id": who}
    return {"text": "hi", "_input_hash": 10, "_task_hash": -20, "_session_id": None, "answer": answer} | names | more


def test_prodigy_choice(write: Any) -> None:
    options = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    found = vio.load(
        write(
            "out.jsonl",
            (
                line("ann", "accept", options=options, accept=["a"]),
                line("bob", "accept", options=options, accept=["b", "a"]),
                line("eve", "ignore", options=options, accept=["a"]),
                line("dan", "reject", options=options, accept=["a"]),
                line("kim", "accept", options=options, accept=[]),
                line(None, "accept", options=options, accept=["b"], _session_id="set-may"),
                line(None, "accept", options=options, accept=["b"]),
            ),
        )
    )
    assert votes_of(found) == {("10", "ann", "a"), ("10", "bob", '["a", "b"]'), ("10", "set-may", "b")}
    assert found.dropped == {"ignored": 1, "rejected": 1, "no answer": 1, "no annotator": 1}


def test_prodigy_binary(write: Any) -> None:
    spans = [{"start": 0, "end": 2, "label": "X"}]
    path = write(
        "out.jsonl",
        (
            line("ann", "accept", label="SPORT"),
            line("bob", "reject", label="SPORT"),
            line("eve", "accept", spans=spans),
        ),
    )
    votes = vio.read(path)
    assert set(votes.to_frame().iter_rows()) == {("-20", "ann", "accept"), ("-20", "bob", "reject")}
    assert votes.dropped == {"marked spans": 1}


# -- Mechanical Turk ----------------------------------------------------------------------------

BATCH = """HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,WorkTimeInSeconds,Input.image,Answer.mood.label,\
Answer.seen.cat,Answer.seen.dog
H1,A1,W1,Approved,now,3,i1.png,Happy,true,false
H1,A2,W2,Submitted,now,4,i1.png,Sad,true,true
H2,A3,W1,Rejected,now,1,i2.png,Sad,false,false
H2,A4,W3,Approved,now,1,i2.png,Happy,false,false
"""


def test_mturk_batch(write: Any) -> None:
    path = write("batch.csv", BATCH)
    mood = vio.load(path, "mturk", "mood")
    assert votes_of(mood) == {("H1", "W1", "Happy"), ("H1", "W2", "Sad"), ("H2", "W3", "Happy")}
    assert mood.dropped == {"rejected": 1}
    seen = vio.load(path, question="seen")
    assert votes_of(seen) == {("H1", "W1", "cat"), ("H1", "W2", '["cat", "dog"]')}
    assert seen.dropped == {"rejected": 1, "no answer": 1}
    assert votes_of(vio.load(path, question="mood", task="image")) >= {("i1.png", "W1", "Happy")}
    assert votes_of(vio.load(path, question="mood", task="Input.image")) >= {("i1.png", "W1", "Happy")}
    with pytest.raises(BadInput, match="'mood', 'seen'"):
        vio.read(path)
    with pytest.raises(UnknownName, match=r"did you mean 'Input\.image'"):
        vio.read(path, question="mood", task="Input.imag")


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_mturk_of_a_paper(write: Any, end: str) -> None:
    rows = [
        "WorkerID,Input.song,Input.true_label,Answer.pred_label",
        "w1,s1,rock,rock",
        "w2,s1,rock,pop",
        "w1,s2,pop,pop",
    ]
    votes = vio.read(write("answers.csv", end.join(rows)))
    assert set(votes.to_frame().iter_rows()) == {("s1", "w1", "rock"), ("s1", "w2", "pop"), ("s2", "w1", "pop")}
    assert votes.known == {"s1": "rock", "s2": "pop"}


# -- Toloka -------------------------------------------------------------------------------------

TOLOKA = (
    "INPUT:image\tINPUT:side\tOUTPUT:result\tGOLDEN:result\tHINT:text\tASSIGNMENT:link\tASSIGNMENT:assignment_id\t"
    "ASSIGNMENT:worker_id\tASSIGNMENT:status\tASSIGNMENT:started\n"
    'a.png\tleft\tcat\tcat\t"a ""hint""\nover lines"\tl\t1\tw1\tAPPROVED\tnow\n'
    "b.png\tleft\tdog\t\t\tl\t1\tw1\tAPPROVED\tnow\n"
    "\n"
    "a.png\tleft\tdog\tcat\t\tl\t2\tw2\tSUBMITTED\tnow\n"
    "b.png\tleft\tcat\t\t\tl\t3\tw3\tREJECTED\tnow\n"
    "b.png\tleft\t\t\t\tl\t4\tw4\tAPPROVED\tnow\n"
    "b.png\tleft\tcat\t\t\tl\t5\t\tAPPROVED\tnow\n"
)


def test_toloka(write: Any) -> None:
    path = write("assignments.tsv", TOLOKA)
    found = vio.load(path, task="image")
    assert votes_of(found) == {("a.png", "w1", "cat"), ("b.png", "w1", "dog"), ("a.png", "w2", "dog")}
    assert gold_of(found) == {"a.png": "cat"}
    assert found.dropped == {"rejected": 1, "no answer": 1, "no annotator": 1}
    votes = vio.read(path)
    assert votes.tasks.names.to_list() == ['["a.png", "left"]', '["b.png", "left"]']
    assert votes.known == {'["a.png", "left"]': "cat"}
    assert votes.dropped == found.dropped


# -- the smaller ones ---------------------------------------------------------------------------

ANSWERS = {"t1": {"w1": 0, "w2": 1, "w3": 1}, "t2": {"w1": 1}}
PEERANNOT = {("t1", "w1", "0"), ("t1", "w2", "1"), ("t1", "w3", "1"), ("t2", "w1", "1")}
INVERTED = {"w1": {"t1": 0, "t2": 1}, "w2": {"t1": 1}, "w3": {"t1": 1}}


def test_peerannot(write: Any) -> None:
    path = write("answers.json", ANSWERS)
    assert votes_of(vio.load(path)) == PEERANNOT
    write("metadata.json", {"name": "x", "n_classes": 2, "n_workers": 3})
    assert votes_of(vio.load(path, "peerannot")) == PEERANNOT
    assert votes_of(vio.load(write("answers.json", INVERTED))) == PEERANNOT
    write("metadata.json", "{broken")
    with pytest.raises(BadInput, match=r"metadata\.json is not JSON"):
        vio.load(path)


def test_peerannot_of_something_else(write: Any) -> None:
    with pytest.raises(BadInput, match=r"not an answers\.json"):
        vio.load(write("answers.json", [{"t": {"w": [1]}}]), "peerannot")
    with pytest.raises(BadInput, match=r"not an answers\.json"):
        vio.load(write("answers.csv", "a,b\n1,2\n"), "peerannot")


def test_judges(write: Any) -> None:
    path = write(
        "judges.jsonl",
        (
            {"item": "q1", "judge": "gpt", "label": "A", "why": {"text": "long"}},
            {"item": "q1", "judge": "claude", "label": "B", "why": None},
            {"item": "q2", "judge": "gpt", "label": None},
        ),
    )
    for source in ("judges", None):
        votes = vio.read(path, source)
        assert set(votes.to_frame().iter_rows()) == {("q1", "gpt", "A"), ("q1", "claude", "B")}
        assert votes.dropped == {"no answer": 1}


def test_crowd_kit(write: Any) -> None:
    found = vio.load(write("crowd.csv", "task,performer,label\nt1,w1,a\nt1,w2,\nt2,w1,nan\n"))
    assert votes_of(found) == {("t1", "w1", "a")}
    assert found.dropped == {"no answer": 2}
    assert votes_of(vio.load(write("crowd.csv", "task,worker,label\nt1,w1,a\n"), "crowd-kit")) == {("t1", "w1", "a")}


def test_crowd_kit_pairs(write: Any) -> None:
    path = write("pairs.csv", "worker,left,right,label\nw1,a,b,a\nw2,a,b,b\n")
    assert votes_of(vio.load(path)) == {("a | b", "w1", "left"), ("a | b", "w2", "right")}
    with pytest.raises(BadInput, match="row 1: label 'c' is neither 'a' nor 'b'"):
        vio.load(write("pairs.csv", "worker,left,right,label\nw1,a,b,c\n"))


MATRIX = {("x", "ann", "1"), ("x", "bob", "0"), ("y", "bob", "2")}


@pytest.mark.parametrize("first", ["task", "Item", "id", ""])
@pytest.mark.parametrize("gap", ["", "NaN", "-1"])
def test_wide(write: Any, first: str, gap: str) -> None:
    text = f"{first},ann,bob\nx,1,0\ny,{gap},2\n"
    assert votes_of(vio.load(write("wide.csv", text), "wide")) == MATRIX


def test_wide_with_the_points_of_pandas(write: Any) -> None:
    assert votes_of(vio.load(write("wide.csv", "task,ann,bob\nx,1.0,0.0\ny,,2.0\n"), "wide")) == MATRIX


def test_wide_without_names(write: Any) -> None:
    expected = {("0", "0", "1"), ("0", "1", "0"), ("1", "1", "2"), ("1", "2", "2")}
    assert votes_of(vio.load(write("answers.txt", "1 0 -1\n-1  2 2 \n"), "wide")) == expected
    assert votes_of(vio.load(write("wide.csv", "1,0,-1\n-1,2,2\n"), "wide")) == expected
    assert votes_of(vio.load(write("wide.csv", "0,1,2\n1,0,-1\n-1,2,2\n"), "wide")) == expected
    named = {(task, f"w{worker}", label) for task, worker, label in expected}
    assert votes_of(vio.load(write("answers.txt", "w0 w1 w2\n1 0 -1\n-1 2 2\n"), "wide")) == named


def test_wide_tasks_without_votes_are_counted(write: Any) -> None:
    votes = vio.load(write("wide.csv", "ann,bob\na,\n,\n,b\n"), "wide")
    assert votes_of(votes) == {("0", "ann", "a"), ("2", "bob", "b")}


def test_wide_badly(write: Any) -> None:
    with pytest.raises(BadInput, match="line 2: 2 cells where the first has 3"):
        vio.load(write("answers.txt", "1 0 -1\n0 1\n"), "wide")
    with pytest.raises(BadInput, match="holds no votes"):
        vio.load(write("wide.csv", "task,ann\nx,\ny,-1\n"), "wide")
    with pytest.raises(BadInput, match="put the names of the tasks first"):
        vio.load(write("wide.csv", "ann,task\n1,x\n"), "wide")
    with pytest.raises(BadInput, match="1 votes stand in rows without a task"):
        vio.load(write("wide.csv", "task,ann\n,1\n"), "wide")


# -- all of them --------------------------------------------------------------------------------


@pytest.mark.parametrize("source", sorted(vio.IMPORTERS))
@pytest.mark.parametrize(
    "content",
    ["{}", "[]", '[{"a": 1}]', '{"a": {"b": {}}}', '[{"annotations": 3, "responses": 2, "fields": 1}]', "a,b\n1,2\n"],
)
def test_what_a_tool_never_wrote_is_refused(write: Any, source: str, content: str) -> None:
    name = "x.csv" if content[0] == "a" else "x.json"
    path = write(name, content)
    if source == "wide" and content.startswith(("a", "[{")):  # that is a matrix
        assert len(vio.load(path, source).votes)
    else:
        with pytest.raises(BadInput, match=name):
            vio.load(path, source)


def test_gold_answers_that_contradict_each_other_are_left_out(write: Any) -> None:
    rows = ["WorkerID,Input.song,Input.true_label,Answer.x", "w1,s1,rock,rock", "w2,s1,pop,pop", "w1,s2,jazz,pop"]
    votes = vio.read(write("answers.csv", "\n".join(rows)))
    assert votes.known == {"s2": "jazz"}
    assert votes.classes.names.to_list() == ["jazz", "pop", "rock"]  # also what only a gold answer says
    assert votes.dropped == {"contradictory gold": 1}


def test_gold_answers_of_tasks_without_votes_are_no_gold(write: Any) -> None:
    export = [task(1, annotation(7, choice(["A"]))), task(2, annotation(7, choice(["Z"]), ground_truth=True))]
    votes = vio.read(write("export.json", export))
    assert votes.known == {}
    assert votes.classes.names.to_list() == ["A"]


def test_ignored_labels_are_no_classes(write: Any) -> None:
    rows = ["WorkerID,Input.song,Input.true_label,Answer.x", "w1,s1,rock,rock", "w2,s1,rock,?"]
    votes = vio.read(write("answers.csv", "\n".join(rows)), ignore=["?"])
    assert votes.classes.names.to_list() == ["rock"]
    assert votes.dropped == {"ignored": 1}


@pytest.mark.parametrize("source", ["peerannot", "wide", "judges", "crowd-kit"])
def test_options_that_would_do_nothing_are_refused(write: Any, source: str) -> None:
    path = (
        write("x.csv", "task,worker,item,judge,label\n1,2,3,4,5\n")
        if source != "peerannot"
        else write("x.json", ANSWERS)
    )
    if source in ("peerannot", "wide"):
        with pytest.raises(BadOption, match="task="):
            vio.load(path, source, task="t")
    with pytest.raises((BadOption, UnknownName)):
        vio.load(path, source, question="mood")


def test_a_source_that_shows_is_found_without_its_name(write: Any) -> None:
    assert vio.read(write("answers.json", ANSWERS)).V == 4
    assert vio.read(write("batch.csv", BATCH), question="mood").V == 3
    assert vio.read(write("a.tsv", TOLOKA)).V == 3
    assert vio.read(write("r.json", [NESTED])).V == 1
