"""Asking: the best 100 pairs of 10^6 items and 10^4 workers; new votes into a state of 10^7. A process a line."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import simulated
from benchmarks.measure import GIB, gib, module, seconds, short
from benchmarks.page import Table, verdict
from voxpop.votes import Axis, Votes

K, TOPICS, PAIRS, NEW = 4, 10, 100, 1000
CALLS = 20  # of partial_fit, of which the slowest counts
SECONDS, MOST, TELLING = 3.0, 4 * GIB, 0.2  # what was promised


def run(quick: bool) -> Table:
    items, workers, state = (10**5, 10**3, 10**6) if quick else (10**6, 10**4, 10**7)
    rows, kept = [], {}
    base = module("benchmarks.asking", "imports", items, workers, state)
    for name, promised in ((name, SECONDS if name in ASKING else TELLING) for name in RUNS):
        ran = module("benchmarks.asking", name, items, workers, state)
        took = ran.said["seconds"]
        kept[name] = took <= promised and (name not in ASKING or ran.peak <= MOST)
        rows.append([name, ran.said["what"], short(took), gib(ran.peak), gib(base.peak)])
    asked = [float(row[2]) for row in rows if row[0] in ASKING]
    told = [float(row[2]) for row in rows if row[0] in TELLS]
    peak = max(float(row[3]) for row in rows if row[0] in ASKING)
    return Table(
        f"Asking: {items:,} items, {workers:,} workers; a state of {state:,} votes",
        f"*ask*: the best {PAIRS} pairs, from beliefs ({K} classes) and expertise ({TOPICS} topics and a last one for "
        f"all), all of ``ask``: scores, who was asked already ({items:,} votes), the assignment and the frame. "
        f"*partial_fit*: {NEW:,} votes; the slowest of {CALLS} calls, which are not alike. Each line is a process of "
        "its own; *peak* is all of it, making the data too, *before* a process that only imports.",
        ["", "what", "s", "peak GiB", "before: GiB"],
        rows,
        []
        if quick
        else [
            verdict(
                all(kept[name] for name in ASKING),
                f"at most {short(max(asked))} s and {peak:.2f} GiB (promised: {SECONDS:g} s, {MOST / GIB:g} GiB)",
            ),
            verdict(
                all(kept[name] for name in TELLS),
                f"at most {short(max(told))} s for {NEW:,} votes into {state:,} (promised: {TELLING:g} s)",
            ),
        ],
    )


# -- what the processes do -------------------------------------------------------------------------


def _ask(how: Callable[[int, int], dict[str, Any]]) -> Callable[[int, int, int], float]:
    def timed(items: int, workers: int, state: int) -> float:
        from voxpop.active.ask import ask
        from voxpop.active.expertise import Expertise
        from voxpop.active.items import Items

        rng = torch.Generator().manual_seed(0)
        belief = torch.rand(items, K, generator=rng).square_()
        pool = Items(Axis.counting("tasks", items), belief.div_(belief.sum(1, keepdim=True)))
        u = torch.rand(workers, TOPICS + 1, generator=rng) * 0.9 - 0.3  # paper 002's simulation
        z = torch.randn(items, TOPICS + 1, generator=rng)
        z[:, -1] = 1
        columns = [torch.randint(most, (items,), generator=rng, dtype=torch.int32) for most in (items, workers, K)]
        order = torch.argsort(columns[0].long() * workers + columns[1])
        axes = (pool.names, Axis.counting("workers", workers), Axis.counting("classes", K))
        votes = Votes(*(c[order] for c in columns), *axes)
        options = how(items, workers)
        return seconds(lambda: ask(PAIRS, items=pool, expertise=Expertise(u, z), votes=votes, **options))

    return timed


def _limits(items: int, workers: int) -> dict[str, Any]:
    import polars as pl

    rng = torch.Generator().manual_seed(1)
    people = {
        "worker": range(workers),
        "cost": torch.rand(workers, generator=rng).numpy(),
        "capacity": torch.randint(0, 4, (workers,), generator=rng).numpy(),
    }
    return {"workers": pl.DataFrame(people), "cap_per_task": 3, "worth": 2.0}


def _tell(which: str) -> Callable[[int, int, int], float]:
    def timed(items: int, workers: int, state: int) -> float:
        import voxpop as vp

        model = vp.OnlineDawidSkene().partial_fit(simulated.fresh(simulated.columns(state)))
        tasks = state // simulated.PER_TASK
        rng = torch.Generator().manual_seed(0)
        slowest = 0.0
        for call in range(CALLS):
            if which == "old":
                task = torch.randint(tasks, (NEW,), generator=rng)
            else:
                task = tasks + call * NEW // simulated.PER_TASK + torch.arange(NEW) // simulated.PER_TASK
            worker, label = (torch.randint(most, (NEW,), generator=rng) for most in (simulated.WORKERS, simulated.K))
            votes = Votes.from_arrays(task, worker, label)
            slowest = max(slowest, seconds(lambda votes=votes: model.partial_fit(votes)))
        return slowest

    return timed


ASKING: dict[str, tuple[str, Callable[[int, int, int], float]]] = {
    "ask": ("entropy x expertise", _ask(lambda items, workers: {})),
    "ask, limits": ("costs, capacities, a cap per task", _ask(_limits)),
    "ask, information": ("what this worker's vote tells", _ask(lambda items, workers: {"score": "information"})),
    "ask, error": ("the expected rise of the chance to be right", _ask(lambda items, workers: {"score": "error"})),
}
TELLS: dict[str, tuple[str, Callable[[int, int, int], float]]] = {
    "partial_fit, old tasks": ("votes on any of the tasks", _tell("old")),
    "partial_fit, new tasks": ("five votes on each of 200 new tasks", _tell("new")),
}
RUNS = ASKING | TELLS


def _imports(items: int, workers: int, state: int) -> None:
    import voxpop as vp
    import voxpop.active.ask

    vp.OnlineDawidSkene  # noqa: B018


def _child(name: str, *sizes: str) -> None:
    warnings.simplefilter("ignore")
    if name == "imports":
        _imports(*map(int, sizes))
    else:
        what, timed = RUNS[name]
        print(json.dumps({"what": what, "seconds": timed(*map(int, sizes))}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
