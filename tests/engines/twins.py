"""Twins of EM and VB written a second time: dense, naive loops, float64 NumPy. Nothing of voxpop is used here."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from tests.crowds import Crowd


def shares(c: Crowd) -> np.ndarray:
    q = np.zeros((c.N, c.K))
    for i, label in zip(c.task, c.label, strict=True):
        q[i, label] += 1
    for i in range(c.N):
        q[i] = q[i] / q[i].sum() if q[i].sum() else 1 / c.K
    return q


def expected_counts(c: Crowd, q: np.ndarray) -> np.ndarray:
    """[worker, truth, label]"""
    out = np.zeros((c.M, c.K, c.K))
    for i, w, label in zip(c.task, c.worker, c.label, strict=True):
        for k in range(c.K):
            out[w, k, label] += q[i, k]
    return out


def expect(c: Crowd, log_prior: np.ndarray, log_table: np.ndarray, gold: dict[int, int]) -> tuple[np.ndarray, float]:
    """Belief, and the sum of the log normalisers."""
    logits = np.zeros((c.N, c.K)) + log_prior
    for i, w, label in zip(c.task, c.worker, c.label, strict=True):
        logits[i] += log_table[w, :, label]
    for i, label in gold.items():
        logits[i, [k for k in range(c.K) if k != label]] = -np.inf
    total = logsumexp(logits, axis=1)
    return np.exp(logits - total[:, None]), total.sum()


def dirichlet_kl(q: np.ndarray, p: np.ndarray) -> float:
    """Sum over rows of KL(Dir(q) || Dir(p))."""
    difference = gammaln(q.sum(-1)) - gammaln(q).sum(-1) - gammaln(p.sum(-1)) + gammaln(p).sum(-1)
    moved = ((q - p) * (digamma(q) - digamma(q.sum(-1, keepdims=True)))).sum(-1)
    return float((difference + moved).sum())


def dawid_skene(c: Crowd, steps: int, pseudo: float, prior_pseudo: float, gold: dict[int, int]) -> list[tuple]:
    """Maximum a posteriori EM: belief, bound, confusion matrices after each step."""
    q, out = shares(c), []
    for i, label in gold.items():
        q[i] = np.eye(c.K)[label]
    for _ in range(steps):
        table = expected_counts(c, q) + pseudo
        table /= table.sum(2, keepdims=True)
        pi = q.sum(0) + prior_pseudo
        pi /= pi.sum()
        q, total = expect(c, np.log(pi), np.log(table), gold)
        bound = total + pseudo * np.log(table).sum() + prior_pseudo * np.log(pi).sum()
        out.append((q, bound, table))
    return out


def coins(c: Crowd, steps: int, pseudo: float, shared: bool, gold: dict[int, int]) -> list[tuple]:
    """One coin a worker, or one a worker and truth; classes alike; a Beta(1 + pseudo, 1 + pseudo) prior."""
    q, out = shares(c), []
    for i, label in gold.items():
        q[i] = np.eye(c.K)[label]
    for _ in range(steps):
        counts = expected_counts(c, q)
        right = np.zeros((c.M, c.K))
        for w in range(c.M):
            for k in range(c.K):
                hit, all_ = counts[w, k, k], counts[w, k].sum()
                if shared:
                    hit, all_ = np.trace(counts[w]), counts[w].sum()
                right[w, k] = (hit + pseudo) / (all_ + 2 * pseudo)
        table = np.zeros((c.M, c.K, c.K))
        for w in range(c.M):
            for k in range(c.K):
                table[w, k] = (1 - right[w, k]) / (c.K - 1)
                table[w, k, k] = right[w, k]
        q, total = expect(c, np.full(c.K, -np.log(c.K)), np.log(table), gold)
        once = right[:, :1] if shared else right
        out.append((q, total + pseudo * (np.log(once) + np.log1p(-once)).sum(), table))
    return out


def variational(c: Crowd, steps: int, alpha: float, rows: np.ndarray, gold: dict[int, int]) -> list[tuple]:
    """Mean-field VB, Dir(alpha) on the classes, Dir(rows[truth]) on the rows of every worker's matrix."""
    q, out = shares(c), []
    for i, label in gold.items():
        q[i] = np.eye(c.K)[label]
    for _ in range(steps):
        beta = rows + expected_counts(c, q)
        gamma = alpha + q.sum(0)
        log_table = digamma(beta) - digamma(beta.sum(2, keepdims=True))
        log_pi = digamma(gamma) - digamma(gamma.sum())
        q, _ = expect(c, log_pi, log_table, gold)
        out.append((q, evidence_bound(c, q, gamma, beta, alpha, rows), beta / beta.sum(2, keepdims=True)))
    return out


def evidence_bound(
    c: Crowd, q: np.ndarray, gamma: np.ndarray, beta: np.ndarray, alpha: float, rows: np.ndarray
) -> float:
    """E_q[log p(y, z, pi, Lambda) - log q(z) q(pi) q(Lambda)], term by term (paper 001 eq. 15, 000 eq. 11)."""
    log_table = digamma(beta) - digamma(beta.sum(2, keepdims=True))
    log_pi = digamma(gamma) - digamma(gamma.sum())
    votes = sum(
        q[i, k] * log_table[w, k, label]
        for i, w, label in zip(c.task, c.worker, c.label, strict=True)
        for k in range(c.K)
        if q[i, k] > 0
    )
    truths = (q @ log_pi).sum() - sum(x * np.log(x) for x in q.ravel() if x > 0)
    kl = dirichlet_kl(gamma, np.full(c.K, alpha)) + dirichlet_kl(beta, np.broadcast_to(rows, beta.shape))
    return float(votes + truths - kl)
