"""Seconds of a Dawid-Skene iteration, beside crowd-kit's and beside two SciPy products with the same sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene as CrowdKit
from scipy.sparse import csr_array

import voxpop as vp
from benchmarks import simulated
from benchmarks.measure import best, seconds, short
from benchmarks.page import Table, verdict
from voxpop.votes import Votes

MORE = 20  # iterations between the two fits whose difference is measured


def run(quick: bool) -> Table:
    size = 500_000 if quick else 5_000_000
    votes = simulated.fresh(simulated.columns(size))
    ours = _per_iteration(lambda n: _ours(votes, n), 1, MORE, 5)
    before = best(lambda: _ours(simulated.fresh((votes.task, votes.worker, votes.label)), 1), 3) - ours
    kit, kit_before = _crowd_kit(votes)
    rows = [
        ["voxpop DawidSkene", _ms(ours), "1", short(before)],
        ["crowd-kit DawidSkene", _ms(kit), short(kit / ours), short(kit_before)],
    ]
    ratios = {}
    for kind in (np.float64, np.float32):
        products, built = _products(votes, kind)
        ratios[kind] = products / ours
        rows.append([f"two SciPy CSR products, {kind.__name__}", _ms(products), short(products / ours), short(built)])
    return Table(
        f"Speed: a Dawid-Skene iteration at {size:,} votes",
        f"{simulated.K} classes, {simulated.PER_TASK} votes a task, {simulated.WORKERS:,} workers. Ours is a whole "
        f"iteration (both steps, the bound, the largest change): the difference of a fit of {1 + MORE} and one of 1 "
        "iteration, divided; the best of five. crowd-kit's likewise of 3 and 1 (tol below zero, so that it never "
        "stops). SciPy's is only the sums: votes x (worker, label) matrix times the log table, and its transpose times "
        "the belief; the best of five. *Before* is what comes before the first iteration.",
        ["", "ms an iteration", "times ours", "s before"],
        rows,
        [
            verdict(kit / ours >= 20, f"{short(kit / ours)} times faster than crowd-kit's (promised: 20)"),
            verdict(
                ratios[np.float64] >= 4,
                f"{short(ratios[np.float64])} times faster than the two SciPy products (promised: 4); "
                f"{short(ratios[np.float32])} times in float32",
            ),
        ],
    )


def _ours(votes: Votes, iterations: int) -> None:
    vp.DawidSkene(max_iter=iterations, tol=0).infer(votes)


def _per_iteration(fit: Callable[[int], Any], few: int, more: int, times: int) -> float:
    fit(few)
    return (best(lambda: fit(few + more), times) - best(lambda: fit(few), times)) / more


def _crowd_kit(votes: Votes) -> tuple[float, float]:
    """Seconds of an iteration, and before the first."""
    frame = pd.DataFrame({name: getattr(votes, name).numpy() for name in ("task", "worker", "label")})
    one, three = (seconds(lambda n=n: CrowdKit(n_iter=n, tol=-1e9).fit(frame)) for n in (1, 3))
    return (three - one) / 2, one - (three - one) / 2


def _products(votes: Votes, kind: type) -> tuple[float, float]:
    """Seconds of both products, and of making the matrix and its transpose."""
    pair = votes.worker.numpy() * votes.K + votes.label.numpy()
    shape = (votes.N, votes.M * votes.K)
    ends = votes.offsets.numpy()

    def build() -> tuple[Any, Any]:
        matrix = csr_array((np.ones(votes.V, kind), pair, ends), shape=shape)
        return matrix, matrix.T.tocsr()

    by_task, by_pair = build()
    rng = np.random.default_rng(0)
    table, belief = rng.random((shape[1], votes.K)).astype(kind), rng.random((votes.N, votes.K)).astype(kind)
    return best(lambda: (by_task @ table, by_pair @ belief), 5), seconds(build)


def _ms(value: float) -> str:
    return f"{1000 * value:.1f}"
