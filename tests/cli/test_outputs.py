"""All outputs are written, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import files_in
from voxpop.cli.outputs import Outputs, Tables
from voxpop.errors import BadInput


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_outputs_take_their_places_together(empty: Path):
    with Outputs({"-a": Path("a.txt"), "-b": Path("b.txt"), "-c": None}).writing() as files:
        assert set(files) == {"-a", "-b"}
        for option, file in files.items():
            file.write(option.encode())
        assert not {"a.txt", "b.txt"} & files_in(empty)
    assert files_in(empty) == {"a.txt", "b.txt"}
    assert Path("b.txt").read_text() == "-b"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_everything_as_it_was(empty: Path, error: type[BaseException]):
    Path("a.txt").write_text("old")

    def fail() -> None:
        with Outputs({"-a": Path("a.txt"), "-b": Path("b.txt")}).writing() as files:
            files["-a"].write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert files_in(empty) == {"a.txt"}
    assert Path("a.txt").read_text() == "old"


def test_a_full_device_keeps_the_other_files_away(empty: Path):
    def fill() -> None:
        with Outputs({"-a": Path("/dev/full"), "-b": Path("b.txt")}).writing() as files:
            files["-a"].write(b"new")
            files["-b"].write(b"new")

    with pytest.raises(BadInput, match="/dev/full cannot be written"):
        fill()
    assert files_in(empty) == set()


def test_checking_writes_nothing(empty: Path):
    Path("a.txt").write_text("old")
    Outputs({"-a": Path("a.txt"), "-b": Path("b.txt"), "-c": Path("-"), "-d": Path("/dev/null")}).check()
    assert files_in(empty) == {"a.txt"}
    assert Path("a.txt").read_text() == "old"


def test_a_link_stays_a_link(empty: Path):
    Path("real.txt").write_text("old")
    Path("link.txt").symlink_to("real.txt")
    with Outputs({"-a": Path("link.txt")}).writing() as files:
        files["-a"].write(b"new")
    assert Path("link.txt").is_symlink()
    assert Path("real.txt").read_text() == "new"


def test_two_names_of_one_file_are_one_file():
    Path("real.txt").write_text("old")
    Path("link.txt").symlink_to("real.txt")
    with pytest.raises(BadInput, match=r"-b and -a both write to link\.txt"):
        Outputs({"-a": Path("real.txt"), "-b": Path("link.txt")}).check()
    with pytest.raises(BadInput, match=r"-a link\.txt would overwrite what is read"):
        Outputs({"-a": Path("link.txt")}, inputs=[Path("real.txt")]).check()


def test_problems_of_places_and_formats_are_one_error():
    with pytest.raises(BadInput) as caught:
        Tables({"-a": Path("a.foo"), "-b": Path("nowhere/b.csv"), "-c": Path("c")}).check()
    assert len(caught.value.problems) == 3
