"""Gibbs sampling of truths, confusion matrices and class frequencies.

Kim, Ghahramani (2012), Bayesian classifier combination. The truths are drawn from their conditional,
but it is the conditional itself that is averaged (Rao-Blackwell): the belief is calibrated when the
model is, where mean field is overconfident.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from voxpop.channels.base import Theta
from voxpop.engines.em import Model
from voxpop.engines.events import emit
from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator
from voxpop.votes import Batch


@dataclass(frozen=True)
class Samples:
    """What is kept of the chains."""

    belief: Tensor  # B,K: mean of the conditionals
    table: Tensor | None  # M,K,K: mean confusion matrix as [worker, truth, label], where it fits
    accuracy: Tensor  # T,M: each worker's chance of being right, a row a kept sweep
    trace: tuple[float, ...]  # log p(votes | parameters) of every sweep, chain after chain
    r_hat: float  # spread between halves of chains over the spread within; near 1 when they agree


def sample(
    batch: Batch,
    model: Model,
    belief: Tensor,
    theta: Theta,
    *,
    sweeps: int,
    burn_in: int,
    chains: int,
    seed: int,
    keep: int = 400,
) -> Samples:
    """``chains`` chains of ``sweeps`` sweeps each from a belief; the first ``burn_in`` of each are thrown away.

    ``model`` is as for EM: any channel that can ``draw``, any prior, the known truths.
    """
    kept = chains * (sweeps - burn_in)
    every = max(1, kept // keep)
    total = torch.zeros(batch.B, batch.K, device=batch.device)
    table: Tensor | None = None
    accuracy: list[Tensor] = []
    traces: list[list[float]] = []
    for chain in range(chains):
        rng = generator(seed, "gibbs", chain, device=batch.device)
        now, parameters, trace = belief, theta, []
        for sweep in range(sweeps):
            now, parameters, right, joint = _sweep(batch, model, now, parameters, rng)
            trace.append(joint)
            emit("sampling", chain * sweeps + sweep + 1, chains * sweeps, joint)
            if sweep < burn_in:
                continue
            total += now
            if (sweep - burn_in) % every == 0:
                accuracy.append(draw_accuracy(batch, right, rng))
                one = model.channel.table(parameters)
                if one is not None:
                    table = one.double() if table is None else table.add_(one)
        traces.append(trace)
    return Samples(
        total / kept,
        None if table is None else (table / len(accuracy)).float(),
        torch.stack(accuracy),
        tuple(x for trace in traces for x in trace),
        r_hat([t[burn_in:] for t in traces]),
    )


def _sweep(
    batch: Batch, model: Model, belief: Tensor, theta: Theta, rng: torch.Generator
) -> tuple[Tensor, Theta, Tensor, float]:
    """Truths from the belief, then parameters given the truths, then the new conditional belief.

    And how many votes of each worker are right given those truths.
    """
    truth = draw_rows(belief, rng)  # B
    certain = F.embedding(truth, torch.eye(batch.K, device=batch.device))  # B,K
    stats = model.channel.stats(batch, certain)
    theta = model.channel.draw(stats, theta, rng)
    totals = torch.bincount(truth, minlength=batch.K).double()
    pi = model.prior.draw(totals, rng)
    belief, joint = model.believe(batch, theta, pi)
    return belief, theta, model.channel.right(stats), float(joint)


def draw_accuracy(batch: Batch, right: Tensor, rng: torch.Generator) -> Tensor:
    """Each worker's chance of being right given the truths: Beta(1 + right, 1 + wrong), M.

    Not read off the confusion matrix: its rows are drawn towards the model's prior, K times over, which would
    make experts look worse and spammers better than they are.
    """
    both = torch.stack([right, batch.worker_offsets.diff() - right], -1) + 1  # M,2
    return dirichlet.sample(both, rng)[:, 0].float()


def draw_rows(p: Tensor, rng: torch.Generator) -> Tensor:
    """One class for each row of probabilities (int64). Along the first axis of the transpose, as for a softmax."""
    u = torch.rand(p.shape[0], generator=rng, device=p.device)  # B
    cumulative = torch.cumsum(p.t(), 0, out=p.new_empty(p.shape[1], p.shape[0]))  # K,B
    return (cumulative[:-1] <= u * cumulative[-1]).sum(0)  # u < 1, may be 0: a class of 0 is never drawn


def r_hat(traces: list[list[float]]) -> float:
    """Split R-hat (Gelman et al. 2013, eq. 11.4) of the log joint."""
    half = min(len(t) for t in traces) // 2
    if half < 2:
        return math.inf
    pieces = torch.tensor([part for t in traces for part in (t[:half], t[-half:])], dtype=torch.float64)  # C,H
    within = pieces.var(1).mean()
    between = half * pieces.mean(1).var()
    if within == 0:
        return 1.0
    return float(((half - 1) / half + between / (half * within)).sqrt())
