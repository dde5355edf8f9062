"""Belief propagation: Liu, Peng, Ihler (2012); with any prior on the confusion matrix as in paper 001, eq. 42."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from voxpop.channels.base import Theta
from voxpop.channels.worker_prior import WorkerPrior
from voxpop.engines import em
from voxpop.engines.bp import Factor, Particles, propagate
from voxpop.engines.bp_exact import OneCoinExact
from voxpop.engines.proposals import propose
from voxpop.engines.starts import shares
from voxpop.methods.base import Iterative, judged
from voxpop.options import anything, at_least, fraction, option, pair_above, whole
from voxpop.priors import Uniform
from voxpop.results import Consensus, Evidence
from voxpop.votes import Batch, Votes

EXACT_UP_TO = 900  # votes of the busiest worker: above, 1 / binomial(r, r / 2) leaves the range of float64
ACCURACY_DRAWS = 400  # of each worker's accuracy, for its interval
MAX_DRAWS = 1 << 29  # numbers in all workers' draws: two GiB


@dataclass(frozen=True)
class BeliefPropagation(Iterative):
    """Messages between tasks and workers, the matrices integrated out: calibrated where mean field is not.

    One coin and two classes are done exactly (up to 900 votes a worker). Everything else is Monte
    Carlo with ``samples`` draws: of the prior where it is given by prototypes or a callable; for the
    named priors half from the prior and half from each worker's mean-field posterior, weighted by p / q.
    """

    max_iter: int = option(50, whole(1), "passes of messages at most")
    tol: float = option(1e-4, at_least(0), "stop when no belief moves by more than this; 0 never stops early")
    workers_prior: Any = option(
        "dirichlet", anything(), "one-coin, two-coin, dirichlet, S,K,K prototypes, or a callable (S, seed)"
    )
    alpha: tuple[float, float] = option((2.0, 1.0), pair_above(0), "the named priors' parameters: right, wrong")
    samples: int = option(400, whole(2), "draws of a worker's confusion matrix")
    damping: float = option(0.0, fraction(high_included=False), "how much of the last message is kept")

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        batch = votes.whole.to(self.device)
        gold = None if gold is None else gold.to(self.device)
        prior = WorkerPrior(self.workers_prior, votes.K, *self.alpha)
        factor = self._factor(votes, batch, prior, gold)
        flat = torch.full((votes.K,), 1.0, device=batch.device).log_softmax(0)
        run = propagate(batch, factor, flat, gold, max_iter=self.max_iter, tol=self.tol, damping=self.damping)
        belief = run.state.belief.cpu()
        table, accuracy, notes = None, None, ("exact recursion for one coin and two classes",)
        if isinstance(factor, Particles):
            table = factor.posterior_table(run.state.incoming).cpu()
            accuracy = factor.accuracy(run.state.incoming, ACCURACY_DRAWS, self.seed).cpu()
            size = factor.effective_size(run.state.incoming)[batch.worker_offsets.diff() > 0]
            least = float(size.min()) if size.numel() else float(factor.draws)
            notes = (f"effective draws a worker: at least {least:.0f} of {factor.draws}",)
        return self.consensus(
            votes,
            belief,
            judged(run.status, votes, belief),
            history=run.history,
            fitted_table=table,
            accuracy_samples=accuracy,
            evidence=Evidence("messages", {"log": run.state.outgoing.cpu()}, flat.cpu()),
            notes=notes,
        )

    def _factor(self, votes: Votes, batch: Batch, prior: WorkerPrior, gold: Tensor | None) -> Factor:
        found = factor_of(prior, batch, self.samples, self.seed)
        if found is not None:
            return found
        model = em.Model(prior.mean_field(self.samples, self.seed), Uniform(), gold)
        start = shares(votes, gold).to(batch.device)
        field = em.fit(batch, model, start, max_iter=30, tol=1e-4, stage="mean field")
        return particles(prior, batch, field.state.theta, self.samples, self.seed)


def factor_of(prior: WorkerPrior, batch: Batch, samples: int, seed: int) -> Factor | None:
    """The exact recursion, or prototypes; None where draws must come from near the mean field (``particles``)."""
    busiest = int(batch.worker_offsets.diff().max()) if batch.M else 0
    if prior.kind == "one-coin" and batch.K == 2 and busiest <= EXACT_UP_TO:
        return OneCoinExact(batch, prior.right, prior.wrong)
    if prior.conjugate:
        return None
    tables = prior.draw(samples, seed).to(batch.device)  # S,K,K
    return Particles(batch, tables.transpose(1, 2).contiguous(), torch.zeros(len(tables), device=batch.device))


def particles(prior: WorkerPrior, batch: Batch, field: Theta, samples: int, seed: int) -> Particles:
    """Draws for each worker around the mean field's posterior of a named prior."""
    drawn = propose(prior, field, samples, seed, limit=MAX_DRAWS)
    return Particles(batch, drawn.tables, drawn.log_weight)
