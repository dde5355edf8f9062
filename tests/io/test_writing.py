"""Files are written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from voxpop import io as vio
from voxpop.errors import BadInput, BadOption, UnknownName

CONSENSUS = pl.DataFrame({"task": ["1", "img 2"], "label": ["cat", "dög"], "confidence": [0.75, 1.0]})
BIG = pl.DataFrame({"task": [str(i * 7919 % 100_003) for i in range(50_000)]})


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with vio.writing(path) as file:
        file.write(b"whole")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["out.txt"]


def half_written(path: Path | str, failure: type[BaseException]) -> None:
    with vio.writing(path) as file:
        file.write(b"half")
        raise failure


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit, FileNotFoundError])
@pytest.mark.parametrize("before", [None, b"old"])
def test_nothing_is_left_behind_by_a_failure(
    tmp_path: Path, failure: type[BaseException], before: bytes | None
) -> None:
    path = tmp_path / "out.txt"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(failure):
        half_written(path, failure)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_failed_frame_leaves_nothing(tmp_path: Path) -> None:
    lists = pl.DataFrame({"task": [["a"], ["b"]]})
    with pytest.raises(pl.exceptions.ComputeError):
        vio.write_frame(lists, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == []


def test_permissions_are_those_of_the_file_before_or_of_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    (tmp_path / "old").touch(mode=0o640)
    for name in ("new", "old"):
        with vio.writing(tmp_path / name) as file:
            file.write(b"x")
    mode = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert mode["new"] == mode["usual"]
    assert mode["old"] == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    with vio.writing(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_devices_are_written_to_and_not_replaced() -> None:
    with vio.writing("/dev/null") as file:
        file.write(b"x")
    assert not Path("/dev/null").is_file()


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    vio.write_frame(CONSENSUS, "-")
    assert capsysbinary.readouterr().out.decode() == "task,label,confidence\n1,cat,0.75\nimg 2,dög,1.0\n"
    with pytest.raises(RuntimeError):
        half_written("-", RuntimeError)
    assert capsysbinary.readouterr().out == b""


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files may grow to this size, as on a disk that is almost full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.jsonl"])
def test_full_disk(tmp_path: Path, name: str) -> None:
    with room_for(10_000), pytest.raises(BadInput, match=rf"{name} cannot be written: .*make room"):
        vio.write_frame(BIG, tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_full_device() -> None:
    with pytest.raises(BadInput, match=r"/dev/full cannot be written: No space left on device; make room"):
        vio.write_frame(BIG, "/dev/full", "csv")


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="is a directory; name a file"):
        vio.write_frame(CONSENSUS, tmp_path, "csv")
    with pytest.raises(BadInput, match="there is no directory"):
        vio.write_frame(CONSENSUS, tmp_path / "no" / "a.csv")
    with pytest.raises(BadInput, match=r"has no extension that tells its format; end it in \.csv"):
        vio.write_frame(CONSENSUS, tmp_path / "a.docx")
    with pytest.raises(UnknownName, match="did you mean 'csv'"):
        vio.write_frame(CONSENSUS, tmp_path / "a", "cvs")
    (tmp_path / "a.csv").write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(BadInput, match="no permission"):
        vio.write_frame(CONSENSUS, tmp_path / "a.csv")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="no permission"):
        vio.write_frame(CONSENSUS, tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.parquet", "c.jsonl"])
def test_consensus_is_read_back(tmp_path: Path, name: str) -> None:
    vio.write_consensus(CONSENSUS, tmp_path / name)
    assert vio.read_labels(tmp_path / name).rows() == [("1", "cat"), ("img 2", "dög")]
    with pytest.raises(BadOption, match="from_name"):
        vio.write_consensus(CONSENSUS, tmp_path / name, from_name="mood")


def test_consensus_for_label_studio(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    vio.write_consensus(CONSENSUS, path, from_name="animal", to_name="image", model_version="v1")
    tasks: list[dict[str, Any]] = json.loads(path.read_text())
    assert [t["id"] for t in tasks] == [1, "img 2"]
    prediction = tasks[0]["predictions"][0]
    assert (prediction["model_version"], prediction["score"]) == ("v1", 0.75)
    assert prediction["result"] == [
        {"from_name": "animal", "to_name": "image", "type": "choices", "value": {"choices": ["cat"]}}
    ]
    with pytest.raises(BadInput, match="holds no votes"):
        vio.load(path, "label-studio")
    found = vio.load(path, "label-studio", predictions=True)
    assert found.votes.rows() == [("1", "v1", "cat"), ("img 2", "v1", "dög")]
    assert found.questions == ("animal",)


def test_label_studio_on_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", out)
    vio.write_consensus(CONSENSUS.head(1), "-", "label-studio")
    assert json.loads(out.buffer.getvalue())[0]["predictions"][0]["model_version"] == "voxpop"
