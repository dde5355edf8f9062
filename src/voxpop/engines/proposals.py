"""Draws of each worker's confusion matrix that are near his posterior, and their weights p / q.

Draws of the prior alone degenerate for K > 2 and busy workers (a few of 400 carry all the weight). Half
of the draws come from the prior and half from the mean-field posterior, widened a little because mean
field is too sure; the weights are those of the mixture, so neither half can go astray.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Theta
from voxpop.channels.coin import coin_table
from voxpop.channels.dirichlet import prior_rows
from voxpop.channels.worker_prior import WorkerPrior
from voxpop.errors import TooLarge
from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator

SHARPNESS = 0.8  # of the mean field's counts that the proposal keeps
BLOCK = 1 << 22  # numbers that are drawn together, in float64


@dataclass(frozen=True)
class Draws:
    tables: Tensor  # M,S,K,K as [worker, sample, label, truth]; a worker's draws of a label are side by side
    log_weight: Tensor  # M,S


def propose(prior: WorkerPrior, theta: Theta, samples: int, seed: int, limit: int) -> Draws:
    """Draws for every worker from the mean-field posterior ``theta`` of a named prior."""
    posterior = theta["posterior"]
    M, K = posterior.shape[0], prior.classes
    if M * samples * K * K > limit:
        fits = limit // max(M * K * K, 1)
        raise TooLarge(
            f"{samples} draws of {M:,} workers' {K} x {K} matrices do not fit in memory; "
            + (f"set samples={fits}" if fits >= 10 else "use HierarchicalDawidSkene or consensus(votes)")
        )
    before, after = _rows(prior, posterior)  # M,R,C: independent Dirichlets
    rng = generator(seed, "proposals", device=posterior.device)
    tables = torch.empty(M, K, samples, K, device=posterior.device)  # as [worker, label, sample, truth]
    log_weight = torch.empty(M, samples, device=posterior.device)
    together = max(1, BLOCK // (samples * K * K))  # workers
    for first in range(0, M, together):
        part = slice(first, first + together)
        drawn, log_weight[part] = _around(before[part], after[part], samples, rng)
        tables[part] = _tables(prior, drawn).transpose(1, 2)
    return Draws(tables.transpose(1, 2), log_weight)


def _around(before: Tensor, after: Tensor, samples: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Log rows of half from the prior and half from the widened posterior (m,S,R,C), and log p / q over S: m,S."""
    half = samples // 2
    wide = before + SHARPNESS * (after - before)
    log_rows = torch.cat([_draw(before, samples - half, rng), _draw(wide, half, rng)], 1)
    log_p = dirichlet.log_density(log_rows, before[:, None]).sum(-1)
    log_q = dirichlet.log_density(log_rows, wide[:, None]).sum(-1)
    share = torch.tensor([(samples - half) / samples, half / samples], dtype=torch.float64, device=log_p.device)
    mixture = torch.logaddexp(log_p + share[0].log(), log_q + share[1].log())
    return log_rows, (log_p - mixture - math.log(samples)).float()


def _rows(prior: WorkerPrior, posterior: Tensor) -> tuple[Tensor, Tensor]:
    """Prior and posterior parameters with the Dirichlets along the last axis: M,R,C."""
    if prior.kind == "dirichlet":
        after = posterior.transpose(1, 2)  # M,K,K as [worker, truth, label]
        rows = prior_rows(prior.classes, prior.right, prior.wrong).to(posterior.device)
        return rows.expand_as(after), after
    rows = torch.tensor([prior.right, prior.wrong], dtype=torch.float64, device=posterior.device)
    return rows.expand_as(posterior), posterior  # M,1|K,2 as [worker, truth, right or wrong]


def _draw(alpha: Tensor, samples: int, rng: torch.Generator) -> Tensor:
    return dirichlet.log_sample(alpha[:, None].expand(-1, samples, -1, -1).contiguous(), rng)  # M,S,R,C


def _tables(prior: WorkerPrior, log_rows: Tensor) -> Tensor:
    """M,S,K,K as [worker, sample, label, truth]."""
    p = log_rows.exp().float()
    if prior.kind == "dirichlet":
        return p.transpose(2, 3)
    M, S = p.shape[:2]
    table = coin_table(p[..., 0].reshape(M * S, p.shape[2]), prior.classes)
    assert table is not None
    return table.transpose(1, 2).reshape(M, S, prior.classes, prior.classes)
