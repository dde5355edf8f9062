"""Progress of long work as bars on stderr; nothing at all where stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from voxpop.engines.events import Progress


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Say what is being done while the block runs, with a bar for each stage that reports how far it is."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from voxpop.engines.events import listening

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with (
        Bars(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bars,
        listening(Stages(bars, doing)),
    ):
        yield


class Stages:
    """One bar, which belongs to the stage that reported last; before any has, it only says that work goes on."""

    def __init__(self, bars: Bars, doing: str) -> None:
        self.bars = bars
        self.stage = doing
        self.bar: TaskID = bars.add_task(doing, total=None)

    def __call__(self, progress: Progress) -> None:
        if progress.stage != self.stage:
            self.bars.remove_task(self.bar)
            self.stage, self.bar = progress.stage, self.bars.add_task(progress.stage)
        self.bars.update(self.bar, total=progress.steps, completed=progress.step)
