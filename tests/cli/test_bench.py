"""voxpop bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from voxpop.bench.experiments import NAMES

TINY = ("bench", "crowdnets", "--quick", "--only", "experts", "--model", "linear", "--epochs", "1", "--seeds", "1")


def test_without_a_name_the_experiments_are_listed(voxpop: Run):
    shown = voxpop("bench")
    assert shown.code == 0
    assert all(name in shown.out for name in NAMES)


def test_results_figures_and_the_page_say_what_was_measured(voxpop: Run):
    done = voxpop(*TINY, "-o", "results")
    assert (done.code, done.err) == (0, "")
    assert "GeoCrowdNet (F) is ahead where there are no class experts" in done.out
    page = Path("results/crowdnets-digits-quick.md").read_text(encoding="utf-8")
    assert "model linear, 1 epochs" in page
    assert Path("results/crowdnets-digits-quick-experts.png").stat().st_size > 1000


def test_the_same_command_goes_on_and_another_setting_is_refused(voxpop: Run):
    voxpop(*TINY, "-o", "results")
    rows = Path("results/crowdnets-digits-quick.jsonl")
    before = rows.read_text(encoding="utf-8")
    assert voxpop(*TINY, "-o", "results").code == 0
    assert rows.read_text(encoding="utf-8") == before
    other = voxpop(*TINY[:-3], "2", "--seeds", "1", "-o", "results")
    assert other.code == 2
    assert "epochs 1 there, 2 here" in other.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("nosuch",), "maxmig"),
        (("maxmig", "--on", "nosuch"), "digits"),
        (("maxmig", "--only", "nosuch"), "example-e2"),
        (("maxmig", "--model", "mpl"), "mlp"),
        (("e2e", "--on", "labelme", "--data", "nowhere"), "nowhere"),
    ],
)
def test_what_is_not_there_is_one_line_with_the_remedy(voxpop: Run, options: tuple[str, ...], words: str):
    done = voxpop("bench", *options, "-o", "results")
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1
    assert not Path("results").exists()
