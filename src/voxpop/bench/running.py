"""Run the cells that are not finished yet: one after the other, or in processes of one thread each."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from voxpop.bench.experiment import Cell, Part, Run, Settings, cells_of
from voxpop.bench.store import Row, Store
from voxpop.engines.events import emit, listening
from voxpop.errors import RunFailed, VoxError, VoxWarning


def run(parts: tuple[Part, ...], settings: Settings, store: Store, jobs: int = 1) -> None:
    """Fill the store with all cells of the parts."""
    wanted = cells_of(parts, settings.seeds)
    missing = [cell for cell in wanted if cell not in store.rows]
    done = len(wanted) - len(missing)
    emit("finished cells", done, len(wanted))
    for row in _rows({part.name: part.run for part in parts}, settings, missing, jobs):
        store.add(row)
        done += 1
        emit("finished cells", done, len(wanted))


def _rows(runs: dict[str, Run], settings: Settings, cells: Sequence[Cell], jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield _row(runs[cell.part], settings, cell)
        return
    pool = ProcessPoolExecutor(min(jobs, len(cells)), get_context("spawn"), _as_one_of_many)
    try:
        for future in as_completed([pool.submit(_row, runs[cell.part], settings, cell) for cell in cells]):
            yield future.result()
    except BrokenProcessPool:
        raise RunFailed(
            "a process that measured was ended from outside (out of memory?); run the same command again, with fewer "
            "--jobs: what is finished is kept"
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _row(run: Run, settings: Settings, cell: Cell) -> Row:
    """One cell. A method that fails on it is a result too; its own progress and warnings are nobody's business."""
    start = time.perf_counter()
    try:
        with listening(lambda progress: None), warnings.catch_warnings():
            warnings.simplefilter("ignore", VoxWarning)
            found = run(settings, cell.case, cell.method, cell.seed)
    except VoxError as error:
        return Row(cell, {}, time.perf_counter() - start, str(error))
    return Row(cell, {name: float(value) for name, value in found.items()}, time.perf_counter() - start)


def _as_one_of_many() -> None:
    """One thread; and Ctrl-C, which reaches all processes of a terminal, just ends it."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
