"""An experiment from its cells to its page: what is finished is kept, what failed is told, files are whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import tiny
from voxpop.bench.experiment import Experiment, Settings
from voxpop.bench.whole import Work
from voxpop.errors import BadInput, VoxError

Make = Callable[..., Work]
SETTINGS = Settings(seeds=2)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The tiny experiment in a directory of its own."""
    monkeypatch.setenv(tiny.NOTES, str(tmp_path / "notes"))

    def make(*methods: str, settings: Settings = SETTINGS, only: tuple[str, ...] = ()) -> Work:
        return Work(tiny.experiment(*methods), settings, tmp_path / "out", only)

    return make


def test_cells_are_measured_seed_by_seed_and_each_once(work: Make) -> None:
    whole = work("good", "bad")
    assert whole.missing == 9
    whole.measure()
    first = [f"{case} {method} 0" for case in "12" for method in ("good", "bad")]
    assert tiny.notes() == [*first, "1 good 0", *(cell[:-1] + "1" for cell in first)]
    again = work("good", "bad")
    again.measure()
    assert (again.missing, len(tiny.notes())) == (0, 9)


def test_a_run_that_was_killed_goes_on_where_it_was(work: Make) -> None:
    whole = work("good", "killed")
    with pytest.raises(KeyboardInterrupt):
        whole.measure()
    before = tiny.notes()
    path = whole.store.path
    assert path is not None
    path.write_text(path.read_text() + '{"cell": {"part": "pa')  # the line that was being written
    again = work("good", "killed")
    assert again.missing == 9 - (len(before) - 1)
    with pytest.raises(KeyboardInterrupt):
        again.measure()
    assert tiny.notes()[len(before) :] == ["1 killed 1"]  # the one that had stopped it
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_more_seeds_are_added_and_fewer_do_not_count(work: Make) -> None:
    work("good", "bad").measure()
    more = work("good", "bad", settings=Settings(seeds=3))
    assert more.missing == 4
    more.measure()
    assert more.results["part"].mean("1", "good", "accuracy").seeds == 3
    assert work("good", "bad").results["part"].mean("1", "good", "accuracy").seeds == 2


def test_a_cell_that_failed_is_told_and_tried_again(work: Make) -> None:
    whole = work("good", "frail")
    whole.measure()
    assert whole.results["part"].failures == ["frail (2 seed 0, 2 seed 1): the loss is not a number"]
    assert "- **failed**: frail (2 seed 0, 2 seed 1): the loss is not a number" in text_of(whole)
    assert work("good", "frail").missing == 2


def test_processes_measure_the_same(work: Make) -> None:
    alone, together = work("good", "bad"), work("good", "bad", only=("part",))
    alone.measure()
    one = {cell: row.measures for cell, row in alone.store.rows.items() if cell.part == "part"}
    assert alone.store.path is not None
    alone.store.path.unlink()
    together.measure(jobs=2)
    assert {cell: row.measures for cell, row in together.store.rows.items()} == one


def test_the_page_has_tables_claims_and_figures_that_exist(work: Make) -> None:
    whole = work("good", "bad")
    whole.measure()
    text = text_of(whole)
    assert "| good | 90.6 ±6.4 | 90.7 ±6.4 |" in text  # t(1, 0.975) = 12.7 times 0.5
    assert "- **holds**: good beats bad. 1 +30.0 (bound +10.0)." in text
    for name in re.findall(r"\]\(([^)]+)\)", text):
        assert (whole.directory / name).stat().st_size > 0
    assert not list(whole.directory.glob("*.tmp*"))


def test_a_page_without_numbers_says_so(work: Make) -> None:
    assert "- **not measured**: good beats bad. no numbers." in text_of(work("good", "bad"))


@pytest.mark.parametrize(
    ("settings", "only", "message"),
    [
        (Settings(seeds=2, epochs=7), (), "other settings (epochs 30 there, 7 here)"),
        (Settings(on="nothing"), (), "unknown data for tiny 'nothing'"),
        (SETTINGS, ("pat",), "unknown part of tiny on digits 'pat'"),
    ],
)
def test_what_does_not_fit_is_refused(work: Make, settings: Settings, only: tuple[str, ...], message: str) -> None:
    work("good", "bad").measure()
    with pytest.raises(VoxError, match=re.escape(message)):
        work("good", "bad", settings=settings, only=only).check()


def test_a_file_of_something_else_is_refused(work: Make) -> None:
    whole = work("good", "bad")
    whole.directory.mkdir()
    (whole.directory / f"{whole.stem}.jsonl").write_text("{}\nnothing\n")
    with pytest.raises(BadInput, match="is no file of finished cells"):
        _ = whole.store


def text_of(whole: Work) -> str:
    return next(path for path in whole.write() if path.suffix == ".md").read_text()


def test_experiments_without_anything_on_these_data_are_refused(tmp_path: Path) -> None:
    nothing = Experiment("none", "Nobody", "Nothing.", lambda settings: ())
    with pytest.raises(VoxError, match="nothing to measure on digits"):
        Work(nothing, SETTINGS, tmp_path)
