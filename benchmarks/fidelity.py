"""The numbers of docs/fidelity.md that need no data: calibration, mean field against belief propagation.

python -m benchmarks.fidelity [calibration|messages]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch

import voxpop as vp
from voxpop.methods.default import Default
from voxpop.simulate import simulate

PROBLEMS = 40
CROWDS = (("one-coin", 2), ("one-coin", 4), ("dirichlet", 2), ("dirichlet", 4))


def calibration() -> Iterator[str]:
    """Confidence minus accuracy, calibration error, and coverage of 90% intervals, on data from the model itself."""
    yield f"{PROBLEMS} crowds each of 200 tasks, 20 workers, 5 votes a task; workers from Dir(2, 1); points of 100."
    yield ""
    columns = ("crowd", "K", "method", "accuracy", "confidence - accuracy", "belief - accuracy", "calibration error")
    yield "| " + " | ".join((*columns, "intervals cover")) + " |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind, K in CROWDS:
        own = "one-coin" if kind == "one-coin" else "dirichlet"
        methods: dict[str, Callable[[], object]] = {
            "default": Default,
            "GibbsBCC": vp.GibbsBCC,
            "BeliefPropagation": lambda own=own: vp.BeliefPropagation(workers_prior=own),
            "MeanField": lambda own=own: vp.MeanField(workers_prior=own),
            "HierarchicalDawidSkene": vp.HierarchicalDawidSkene,
            "DawidSkene": vp.DawidSkene,
        }
        crowds = [
            simulate(tasks=200, workers=20, classes=K, kind=kind, seed=s, votes_per_task=5) for s in range(PROBLEMS)
        ]
        for name, make in methods.items():
            yield _row(kind, K, name, crowds, make)


def _row(kind: str, K: int, name: str, crowds: list, make: Callable) -> str:
    sure, believed, hit, covered = [], [], [], []
    for crowd in crowds:
        found = make().infer(crowd.votes)
        right = (found.label == crowd.truth).double()
        sure.append(found.certainty.double())
        believed.append(found.belief.amax(1).double())
        hit.append(right)
        share = torch.bincount(crowd.truth.long(), minlength=K) / crowd.truth.numel()
        true = (crowd.tables.diagonal(dim1=1, dim2=2) * share).sum(1).numpy()
        table = found.workers
        covered.append((table["low"].to_numpy() <= true) & (true <= table["high"].to_numpy()))
    s, b, h = torch.cat(sure), torch.cat(believed), torch.cat(hit)
    from voxpop.results.scores import calibration_error

    coverage = np.mean(np.concatenate(covered))
    return (
        f"| {kind} | {K} | {name} | {100 * h.mean():.1f} | {100 * (s.mean() - h.mean()):+.1f} | "
        f"{100 * (b.mean() - h.mean()):+.1f} | {100 * calibration_error(s, h):.1f} | {100 * coverage:.1f}% |"
    )


def messages() -> Iterator[str]:
    """Paper 001, label only: 1,000 tasks, (3, 4)-regular, one coin, 10 seeds; mean (worst)."""
    yield "| workers | model prior | majority | MeanField | BeliefPropagation |"
    yield "|---|---|---|---|---|"
    cases = (
        ("Dir(0.2, 0.1)", (0.2, 0.1), (0.2, 0.1), 0),
        ("Dir(2, 1) and one extreme spammer", (2.0, 1.0), (2.0, 1.4), 1),
        ("Dir(2, 1) and one extreme spammer", (2.0, 1.0), (2.0, 1.6), 1),
    )
    for words, true, model, spammers in cases:
        rows: dict[str, list[float]] = {"majority": [], "mf": [], "bp": []}
        for seed in range(10):
            if spammers:
                crowd = simulate(
                    tasks=1000,
                    workers=751,
                    classes=2,
                    kind="extreme-spammers",
                    seed=seed,
                    spammers=spammers,
                    alpha=true,
                )
            else:
                crowd = simulate(tasks=1000, workers=750, classes=2, kind="regular", seed=seed, alpha=true)
            methods = {
                "majority": vp.MajorityVote(),
                "mf": vp.MeanField(workers_prior="one-coin", alpha=model, sweeps=10),
                "bp": vp.BeliefPropagation(workers_prior="one-coin", alpha=model),
            }
            for name, method in methods.items():
                rows[name].append(float((method.infer(crowd.votes).label == crowd.truth).double().mean()))
        cells = " | ".join(f"{np.mean(r):.3f} ({min(r):.3f})" for r in rows.values())
        yield f"| {words} | Dir{model} | {cells} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", vp.VoxWarning)
    torch.set_num_threads(1)
    tables = {"calibration": calibration, "messages": messages}
    for name in sys.argv[1:] or tables:
        for line in tables[name]():
            print(line, flush=True)
