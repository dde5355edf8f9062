"""The default on simulated crowds of every kind, balanced and skewed, beside the majority and the best of ours.

python -m benchmarks.crowds
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch

import voxpop as vp
from voxpop.simulate import KINDS, simulate

OTHERS = ("majority-vote", "dawid-skene", "hierarchical-dawid-skene", "one-coin", "confusion-vector", "mace", "glad")
SHARES = {2: (0.8, 0.2), 4: (0.6, 0.2, 0.1, 0.1)}
TASKS, WORKERS = 600, 40


def crowds() -> Iterator[tuple[str, int, str, list[dict[str, float]]]]:
    """(kind, classes, balance, accuracy of each method by seed)."""
    for kind in KINDS:
        for K in (2, 4, 12):
            for balance in ("balanced", "skewed") if K in SHARES else ("balanced",):
                prior = SHARES[K] if balance == "skewed" else None
                yield kind, K, balance, [_accuracies(kind, K, prior, seed) for seed in range(2)]


def _accuracies(kind: str, K: int, prior: tuple[float, ...] | None, seed: int) -> dict[str, float]:
    crowd = simulate(tasks=TASKS, workers=WORKERS, classes=K, kind=kind, seed=seed, prior=prior)
    truth = crowd.truth
    out = {name: float((vp.make(name).infer(crowd.votes).label == truth).double().mean()) for name in OTHERS}
    return out | {"default": float((vp.consensus(crowd.votes).label == truth).double().mean())}


def main() -> None:
    worst: dict[str, list[float]] = {name: [] for name in (*OTHERS, "default")}
    print("| crowd | K | classes | majority | best of the others | default |\n|---|---|---|---|---|---|")
    for kind, K, balance, rows in crowds():
        mean = {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
        best = max(OTHERS, key=lambda name: mean[name])
        print(
            f"| {kind} | {K} | {balance} | {100 * mean['majority-vote']:.1f} | "
            f"{100 * mean[best]:.1f} ({best}) | {100 * mean['default']:.1f} |",
            flush=True,
        )
        for name in worst:
            worst[name].append(mean[name] - max(mean.values()))
    print("\n| method | mean distance from the best | largest |\n|---|---|---|")
    for name, gaps in worst.items():
        print(f"| {name} | {100 * sum(gaps) / len(gaps):.2f} | {100 * min(gaps):.1f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore", vp.VoxWarning)
    torch.set_num_threads(1)
    main()
