"""From a file of votes to a file of truths, by the command line."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import polars as pl

from benchmarks import simulated
from benchmarks.measure import Ran, gib, process, short
from benchmarks.page import Table, verdict

MOST = 3.0  # GiB
SORT = "import sys, polars as pl; pl.read_parquet(sys.argv[1]).sort('task', 'worker', 'label')"


def run(quick: bool) -> Table:
    size = 10**6 if quick else 10**7
    rows, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "votes.parquet", Path(folder) / "consensus.csv"
        for kind in ("whole numbers", "text"):
            _frame(size, kind).write_parquet(file)
            sort = _best(sys.executable, "-c", SORT, str(file))
            whole = _best(
                str(Path(sys.executable).parent / "voxpop"), "aggregate", str(file), "-o", str(out),
                "-m", "dawid-skene", "--set", "max_iter=30", "--set", "tol=0",
            )  # fmt: skip
            tasks = pl.scan_csv(out).select(pl.len()).collect().item()
            assert tasks == size // simulated.PER_TASK, f"consensus.csv has {tasks} rows"
            peaks.append(whole.peak / 2**30)
            rows.append(
                [kind, short(whole.seconds), gib(whole.peak), short(sort.seconds), gib(sort.peak),
                 short(whole.seconds / sort.seconds)]
            )  # fmt: skip
    return Table(
        f"Pipeline: {size:,} votes from Parquet to consensus.csv",
        "`voxpop aggregate votes.parquet -o consensus.csv -m dawid-skene --set max_iter=30 --set tol=0`, the whole "
        "process; beside a process that reads the file and sorts it by task, worker and label with polars. Tasks and "
        "workers named by whole numbers, and by text.",
        ["names", "s", "peak GiB", "read and sort: s", "peak GiB", "times as long"],
        rows,
        [verdict(max(peaks) <= MOST, f"at most {max(peaks):.2f} GiB (promised: {MOST:g})")],
    )


def _best(*command: str) -> Ran:
    return min((process(*command) for _ in range(2)), key=lambda ran: ran.seconds)


def _frame(size: int, kind: str) -> pl.DataFrame:
    """The votes in no order, as a file would have them."""
    names = ("task", "worker", "label")
    frame = pl.DataFrame(dict(zip(names, (c.numpy() for c in simulated.columns(size)), strict=True)))
    frame = frame.sample(fraction=1, shuffle=True, seed=0)
    if kind == "text":
        frame = frame.select(
            *(pl.format(name + "{}", name).alias(name) for name in ("task", "worker")),
            pl.col("label").replace_strict([0, 1, 2, 3], ["bird", "cat", "dog", "horse"]),
        )
    return frame
