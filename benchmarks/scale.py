"""Seconds and peak memory from 10^5 to 10^8 votes, each in a process of its own."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure, simulated
from benchmarks.measure import gib, module, seconds, short
from benchmarks.page import Table, verdict

ITERATIONS, FEW = 30, 10


def run(quick: bool) -> Table:
    sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7, 10**8)
    rows, each = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            file = Path(folder) / "votes.npy"
            module("benchmarks.scale", "simulate", file, size)
            for name in RUNS:
                if size > LARGEST.get(name, sizes[-1]):
                    continue
                base = module("benchmarks.scale", f"{name.split()[0]} imports", file)
                ran = module("benchmarks.scale", name, file)
                row = [_power(size), name, short(ran.said["seconds"]), gib(ran.peak), gib(base.peak)]
                if "iteration" in ran.said:
                    each[size] = ran.said["iteration"] / size
                    row.append(f"{1e9 * each[size]:.2f}")
                rows.append(row if len(row) == 6 else [*row, ""])
    first, last = 10**5 if quick else 10**6, sizes[-1]
    growth = each[last] / each[first]
    grown = (
        f"ns a vote and iteration grow by {growth:.2f} from {_power(first)} to {_power(last)} (promised: at most 1.3)"
    )
    return Table(
        "Scale: seconds and peak memory",
        f"{simulated.K} classes, {simulated.PER_TASK} votes a task, {simulated.WORKERS:,} workers. Dawid-Skene makes "
        f"{ITERATIONS} iterations. Each line is a process of its own. *Peak* is all of it: the votes (12 bytes each), "
        "what it imports, and the work; *before* is a process that loads the votes and imports the library. An "
        f"iteration is the difference of a fit of {ITERATIONS} and one of {FEW} iterations, divided. crowd-kit's "
        "Dawid-Skene is left out above 10^6 votes, where it takes minutes, its majority above 10^7.",
        ["votes", "method", "s", "peak GiB", "before: GiB", "ns a vote and iteration"],
        rows,
        [verdict(growth <= 1.3, grown)],
    )


def _power(size: int) -> str:
    return f"10^{len(str(size)) - 1}"


# -- what the processes do -------------------------------------------------------------------------


def _dawid_skene(columns: Any) -> dict[str, float]:
    import voxpop as vp

    votes = simulated.fresh(columns)
    took = seconds(lambda: vp.DawidSkene(max_iter=ITERATIONS, tol=0).infer(votes).label)
    times = 1 if votes.V > 10**7 else 5
    many = min(took, measure.best(lambda: vp.DawidSkene(max_iter=ITERATIONS, tol=0).infer(votes), times))
    few = measure.best(lambda: vp.DawidSkene(max_iter=FEW, tol=0).infer(votes), times)
    return {"seconds": took, "iteration": (many - few) / (ITERATIONS - FEW)}


def _majority(columns: Any) -> dict[str, float]:
    import voxpop as vp

    return {"seconds": seconds(lambda: vp.MajorityVote().infer(simulated.fresh(columns)).label)}


def _default(columns: Any) -> dict[str, float]:
    import voxpop as vp

    return {"seconds": seconds(lambda: vp.consensus(simulated.fresh(columns)).label)}


def _crowd_kit(name: str, **options: Any) -> Callable[[Any], dict[str, float]]:
    def fit(columns: Any) -> dict[str, float]:
        from crowdkit import aggregation

        frame = _frame(columns)
        return {"seconds": seconds(lambda: getattr(aggregation, name)(**options).fit_predict(frame))}

    return fit


def _frame(columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(dict(zip(("task", "worker", "label"), (c.numpy() for c in columns), strict=True)))


def _voxpop_imports(columns: Any) -> dict[str, float]:
    import voxpop as vp

    vp.DawidSkene, vp.consensus  # noqa: B018
    return {"seconds": 0}


def _crowd_kit_imports(columns: Any) -> dict[str, float]:
    import crowdkit.aggregation  # noqa: F401

    _frame(columns)
    return {"seconds": 0}


RUNS: dict[str, Callable[[Any], dict[str, float]]] = {
    "voxpop MajorityVote": _majority,
    "crowd-kit MajorityVote": _crowd_kit("MajorityVote"),
    "voxpop DawidSkene": _dawid_skene,
    "crowd-kit DawidSkene": _crowd_kit("DawidSkene", n_iter=ITERATIONS, tol=-1e9),
    "voxpop default": _default,
}
LARGEST = {"crowd-kit MajorityVote": 10**7, "crowd-kit DawidSkene": 10**6, "voxpop default": 10**7}
IMPORTS = {"voxpop imports": _voxpop_imports, "crowd-kit imports": _crowd_kit_imports}


def _child(what: str, file: str, size: str = "0") -> None:
    if what == "simulate":
        simulated.save(Path(file), int(size))
    else:
        print(json.dumps((RUNS | IMPORTS)[what](simulated.load(Path(file)))))


if __name__ == "__main__":
    _child(*sys.argv[1:])
