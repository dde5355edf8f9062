"""What all votes told so far say: the last full fit, brought up to date with the votes that came after it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import torch
from torch import Tensor

from voxpop.engines.outcome import Status
from voxpop.loop.learning import Fit, latest
from voxpop.loop.online import learn
from voxpop.loop.store import Store
from voxpop.methods.learning.targeted import Targeted
from voxpop.numerics.segments import scatter_sum
from voxpop.results import Consensus
from voxpop.votes import Axis, Votes

TINY = torch.finfo(torch.float32).tiny  # a sampler's belief may be zero, which no vote could change


@dataclass(frozen=True)
class Known:
    """The consensus of all votes; the full fit that it rests on, if there was one, and how many votes came since."""

    found: Consensus
    fit: Fit | None
    since: int

    @property
    def votes(self) -> Votes:
        return self.found.votes

    @property
    def belief(self) -> Tensor:
        """N,K: the belief whose confidence is to be trusted."""
        return _sure(self.found)


def known(store: Store) -> Known:
    """Everything told. Votes after the last full fit count by Bayes' rule; whom it does not know is judged online.

    A learner of expertise does both by itself: it learns on from the votes that came after its fit.
    """
    fit = latest(store)
    votes, through = store.votes()
    since = through - (fit.through if fit else 0)
    if fit is not None and not since and fit.found.votes.M == votes.M:
        return Known(fit.found, fit, 0)
    if fit is not None and isinstance(fit.learner, Targeted):
        later = fit.learner.partial_fit(None, store.votes(after=fit.through)[0]).consensus_
        return Known(Consensus(votes, later.belief, later.method, Status.EXACT), fit, since)
    state = learn(store)
    if state is None:
        from voxpop.methods.coins import OneCoin

        return Known(OneCoin().infer(votes), fit, since)
    online = state.consensus_
    table = _onto(votes.workers, online)  # M,K,K
    if fit is None:
        assert online.evidence is not None
        log, new, method = online.evidence.prior.double(), votes, online.method
    else:
        table = _onto(votes.workers, fit.found, table)
        log, new, method = (
            _sure(fit.found).double().clamp_min(TINY).log(),
            store.votes(after=fit.through)[0],
            fit.found.method,
        )
    belief = (log + _said(table, new)).softmax(1).float()
    return Known(Consensus(votes, belief, method, Status.EXACT, fitted_table=table), fit, since)


def _sure(found: Consensus) -> Tensor:
    return found.belief if found.sure is None else found.sure


def _onto(workers: Axis, found: Consensus, others: Tensor | None = None) -> Tensor:
    """The confusion matrices of those who have votes in a fit; of others as given, or else their mean: M,K,K."""
    place = torch.from_numpy(workers.codes(found.votes.workers.names).cast(pl.Int64).to_numpy().copy())
    voted = found.votes.whole.worker_offsets.diff() > 0
    table = found.table
    if table is None or not bool(voted.any()):
        K = found.votes.K
        return torch.full((len(workers), K, K), 1 / K) if others is None else others
    out = table[voted].mean(0).repeat(len(workers), 1, 1) if others is None else others.clone()
    out[place[voted]] = table[voted]
    return out


def _said(table: Tensor, votes: Votes) -> Tensor:
    """The log-likelihood of the votes of each task: N,K."""
    log = table.log()[votes.worker.long(), :, votes.label.long()]  # V,K
    return scatter_sum(log, votes.task, votes.N)
