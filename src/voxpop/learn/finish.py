"""From a trained objective to a Consensus, and to forecasts from data and votes together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voxpop.channels.base import table_fits
from voxpop.engines.loop import Info
from voxpop.engines.outcome import Status
from voxpop.learn.data import Data
from voxpop.learn.loop import Epoch, in_batches
from voxpop.learn.objective import Objective, asking
from voxpop.learn.rows import Rows
from voxpop.learn.targets import on_axes
from voxpop.results import Consensus, Evidence
from voxpop.results.workers import counted_table
from voxpop.votes import Axis


def conclude(
    name: str,
    objective: Objective,
    data: Data,
    history: Sequence[Epoch],
    notes: tuple[str, ...],
    options: Mapping[str, Any],
    unseen: Tensor | None = None,
) -> Consensus:
    """What the network and the crowd together make of the training tasks, known truths in place.

    ``unseen``: log p(truth | x) by networks that have not seen the task's votes (N,K; NaN: none), see ``crossed``.
    """
    believed, (belief, prior) = objective.believed(), combined(objective, data, unseen)
    if believed is not None:
        belief = believed.cpu().clone()
    if data.gold is not None:
        known = data.gold >= 0
        belief[known] = torch.nn.functional.one_hot(data.gold[known], data.votes.K).float()
    table = objective.table()
    return Consensus(
        data.votes,
        belief,
        name,
        Status.TRAINED,
        history=tuple(Info(-epoch.loss if epoch.bound is None else epoch.bound) for epoch in history),
        options=options,
        fitted_table=None if table is None else table.float(),
        evidence=objective.evidence(prior) or _left_out(data, belief, table, prior),
        notes=notes,
        gold=data.gold,
    )


def _left_out(data: Data, belief: Tensor, table: Tensor | None, prior: Tensor) -> Evidence | None:
    """Where evidence does not add up: a vote is left out by Bayes' rule with its worker's confusion matrix."""
    votes = data.votes
    if table is None and not table_fits(votes.M, votes.K):
        return None
    table = counted_table(votes.whole, belief) if table is None else table.cpu()
    log = table.float().clamp_min(torch.finfo(torch.float32).tiny).log()  # M,K,K as [worker, truth, label]
    return Evidence("average", {"log": log.transpose(1, 2).contiguous()}, prior.cpu())


def combined(objective: Objective, data: Data, unseen: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Belief of all tasks from data and votes, and the log of what the data alone say: N,K each."""
    both, alone = [], []
    with asking(objective):
        for x, parcel in in_batches(data, torch.device("cpu")):
            prior = objective.prior_of(x)  # B,K
            if unseen is not None:
                instead = unseen[parcel.rows]  # B,K
                prior = torch.where(instead.isnan(), prior, instead)
            both.append(objective.combine(x, parcel.batch, prior))
            alone.append(prior)
    return torch.cat(both), torch.cat(alone)


def forecast(objective: Objective, rows: Rows, y: Any, workers: Axis, classes: Axis) -> np.ndarray[Any, Any]:
    """p(class) of rows by the classifier and their votes together: n,K."""
    data = Data(rows, on_axes(y, rows, workers, classes))
    belief = combined(objective, data)[0].double()
    return (belief / belief.sum(1, keepdim=True)).numpy()
