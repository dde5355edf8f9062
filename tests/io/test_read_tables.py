"""Tables with one vote a row, in every format: the text that goes in is the text that comes out."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from voxpop import io as vio
from voxpop.errors import BadInput, BadOption, UnknownName
from voxpop.io.delimited import Delimited
from voxpop.io.source import Source
from voxpop.io.table import in_full

ROWS = [("007", "w1", "yes"), ("007", "w 2", 'say "no"'), ("7", "w1", "a,b"), ("é\n2", "ü", "NA")]
HEADER = "task,worker,label\n"
TWO = [("t1", "w1", "a"), ("t2", "w2", "b")]


def frame_of(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")


def rows_of(votes: Any) -> set[tuple[Any, ...]]:
    return set(votes.to_frame().iter_rows())


@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.parquet", "v.jsonl", "v.ndjson"])
def test_text_is_kept_exactly(tmp_path: Path, name: str) -> None:
    vio.write_frame(frame_of(ROWS), tmp_path / name)
    votes = vio.read(tmp_path / name)
    assert rows_of(votes) == set(ROWS)
    assert votes.tasks.names.to_list() == sorted({r[0] for r in ROWS})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("quoted", [True, False])
def test_line_ends_and_byte_order_mark(write: Any, end: str, bom: bytes, last: bool, quoted: bool) -> None:
    lines = ["task,worker,label", '"t1",w1,"x"' if quoted else "t1,w1,x", "", "t2,w2,y"]
    path = write("v.csv", bom + (end.join(lines) + end * last).encode())
    assert rows_of(vio.read(path)) == {("t1", "w1", "x"), ("t2", "w2", "y")}


def test_line_ends_within_quotes_are_text(write: Any) -> None:
    path = write("v.csv", 'task,worker,label\r\nt1,w1,"a\r\nb"\r\nt2,w2,"c\rd"\r\n')
    assert rows_of(vio.read(path)) == {("t1", "w1", "a\r\nb"), ("t2", "w2", "c\rd")}


def test_quote_within_a_field_is_text(write: Any) -> None:
    path = write("v.csv", HEADER + 't1,w1,5" pipe\nt2,"w2",b\n')
    assert rows_of(vio.read(path)) == {("t1", "w1", '5" pipe'), ("t2", "w2", "b")}


@pytest.mark.parametrize(("name", "separator"), [("v.csv", ";"), ("v.tsv", "\t"), ("v.txt", "\t"), ("v.txt", ",")])
def test_separators(write: Any, name: str, separator: str) -> None:
    text = "\n".join(separator.join(row) for row in [("task", "worker", "label"), *TWO])
    assert rows_of(vio.read(write(name, text))) == set(TWO)


def test_other_columns_and_their_order_do_not_matter(write: Any) -> None:
    text = 'note,l,w,t,\n"a, ""b""\nc",a,w1,t1,\n,b,w2,t2,\n'
    votes = vio.read(write("v.csv", text), task="t", worker="w", label="l")
    assert rows_of(votes) == set(TWO)


def test_gzip(write: Any) -> None:
    path = write("v.csv.gz", gzip.compress(b"task,worker,label\nt1,w1,a\nt2,w2,b\n"))
    assert rows_of(vio.read(path)) == set(TWO)


@pytest.mark.parametrize(
    "text",
    [
        "task,worker,label\nt1,w1,a\nt2,w2,b\n",
        "task\tworker\tlabel\nt1\tw1\ta\nt2\tw2\tb\n",
        '{"task":"t1","worker":"w1","label":"a"}\n{"task":"t2","worker":"w2","label":"b"}\n',
        '[{"task":"t1","worker":"w1","label":"a"},{"task":"t2","worker":"w2","label":"b"}]',
    ],
)
def test_standard_input_is_sniffed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert rows_of(vio.read("-")) == set(TWO)


def test_parquet_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    frame_of(TWO).write_parquet(buffer)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(buffer.getvalue())))
    assert rows_of(vio.read("-")) == set(TWO)


def test_parquet_types_become_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": [7, 10], "worker": ["a", "b"], "label": [1.0, 2.5]})
    frame = frame.with_columns(pl.col("worker").cast(pl.Categorical))
    frame.write_parquet(tmp_path / "v.parquet")
    votes = vio.read(tmp_path / "v.parquet")
    assert rows_of(votes) == {("7", "a", "1"), ("10", "b", "2.5")}
    assert votes.tasks.names.to_list() == ["7", "10"]  # numbers sort numerically


def test_json_values_become_text(write: Any) -> None:
    votes = vio.read(
        write(
            "v.json",
            [
                {"task": 1, "worker": "w", "label": True},
                {"task": 2.0, "worker": "w", "label": ["b", "a"]},
                {"task": "3", "worker": "w", "label": 1.5},
            ],
        )
    )
    assert rows_of(votes) == {("1", "w", "true"), ("2", "w", '["a", "b"]'), ("3", "w", "1.5")}


@pytest.mark.parametrize(
    "value",
    [
        {"task": ["t1", "t2"], "worker": ["w1", "w2"], "label": ["a", "b"]},
        {"task": {"0": "t1", "1": "t2"}, "worker": {"0": "w1", "1": "w2"}, "label": {"0": "a", "1": "b"}},
    ],
)
def test_json_columns(write: Any, value: Any) -> None:
    assert rows_of(vio.read(write("v.json", value))) == set(TWO)


def test_json_lines_under_the_name_of_json_and_the_reverse(write: Any) -> None:
    records = [dict(zip(("task", "worker", "label"), row, strict=True)) for row in TWO]
    assert rows_of(vio.read(write("v.json", tuple(records)))) == set(TWO)
    assert rows_of(vio.read(write("v.jsonl", records))) == set(TWO)


def test_old_crowd_kit_name_of_a_worker(write: Any) -> None:
    assert rows_of(vio.read(write("v.csv", "task,performer,label\nt1,w1,a\nt2,w2,b\n"))) == set(TWO)


def test_dataframes(tmp_path: Path) -> None:
    frame = frame_of(TWO)
    for table in (frame, frame.lazy(), pd.DataFrame(TWO, columns=["task", "worker", "label"])):
        assert rows_of(vio.read(table)) == set(TWO)
    assert vio.read(pl.DataFrame({"task": [3], "worker": [1], "label": [0]})).tasks.names.to_list() == [3]


def test_empty_cells_and_nan_labels_are_missing(write: Any) -> None:
    path = write("v.csv", HEADER + 't1,w1,a\nt2,,b\nt3,w3,NaN\nt4,w4,nan\nt5,w5,""\nt6,nan,NA\n')
    votes = vio.read(path, missing="drop")
    assert rows_of(votes) == {("t1", "w1", "a"), ("t6", "nan", "NA")}  # a worker may be called nan
    assert votes.dropped == {"missing": 4}


def test_options_reach_the_votes(write: Any) -> None:
    path = write("v.csv", HEADER + "t1,w1,a\nt1,w1,a\nt1,w1,b\nt2,w2,dunno\n")
    votes = vio.read(path, tasks=["t0", "t1", "t2"], classes=["b", "a"], ignore=["dunno"], repeats="drop")
    assert votes.tasks.names.to_list() == ["t0", "t1", "t2"]
    assert votes.classes.names.to_list() == ["b", "a"]
    assert rows_of(votes) == {("t1", "w1", "a")}
    assert votes.dropped == {"ignored": 1, "repeated": 2}


def test_gold_from_a_file_a_mapping_and_a_frame(write: Any) -> None:
    path = write("v.csv", HEADER + "t1,w1,a\nt2,w2,b\n")
    gold = write("g.csv", "task,label\nt1,b\n")
    for given in (gold, str(gold), {"t1": "b"}, pl.DataFrame({"task": ["t1"], "label": ["b"]})):
        assert vio.read(path, gold=given).known == {"t1": "b"}
    with pytest.raises(BadInput, match="t9"):
        vio.read(path, gold={"t9": "a"})


def test_rows_on_both_sides_of_a_block(write: Any) -> None:
    rows = [(f"t{i}", f"w{i % 7}", f'say "{i % 3}"\nor not' if i % 2 else "é" * (i % 5 + 1)) for i in range(200)]
    path = write("v.csv", "")
    vio.write_frame(frame_of(rows), path)
    for size in (1, 7, 64, 1000):
        assert in_full(Delimited(Source.of(path), block=size)).rows() == rows


def test_unknown_names_and_options_out_of_place(write: Any) -> None:
    path = write("v.csv", HEADER + "t1,w1,a\n")
    with pytest.raises(UnknownName, match="did you mean 'toloka'"):
        vio.read(path, source="tolkoa")
    with pytest.raises(UnknownName, match="missing"):
        vio.read(path, missing="ignore")  # type: ignore[arg-type]
    for options in ({"question": "q"}, {"predictions": True}):
        with pytest.raises(BadOption):
            vio.read(path, **options)
        with pytest.raises(BadOption):
            vio.read(frame_of(TWO), **options)
    with pytest.raises(BadOption, match="worker="):
        vio.read(path, "crowd-kit", worker="who")


@pytest.mark.parametrize(
    ("folder", "size"),
    [
        ("bluebird", (4212, 39)),
        ("rte", (8000, 164)),
        ("face", (5242, 27)),
        ("trec", (88385, 762)),
        ("labelme", (2547, 59)),
        ("emotion", (3500, 38)),
    ],
)
def test_real_data(data: Path, folder: str, size: tuple[int, int]) -> None:
    read = vio.read(data / folder / "answers.csv")
    assert size == (read.V, read.M)
    truth = vio.read_labels(data / folder / "truth.csv")
    assert truth["task"].is_in(read.tasks.names.to_list()).mean() > 0.9  # type: ignore[operator]
    written = pl.read_csv(data / folder / "answers.csv", infer_schema=False)
    assert read.to_frame().sort(pl.all()).equals(written.select("task", "worker", "label").sort(pl.all()))


def test_a_stray_quote_does_not_stop_the_blocks(write: Any) -> None:
    rows = [(f"t{i}", f"w{i % 7}", '5" pipe' if i == 3 else "a\nb" if i % 50 == 4 else "plain") for i in range(300)]
    lines = [",".join(f'"{cell}"' if "\n" in cell else cell for cell in row) for row in rows]
    path = write("v.csv", "\n".join(["task,worker,label", *lines]) + "\n")
    for size in (1, 50, 700, 100_000):
        table = Delimited(Source.of(path), block=size)
        blocks = list(table.blocks(table.columns))
        assert [row for block in blocks for row in block.frame.iter_rows()] == rows
        places = [place for block in blocks for place in block.places(range(len(block.frame)))]
        assert places[3:6] == ["row 4 (line 5)", "row 5 (line 6)", "row 6 (line 8)"]
