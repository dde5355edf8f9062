"""Every way a file can be wrong: one plain line that says what, where, and what to do; never another exception."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from voxpop import io as vio
from voxpop.errors import BadInput
from voxpop.io.delimited import Delimited
from voxpop.io.problems import LISTED
from voxpop.io.source import Source

H = b"task,worker,label\n"


def parquet(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


WHOLE = parquet(task=["a", "b"] * 500, worker=["c"] * 1000, label=["d"] * 1000)

# name, content, what the first problem says, how many problems
BAD: list[tuple[str, bytes, list[str], int]] = [
    ("empty.csv", b"", ["is empty"], 1),
    ("blank.csv", b"\n\r\n\n", ["only empty lines"], 1),
    ("header.csv", H, ["header but no rows"], 1),
    ("header.csv", b"task,worker,label", ["header but no rows"], 1),
    ("header.csv", H + b"\n\n", ["header but no rows"], 1),
    ("short.csv", H + b"t1,w1,a\nt2,w2\nt3,w3,b\nt4\n", ["row 2 (line 3)", "2 fields", "header has 3", "add"], 2),
    ("long.csv", H + b"t1,w1,a\n\nt2,w2,b,c\n", ["row 2 (line 4)", "4 fields", "quote a field"], 1),
    ("open.csv", H + b't1,w1,a\nt2,w2,"b\nt3,w3,a\n', ["row 2 (line 3)", "'label'", "never closes", "close it"], 1),
    ("open.csv", b'task,"worker,label\nt,w,a\n', ["line 1 (the header)", "never closes"], 1),
    ("after.csv", H + b't1,w1,a\n"t2"x,w2,b\n', ["row 2 (line 3)", "'task'", "follows a closing quote"], 1),
    ("nul.csv", H + b"t1,w1,a\nt2,w\x002,b\n", ["row 2 (line 3)", "byte 30 is a NUL"], 1),
    ("nul.csv", b"ta\0sk,worker,label\nt,w,a\n", ["the header", "byte 2 is a NUL"], 1),
    ("latin1.csv", H + b"t1,w1,a\nt2,w2,caf\xe9\nt3,\xff,b\n", ["row 2 (line 3)", "byte 35", "UTF-8", "save"], 2),
    ("latin1.csv", b"t\xe2che,worker,label\nt,w,a\n", ["the header", "byte 1 is not UTF-8"], 1),
    ("utf16.csv", "task,worker,label\nt,w,a\n".encode("utf-16"), ["UTF-16", "save it as UTF-8"], 1),
    ("sheet.xlsx", b"PK\x03\x04rest", ["zip or Excel", "save the sheet as CSV"], 1),
    ("votes.csv.zst", b"\x28\xb5\x2f\xfdrest", ["zstd", "decompress"], 1),
    ("noise.bin", bytes(range(256)) * 20, ["byte 0 is a NUL"], 1),
    ("cut.csv.gz", gzip.compress(H + b"t,w,a\n" * 1000)[:-12], ["gzip", "breaks off"], 1),
    ("gap.csv", H + b"t1,w1,a\nt2,,b\n,,\nt4,w4,NaN\n", ["row 2 (line 3)", "'worker'", "fill it in", "drop"], 3),
    ("gap.csv", H + b't1,"w\n1",a\nt2,w2,""\n', ["row 2 (line 4)", "'label'"], 1),
    (
        "name.csv",
        b"Task,wrker,label\na,b,c\n",
        ["no column 'task'", "it has 'Task', 'wrker'", "did you mean 'Task'?"],
        2,
    ),
    ("name.csv", b"t1,w1,a\nt2,w2,b\n", ["no column 'task'", "add a header"], 3),
    ("twice.csv", b"task,worker,label,label\na,b,c,d\n", ["more than one column 'label'", "rename"], 1),
    ("cut.parquet", WHOLE[: len(WHOLE) // 2], ["not a whole Parquet file", "broken off"], 1),
    ("cut.parquet", b"PAR1", ["not a whole Parquet file"], 1),
    ("none.parquet", b"task,worker,label\n", ["not a whole Parquet file"], 1),
    ("page.parquet", WHOLE[:8] + b"\xff" * 40 + WHOLE[48:], ["not a whole Parquet file"], 1),
    ("zero.parquet", parquet(task=[], worker=[], label=[]), ["no rows"], 1),
    ("gap.parquet", parquet(task=["a", "b"], worker=["c", None], label=["d", "e"]), ["row 2", "'worker'"], 1),
    ("list.parquet", parquet(task=["a"], worker=["c"], label=[["d"]]), ["'label' holds List"], 1),
    ("name.parquet", parquet(task=["a"], worker=["c"], lable=["d"]), ["no column 'label'", "did you mean 'lable'"], 1),
    ("cut.json", b'[{"task": "t", "worker": "w", "label": "a"},\n {"task": "t2", "wo', ["line 2", "breaks off"], 1),
    ("cut.json", b'[{"task": "t", "worker": "w", "label": "a"},\n', ["breaks off"], 1),
    ("comma.json", b'[{"task": "t"\n "worker": "w"}]', ["line 2, column 2", "not JSON"], 1),
    ("empty.json", b"[]", ["no records"], 1),
    ("text.json", b'"votes"', ["not a list of records", "label-studio", "toloka"], 1),
    ("mixed.json", b'[{"task": 1}, 2]', ["record 2", "not an object"], 1),
    ("deep.json", b"[" * 200_000, ["nested too deeply"], 1),
    ("digits.json", b'[{"task": ' + b"1" * 5000 + b"}]", ["thousands of digits"], 1),
    ("half.json", b'[{"task": "\\ud800", "worker": "w", "label": "a"}]', ["half of a character"], 1),
    ("latin1.json", b'[\n{"task": "\xe9"}]', ["line 2", "byte 12 is not UTF-8"], 1),
    ("gap.json", b'[{"task": "t", "worker": "w", "label": null}]', ["row 1", "'label'"], 1),
    ("cut.jsonl", b'{"task": "t", "worker": "w", "label": "a"}\n{"task": "t2"', ["line 2", "breaks off"], 1),
    ("kind.jsonl", b'{"task": "t", "worker": "w", "label": "a"}\n\n3\n', ["line 3", "3 is not a record"], 1),
    (
        "gap.jsonl",
        b'{"task": "t", "worker": "w", "label": "a"}\n\n{"task": "u", "label": "b"}\n',
        ["row 2 (line 3)"],
        1,
    ),
]


@pytest.mark.parametrize(("name", "content", "says", "problems"), BAD)
def test_bad_file(write: Any, name: str, content: bytes, says: list[str], problems: int) -> None:
    path = write(name, content)
    with pytest.raises(BadInput) as caught:
        vio.read(path)
    first = caught.value.problems[0]
    assert name in first
    assert [part for part in says if part not in first] == []
    assert "\n" not in str(caught.value)
    assert len(caught.value.problems) == problems
    if problems > 1:
        assert f"(and {problems - 1} more)" in str(caught.value)


def test_paths_that_lead_nowhere(write: Any, tmp_path: Path) -> None:
    write("votes.csv", H + b"t,w,a\n")
    with pytest.raises(BadInput, match=r"vote\.csv: no such file; did you mean '.*votes\.csv'"):
        vio.read(tmp_path / "vote.csv")
    with pytest.raises(BadInput, match="no such file"):
        vio.read(tmp_path / "votes.csv" / "x.csv")
    with pytest.raises(BadInput, match="is a directory; name a file"):
        vio.read(tmp_path)
    with pytest.raises(BadInput, match="cannot be read"):
        vio.read("a\0b.csv")
    with pytest.raises(BadInput, match="cannot be read"):
        vio.read("x" * 5000)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(write: Any) -> None:
    path = write("votes.csv", H + b"t,w,a\n")
    path.chmod(0)
    with pytest.raises(BadInput, match="no permission"):
        vio.read(path)


def test_no_permission_said_by_the_system(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("votes.csv", H + b"t,w,a\n")

    def refuse(self: Path, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(BadInput, match="no permission to read it"):
        vio.read(path)


def test_label_that_is_no_class_says_its_row(write: Any) -> None:
    path = write("votes.csv", H + b"t1,w1,a\n,w1,a\nt2,w2,c\nt3,w3,d\n")
    with pytest.raises(BadInput, match=r"votes\.csv, row 3: 'c' is not one of the given classes \(a, b\)") as caught:
        vio.read(path, classes=["a", "b"], missing="drop")
    assert len(caught.value.problems) == 2


def test_nothing_is_left(write: Any) -> None:
    with pytest.raises(BadInput, match=r"no votes are left \(1 ignored\)"):
        vio.read(write("votes.csv", H + b"t1,w1,?\n"), ignore=["?"])


def test_thousands_of_problems_are_not_all_listed(write: Any) -> None:
    short = write("short.csv", H + b"t,w\n" * 5000)
    empty = write("empty.csv", H + b"t,w,\n" * 5000)
    for path in (short, empty):
        with pytest.raises(BadInput) as caught:
            vio.read(path)
        assert len(caught.value.problems) == LISTED


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gold.csv", b"task,label\nt1,a\nt2,\n", r"row 2 \(line 3\).*'label'.*leave the row out"),
        ("gold.csv", b"task,label\nt1,a\nt1,b\n", r"task 't1' has different labels, 'a' and 'b'; keep one"),
        ("gold.csv", b"task,truth\nt1,a\n", r"no column 'label'"),
        ("gold.csv", b"task,label\nt1\n", r"row 1 \(line 2\): 1 field"),
        ("gold.csv", b"", "is empty"),
        ("gold.json", b'{"t1": "a", "t2": null}', "task 't2' has no label"),
        ("gold.json", b'{"t1": {"w": 1}}', "not a table"),
        ("gold.json", b"3", "not a table"),
    ],
)
def test_bad_labels(write: Any, name: str, content: bytes, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        vio.read_labels(write(name, content))


def test_labels(write: Any) -> None:
    expected = [("t1", "a"), ("007", "b")]
    for name, content in (
        ("gold.csv", b"label,note,task\na,x,t1\nb,y,007\na,z,t1\n"),
        ("gold.json", b'{"t1": "a", "007": "b"}'),
        ("gold.jsonl", b'{"task": "t1", "label": "a"}\n{"task": "007", "label": "b"}\n'),
        ("gold.parquet", parquet(task=["t1", "007"], label=["a", "b"])),
    ):
        assert vio.read_labels(write(name, content)).rows() == expected
    named = vio.read_labels(write("gold.csv", b"id,truth\nt1,a\n"), task="id", label="truth")
    assert named.rows() == [("t1", "a")]
    assert named.columns == ["task", "label"]


@pytest.mark.parametrize("size", [1, 10, 100, 10_000])
def test_problems_in_any_block_are_all_found(write: Any, size: int) -> None:
    rows = [f"t{i},w,a" for i in range(100)]
    rows[2], rows[40], rows[60], rows[61], rows[97] = "t2,w", 't40,"w"x,a', "t60,w,\0", "t61,w,\xfe", 't97,"w,a'
    path = write("v.csv", H + "\n".join(rows).encode("latin-1"))
    table = Delimited(Source.of(path), block=size)
    with pytest.raises(BadInput) as caught:
        list(table.blocks(table.columns))
    places = [problem.removeprefix(f"{path}, ").partition(":")[0] for problem in caught.value.problems]
    assert places == [f"row {i + 1} (line {i + 2})" for i in (2, 40, 60, 61, 97)]
    content = path.read_bytes()
    assert f"byte {content.index(0)} is a NUL" in caught.value.problems[2]
    assert f"byte {content.index(0xFE)} is not UTF-8" in caught.value.problems[3]
