"""Progress: one bar, which belongs to the stage that reported last."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from voxpop.engines.bars import Stages, progress
from voxpop.engines.events import Progress, emit


@pytest.fixture
def bars() -> Bars:
    return Bars(console=Console(file=io.StringIO()))


def test_stages_take_turns(bars: Bars):
    stages = Stages(bars, "reading")
    (bar,) = bars.tasks
    assert (bar.description, bar.total) == ("reading", None)
    for step in (1, 2):
        stages(Progress("fitting", step, 10))
    (bar,) = bars.tasks
    assert (bar.description, bar.completed, bar.total) == ("fitting", 2, 10)
    stages(Progress("sampling", 1, 5))
    (bar,) = bars.tasks
    assert (bar.description, bar.completed, bar.total) == ("sampling", 1, 5)


def test_nothing_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]):
    with progress("working"):
        emit("fitting", 1, 10)
    assert capsys.readouterr() == ("", "")
