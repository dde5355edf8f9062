"""Run the cells that are not finished yet: one after the other, or in processes of one thread each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from voxpop.bench.experiment import Cell, Part, Settings, cells_of
from voxpop.bench.store import Row, Store
from voxpop.engines.events import emit, listening
from voxpop.errors import VoxError, VoxWarning


def run(parts: tuple[Part, ...], settings: Settings, store: Store, jobs: int = 1) -> None:
    """Fill the store with all cells of the parts."""
    wanted = cells_of(parts, settings.seeds)
    missing = [cell for cell in wanted if cell not in store.rows]
    done = len(wanted) - len(missing)
    for row in _rows({part.name: part for part in parts}, settings, missing, jobs):
        store.add(row)
        done += 1
        emit(f"{row.cell.part}, {row.cell.case}, {row.cell.method}, seed {row.cell.seed}", done, len(wanted))


def _rows(parts: dict[str, Part], settings: Settings, cells: Sequence[Cell], jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield _row(parts[cell.part], settings, cell)
        return
    with ProcessPoolExecutor(min(jobs, len(cells)), get_context("spawn"), _one_thread) as pool:
        try:
            for future in as_completed([pool.submit(_row, parts[cell.part], settings, cell) for cell in cells]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _row(part: Part, settings: Settings, cell: Cell) -> Row:
    """One cell. A method that fails on it is a result too; its own progress and warnings are nobody's business."""
    start = time.perf_counter()
    try:
        with listening(lambda progress: None), warnings.catch_warnings():
            warnings.simplefilter("ignore", VoxWarning)
            found = part.run(settings, cell.case, cell.method, cell.seed)
    except VoxError as error:
        return Row(cell, {}, time.perf_counter() - start, str(error))
    return Row(cell, {name: float(value) for name, value in found.items()}, time.perf_counter() - start)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
