"""Draws of each worker's confusion matrix that are near his posterior, and their weights p / q.

Draws of the prior alone degenerate for K > 2 and busy workers (a few of 400 carry all the weight). Half
of the draws come from the prior and half from the mean-field posterior, widened a little because mean
field is too sure; the weights are those of the mixture, so neither half can go astray. Those of the prior come from
a pool: each worker's are draws of his own, but among very many workers some have the same.
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
from voxpop.numerics.gamma import log_draws
from voxpop.numerics.seeds import generator

SHARPNESS = 0.8  # of the mean field's counts that the proposal keeps
BLOCK = 1 << 17  # numbers that are drawn together: few enough to stay in a core's cache
POOL = 64  # workers whose draws of the prior differ; the next ones have the same again


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
    before, after = _rows(prior, posterior)  # C,R and M,C,R: independent Dirichlets along C
    rng = generator(seed, "proposals", device=posterior.device)
    half = samples // 2
    pool = _draw(before.expand(min(M, POOL), -1, -1), samples - half, rng)
    tables = torch.empty(M, K, samples, K, device=posterior.device)  # as [worker, label, sample, truth]
    log_weight = torch.empty(M, samples, device=posterior.device)
    together = max(1, min(POOL, BLOCK // (samples * K * K)))  # workers
    for part in torch.split(torch.arange(M, device=posterior.device), together):
        wide = before + SHARPNESS * (after[part] - before)
        log_rows = torch.cat([pool[part % POOL], _draw(wide, half, rng)], 2)  # m,C,S,R
        log_weight[part] = _log_weight(before, wide, log_rows, half / samples)
        tables[part] = _tables(prior, log_rows)
    return Draws(tables.transpose(1, 2), log_weight)


def _draw(alpha: Tensor, samples: int, rng: torch.Generator) -> Tensor:
    """log p of draws of p ~ Dir(alpha[:, :, r]) for each r: m,C,S,R."""
    return log_draws(alpha[:, :, None].expand(-1, -1, samples, -1), rng).log_softmax(1)


def _log_weight(before: Tensor, wide: Tensor, log_rows: Tensor, share: float) -> Tensor:
    """log p / q over S, q the mixture of prior and proposal, a ``share`` of it the proposal: m,S.

    log of proposal over prior is a sum in which only parameters count that differ.
    """
    excess = (wide - before).float()  # m,C,R
    ahead = torch.matmul(log_rows, excess[..., None]).sum((1, 3))  # m,S
    norm = dirichlet.log_norm(wide.transpose(1, 2)) - dirichlet.log_norm(before.t())  # m,R
    ahead = ahead - norm.sum(1, keepdim=True).float()
    mixture = torch.logaddexp(ahead.new_tensor(1 - share).log(), ahead + math.log(share))
    return -mixture - math.log(log_rows.shape[2])


def _rows(prior: WorkerPrior, posterior: Tensor) -> tuple[Tensor, Tensor]:
    """Prior and posterior parameters, the Dirichlets along C: C,R and M,C,R."""
    if prior.kind == "dirichlet":
        rows = prior_rows(prior.classes, prior.right, prior.wrong).to(posterior.device)
        return rows.t(), posterior  # as [label, truth]
    rows = torch.tensor([prior.right, prior.wrong], dtype=torch.float64, device=posterior.device)
    return rows[:, None].expand(-1, posterior.shape[1]), posterior.transpose(1, 2)  # as [right or wrong, truth]


def _tables(prior: WorkerPrior, log_rows: Tensor) -> Tensor:
    """m,K,S,K as [worker, label, sample, truth]."""
    p = log_rows.exp()
    if prior.kind == "dirichlet":
        return p
    m, _, S, R = p.shape
    table = coin_table(p[:, 0].reshape(m * S, R), prior.classes)
    assert table is not None
    return table.view(m, S, prior.classes, prior.classes).permute(0, 3, 1, 2)  # of [worker, sample, truth, label]
