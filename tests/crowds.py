"""Crowds drawn from a model, and sums over all truths: slow, plain, and hard to get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import gammaln, logsumexp

from voxpop.votes import Votes

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@dataclass(frozen=True)
class Crowd:
    """Votes, and what made them. ``table`` is [worker, truth, label]."""

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    truth: np.ndarray  # N
    table: np.ndarray  # M,K,K

    @property
    def N(self) -> int:
        return len(self.truth)

    @property
    def M(self) -> int:
        return len(self.table)

    @property
    def K(self) -> int:
        return self.table.shape[1]

    @cached_property
    def votes(self) -> Votes:
        return Votes.from_arrays(
            self.task, self.worker, self.label, tasks=range(self.N), workers=range(self.M), classes=range(self.K)
        )

    @property
    def accuracy(self) -> np.ndarray:
        """How often each worker is right when the classes have the shares that they have here."""
        share = np.bincount(self.truth, minlength=self.K) / self.N
        return np.einsum("mkk,k->m", self.table, share)


def dirichlet_tables(rng: np.random.Generator, M: int, K: int, right: float = 2.0, wrong: float = 1.0) -> np.ndarray:
    """Rows from the prior of paper 001: Dir(right, wrong), the wrong part shared by the K - 1 wrong labels."""
    alpha = np.full((K, K), wrong / max(K - 1, 1))
    np.fill_diagonal(alpha, right)
    return np.stack([np.stack([rng.dirichlet(row) for row in alpha]) for _ in range(M)])


def coin_tables(chance: np.ndarray, K: int) -> np.ndarray:
    """Right with this chance (M), wrong labels alike."""
    out = np.repeat(((1 - chance) / max(K - 1, 1))[:, None, None], K, 1).repeat(K, 2)
    out[:, range(K), range(K)] = chance[:, None]
    return out


def assign(rng: np.random.Generator, N: int, M: int, per_task: int) -> tuple[np.ndarray, np.ndarray]:
    """``per_task`` different workers for each task."""
    worker = np.argsort(rng.random((N, M)), 1)[:, :per_task].ravel()
    return np.repeat(np.arange(N), min(per_task, M)), worker


def vote(rng: np.random.Generator, task: np.ndarray, worker: np.ndarray, truth: np.ndarray, table: np.ndarray) -> Crowd:
    """Every worker answers through the row of their matrix."""
    cumulative = table[worker, truth[task]].cumsum(1)
    label = (cumulative < rng.random((len(task), 1)) * cumulative[:, -1:]).sum(1)
    return Crowd(task, worker, label, truth, table)


def crowd(seed: int, N: int = 30, M: int = 8, K: int = 3, per_task: int = 4, table: np.ndarray | None = None) -> Crowd:
    """A small crowd: classes alike, workers from Dir(2, 1) unless their matrices are given."""
    rng = np.random.default_rng(seed)
    table = dirichlet_tables(rng, M, K) if table is None else table
    task, worker = assign(rng, N, len(table), per_task)
    return vote(rng, task, worker, rng.integers(0, K, N), table)


def good_crowd(seed: int = 0, N: int = 60, M: int = 9, K: int = 3, per_task: int = 5) -> Crowd:
    """Workers of 65 to 95%: one optimum that everybody finds."""
    rng = np.random.default_rng(seed)
    return crowd(seed, N, M, K, per_task, coin_tables(rng.uniform(0.65, 0.95, M), K))


def side_by_side(crowds: list[Crowd]) -> Crowd:
    """Many crowds as one: no task and no worker in common."""
    tasks = np.cumsum([0] + [c.N for c in crowds])
    workers = np.cumsum([0] + [c.M for c in crowds])
    return Crowd(
        np.concatenate([c.task + t for c, t in zip(crowds, tasks, strict=False)]),
        np.concatenate([c.worker + w for c, w in zip(crowds, workers, strict=False)]),
        np.concatenate([c.label for c in crowds]),
        np.concatenate([c.truth for c in crowds]),
        np.concatenate([c.table for c in crowds]),
    )


def all_truths(N: int, K: int) -> np.ndarray:
    """Every assignment of K classes to N tasks: K^N,N."""
    return np.array(list(product(range(K), repeat=N)), dtype=int).reshape(-1, N)


def posterior(
    log_weight: Callable[[np.ndarray], float], N: int, K: int, gold: dict[int, int] | None = None
) -> np.ndarray:
    """Marginals N,K of p(z) ~ exp(log_weight(z)) by summing over every z that agrees with the gold."""
    z = all_truths(N, K)
    for task, label in (gold or {}).items():
        z = z[z[:, task] == label]
    logs = np.array([log_weight(one) for one in z])
    p = np.exp(logs - logsumexp(logs))
    return np.stack([(p[:, None] * (z == k)).sum(0) for k in range(K)], 1)


def log_polya(counts: np.ndarray, alpha: np.ndarray) -> float:
    """log E[prod p_l ^ counts_l] for p ~ Dir(alpha), rows along the last axis summed up."""
    return float(
        (
            gammaln(alpha.sum(-1))
            - gammaln(alpha.sum(-1) + counts.sum(-1))
            + (gammaln(alpha + counts) - gammaln(alpha)).sum(-1)
        ).sum()
    )


def counts_of(c: Crowd, z: np.ndarray) -> np.ndarray:
    """How often each worker gave each label to each truth, if the truth were z: M,K,K."""
    out = np.zeros((c.M, c.K, c.K))
    np.add.at(out, (c.worker, z[c.task], c.label), 1)
    return out
