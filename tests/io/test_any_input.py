"""Random tables come back as they were; random bytes give votes or one plain error, and nothing else."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from voxpop import io as vio
from voxpop.errors import VoxError
from voxpop.io.delimited import Delimited
from voxpop.io.records import records
from voxpop.io.source import Source
from voxpop.io.table import in_full
from voxpop.io.tidy import tidied
from voxpop.votes import Votes

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
cells = st.text(letters, min_size=1, max_size=6) | st.text("a\"',\t;\r\n 0é-", min_size=1, max_size=6)
labels = cells.filter(lambda text: text not in ("NaN", "nan"))
tables = st.lists(st.tuples(cells, cells, labels), min_size=1, max_size=12)
soup = st.text('ab0,;\t"\n\r\\{}[]:é ', max_size=60).map(str.encode) | st.binary(max_size=60)


def written(name: str, content: bytes, use: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return use(path)


@quick
@given(tables, st.sampled_from(["v.csv", "v.tsv", "v.parquet", "v.jsonl"]))
def test_round_trip(rows: list[tuple[str, str, str]], name: str) -> None:
    frame = pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")

    def there_and_back(path: Path) -> Votes:
        vio.write_frame(frame, path)
        return vio.read(path)

    votes = written(name, b"", there_and_back)
    assert sorted(votes.to_frame().iter_rows()) == sorted(rows)


@quick
@given(
    tables, st.sampled_from([",", "\t", ";"]), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(1, 90)
)
def test_the_files_of_another_writer(
    rows: list[tuple[str, str, str]], separator: str, end: str, quote_all: bool, block: int
) -> None:
    assume(quote_all or not any("\r" in cell or "\n" in cell for row in rows for cell in row))  # csv may leave it bare
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL if quote_all else 0)
    writer.writerows([("task", "worker", "label"), *rows])
    frame = written("v.csv", text.getvalue().encode(), lambda p: in_full(Delimited(Source.of(p), block)))
    assert frame.rows() == rows


@quick
@given(st.text('ab,"\n\ré', max_size=40), st.integers(1, 3))
def test_what_is_tidy_reads_the_same_row_by_row(text: str, fields: int) -> None:
    slow = list(records(text, ","))
    found = tidied(text.encode(), b",", fields)
    if found is None:
        return
    assert [len(record.fields) for record in slow] == [fields] * found[1]
    assert not any(record.wrong for record in slow)
    again = list(records(found[0].decode(), ","))
    assert [record.fields for record in again] == [record.fields for record in slow]


@quick
@given(st.lists(st.lists(st.text('ab",\n\r', max_size=3), min_size=2, max_size=2), max_size=5))
def test_plain_tables_are_tidy(rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    found = tidied(text.getvalue().encode(), b",", 2)
    assert found is not None
    assert found[1] == len(rows)


def outcome(name: str, content: bytes, use: Callable[[Path], Any]) -> Any:
    """What a reader makes of the bytes: a result, or one of our errors."""
    try:
        return written(name, content, use)
    except VoxError as error:
        return error


def is_plain(error: VoxError, name: str = "") -> bool:
    return bool(error.problems) and "\n" not in str(error) and name in str(error)


def is_full(found: vio.Imported) -> bool:
    return len(found.votes) > 0 and found.votes.null_count().sum_horizontal().item() == 0


NAMES = ["v.csv", "v.tsv", "v.json", "v.jsonl", "v.parquet", "v.csv.gz", "v"]
STARTS = [b"", b"task,worker,label\n", b'[{"task":"a","worker":"b",', b"PAR1"]


@quick
@given(soup, st.sampled_from(NAMES), st.sampled_from(STARTS))
def test_any_bytes(content: bytes, name: str, start: bytes) -> None:
    votes = outcome(name, start + content, vio.read)
    if isinstance(votes, Votes):
        assert votes.V > 0
        assert votes.to_frame().null_count().sum_horizontal().item() == 0
    else:
        assert is_plain(votes, name)


@quick
@given(soup)
def test_any_bytes_as_labels(content: bytes) -> None:
    labels = outcome("v.csv", b"task,label\n" + content, vio.read_labels)
    if isinstance(labels, pl.DataFrame):
        assert labels["task"].is_unique().all()
    else:
        assert is_plain(labels, "v.csv")


KEYS = """
id data annotations completions predictions result value choices taxonomy text number from_name completed_by email
was_cancelled ground_truth model_version annotator annotation_id fields responses suggestions user_id status agent
q.responses q.responses.users q.responses.status q.suggestion _input_hash _task_hash _annotator_id answer options
accept spans label item judge task worker performer left right
"""
COLUMNS = """
HITId WorkerId AssignmentStatus Input.a Input.true_label Answer.x.a Answer.x.b Answer.y INPUT:a OUTPUT:x GOLDEN:x
ASSIGNMENT:worker_id ASSIGNMENT:status id annotator annotation_id mood
"""
words = st.text("aé0-", max_size=3)
keys = st.sampled_from(KEYS.split())
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=15,
)
exports = st.lists(st.dictionaries(keys, anything, max_size=8), min_size=1, max_size=3) | anything


@settings(quick, max_examples=25)
@given(exports, st.booleans())
@pytest.mark.parametrize("source", [None, *vio.IMPORTERS])
def test_any_json(source: str | None, value: Any, predictions: bool) -> None:
    load = partial(vio.load, source=source, predictions=predictions)
    found = outcome("v.json", json.dumps(value).encode(), load)
    assert is_full(found) if isinstance(found, vio.Imported) else is_plain(found)


@quick
@given(st.data(), st.sampled_from([None, *vio.IMPORTERS]))
def test_any_spreadsheet(data: st.DataObject, source: str | None) -> None:
    header = data.draw(st.lists(st.sampled_from(COLUMNS.split()), min_size=1, max_size=8, unique=True))
    cell = st.sampled_from(["", "true", "false", "a", "b", "APPROVED", "Rejected", "nan", '{"choices": ["a"]}', "[1"])
    rows = data.draw(st.lists(st.lists(cell, min_size=len(header), max_size=len(header)), max_size=4))
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    found = outcome("v.csv", text.getvalue().encode(), partial(vio.load, source=source))
    assert is_full(found) if isinstance(found, vio.Imported) else is_plain(found)
