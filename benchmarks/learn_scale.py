"""One epoch of each family of learners, from 10^5 to 10^6 tasks; and DeepBP's E-step at 10^6 votes."""

from __future__ import annotations

import json
import sys
import time

import torch

from benchmarks.measure import gib, module, short
from benchmarks.page import Table, verdict

FEATURES, PER_TASK, WORKERS, K, BATCH, SAMPLES = 64, 5, 10_000, 10, 1024, 400
FAMILIES = {
    "descent": "CrowdLayer",
    "mutual information": "MaxMIG",
    "two stages": "TwoStage",
    "EM": "AggNet",
    "natural gradients": "BayesDGC",
    "mean field": "DeepMF",
    "expertise": "DALC",
    "belief propagation": "DeepBP",
}
GROWTH = 13.0  # times the seconds for ten times the tasks: linear, and three tenths for what no longer fits a cache
MOST = 4.0  # GiB of DeepBP's E-step


def run(quick: bool) -> Table:
    sizes = (10**4, 10**5) if quick else (10**5, 10**6)
    rows, growth = [], {}
    for family, name in FAMILIES.items():
        took: dict[int, float] = {}
        for tasks in sizes:
            ran = module("benchmarks.learn_scale", "epoch", name, tasks)
            took[tasks] = ran.said["seconds"]
            cost = (short(ran.said["first"]), short(took[tasks]), gib(ran.peak))
            rows.append([family, name, _power(tasks), *cost])
        growth[name] = max(took.values()) / min(took.values())
    step = module("benchmarks.learn_scale", "step", 10**5 if quick else 10**6)
    rows.append(["an E-step alone", "DeepBP", "2 10^5", "", short(step.said["seconds"]), gib(step.peak)])
    worst = max(growth, key=lambda name: growth[name])
    return Table(
        "Learning at scale",
        f"{FEATURES} features, {PER_TASK} votes a task, {WORKERS:,} workers, {K} classes; an mlp, batches of "
        f"{BATCH:,} tasks. Each line is a process of its own on one thread; *peak* is all of its memory, the imports "
        "included. *First* is the first epoch, with what begins it; *s* is the second; both in seconds of the "
        f"processor. The last line is one E-step of DeepBP at 10^6 votes with {SAMPLES} draws.",
        ["family", "method", "tasks", "first, s", "s", "peak GiB"],
        rows,
        [
            verdict(growth[worst] <= GROWTH, f"ten times the tasks take at most {growth[worst]:.1f} times "
                    f"the seconds ({worst})"),
            verdict(step.peak / 2**30 <= MOST, f"DeepBP's E-step at 10^6 votes within {gib(step.peak)} GiB (promised: "
                    f"{MOST:g})"),
        ],
    )  # fmt: skip


def _power(size: int) -> str:
    return f"10^{len(str(size)) - 1}"


# -- what the processes do -------------------------------------------------------------------------


def _data(tasks: int, features: int) -> object:
    from voxpop.learn.data import Data
    from voxpop.learn.rows import rows_of
    from voxpop.simulate import simulate

    votes = simulate(
        tasks=tasks, workers=WORKERS, classes=K, kind="dirichlet", votes_per_task=PER_TASK, seed=1
    ).votes  # fmt: skip
    return Data(rows_of(torch.randn(tasks, features, generator=torch.Generator().manual_seed(0))), votes)


def _epoch(name: str, tasks: int) -> dict[str, float]:
    import voxpop as vp
    from benchmarks.epoch import training

    run = training(vp.make(name, model="mlp", batch_size=BATCH), _data(tasks, FEATURES))
    return {"first": _seconds(run.epoch), "seconds": _seconds(run.epoch)}


def _step(size: int) -> dict[str, float]:
    """The messages of one E-step, the draws already made; with what the network says of every task."""
    import voxpop as vp
    from benchmarks.epoch import training

    data = _data(size // PER_TASK, 1)
    run = training(vp.DeepBP("linear", samples=SAMPLES), data)
    run.refresh()
    logp = torch.randn(size // PER_TASK, K).log_softmax(1)
    run.objective.epochs = 2  # the third keeps its draws
    return {"seconds": _seconds(lambda: run.objective.refresh(data, logp))}


def _seconds(call: object) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, *rest = sys.argv[1:]
    found = _epoch(rest[0], int(rest[1])) if what == "epoch" else _step(int(rest[0]))
    print(json.dumps(found))
