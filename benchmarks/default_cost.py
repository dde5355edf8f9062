"""What it costs not to name a method."""

from __future__ import annotations

import voxpop as vp
from benchmarks import simulated
from benchmarks.measure import best, short
from benchmarks.page import Table, verdict
from voxpop.simulate import simulate

MOST = 8
KINDS = ("dirichlet", "one-coin", "believable", "class-experts")


def run(quick: bool) -> Table:
    size = 10**5 if quick else 10**6
    rows, ratios = [], []
    for kind in KINDS:
        made = simulate(
            tasks=size // simulated.PER_TASK, workers=simulated.WORKERS, classes=simulated.K, kind=kind,
            votes_per_task=simulated.PER_TASK, seed=1,
        ).votes  # fmt: skip
        columns = (made.task, made.worker, made.label)
        vp.consensus(simulated.fresh(columns))
        fit = best(lambda c=columns: vp.DawidSkene().infer(simulated.fresh(c)), 5)
        default = best(lambda c=columns: vp.consensus(simulated.fresh(c)), 3)
        ratios.append(default / fit)
        rows.append([kind, short(fit), short(default), f"{default / fit:.1f}"])
    return Table(
        f"The default beside one Dawid-Skene fit, at {size:,} votes",
        f"{simulated.K} classes, {simulated.PER_TASK} votes a task, {simulated.WORKERS:,} workers; both with their own "
        "options, from votes that nothing was done with before; the best of several runs.",
        ["crowd", "DawidSkene, s", "default, s", "fits"],
        rows,
        [] if quick else [verdict(max(ratios) <= MOST, f"at most {max(ratios):.1f} fits (promised: {MOST})")],
    )
