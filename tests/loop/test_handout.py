"""Writing what is asked."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest

from voxpop.errors import UnknownName
from voxpop.loop.handout import writer

ASKED = pl.DataFrame(
    {
        "task": ["b", "a", "b"],
        "worker": ["ann", "ann", "eve"],
        "score": [3.0, 2.0, 1.0],
        "right": [0.9] * 3,
        "cost": [1.0] * 3,
    }
)


def written(path: str, format: str | None = None, frame: pl.DataFrame = ASKED) -> bytes:
    file = io.BytesIO()
    writer(path, format)(frame, file)
    return file.getvalue()


def test_a_table_holds_what_was_promised():
    assert written("next.csv").decode() == "task,worker,score\nb,ann,3.0\na,ann,2.0\nb,eve,1.0\n"
    assert written("next.csv", frame=ASKED.clear()).decode() == "task,worker,score\n"
    assert pl.read_parquet(io.BytesIO(written("next.parquet"))).columns == ["task", "worker", "score"]
    assert json.loads(written("-", "jsonl").splitlines()[0]) == {"task": "b", "worker": "ann", "score": 3.0}


def test_label_studio_gets_a_task_for_each_pair():
    tasks = json.loads(written("next.json", "label-studio"))
    assert [(t["data"]["task"], t["data"]["assignee"]) for t in tasks] == [("b", "ann"), ("a", "ann"), ("b", "eve")]
    assert tasks[0]["meta"] == {"score": 3.0}
    assert json.loads(written("next.json", "label-studio", ASKED.clear())) == []


def test_argilla_gets_a_record_for_each_task():
    records = json.loads(written("next.json", "argilla"))
    assert [(r["id"], r["fields"]["task"], r["metadata"]["assignee"]) for r in records] == [
        ("b", "b", ["ann", "eve"]),
        ("a", "a", ["ann"]),
    ]
    assert records[0]["metadata"]["score"] == 3.0


def test_another_format():
    with pytest.raises(UnknownName, match="did you mean 'label-studio'"):
        writer("next.json", "label-studi")
