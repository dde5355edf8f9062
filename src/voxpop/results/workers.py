"""A judgement of every worker: how often right, how sure that is, how much a vote tells."""

from __future__ import annotations

import math

import polars as pl
import torch
from torch import Tensor

from voxpop.channels.own_label import own_belief
from voxpop.numerics.segments import scatter_sum
from voxpop.numerics.simplex import entropy, normalise
from voxpop.votes import Batch, Votes

LEVEL = 0.9  # of the credible intervals


def intervals(batch: Batch, sure: Tensor, samples: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Accuracy of each worker and its 90% credible interval: three times M.

    From the sampler's draws where there are some. Otherwise a Beta distribution with the mean and the
    variance of the share of right votes, the variance being that of a Beta given the truths plus that
    of the truths themselves (law of total variance), so doubt about the labels widens the interval.
    """
    tail = (1 - LEVEL) / 2
    if samples is not None and samples.numel():
        samples = samples.contiguous()  # the order of sums, and so their rounding, is that of the memory
        n = len(samples)  # Weibull's quantiles, whose expected coverage is the level also for few draws
        tail = max((n + 1) * tail - 1, 0) / max(n - 1, 1)
        levels = torch.tensor([tail, 1 - tail], dtype=samples.dtype)
        low, high = torch.quantile(samples, levels, dim=0)
        return samples.mean(0).double(), low.double(), high.double()
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    hit = own_belief(batch, sure).double()  # V
    votes = batch.worker_offsets.diff().double()  # M
    right = scatter_sum(hit, batch.worker, batch.M)
    doubt = scatter_sum(hit * (1 - hit), batch.worker, batch.M)
    mean = (right + 1) / (votes + 2)
    variance = mean * (1 - mean) / (votes + 3) + doubt / (votes + 2) ** 2
    size = (mean * (1 - mean) / variance - 1).clamp_min(0.02)
    a, b = (mean * size).numpy(), ((1 - mean) * size).numpy()
    return mean, torch.from_numpy(betaincinv(a, b, tail)), torch.from_numpy(betaincinv(a, b, 1 - tail))


def counted_table(batch: Batch, belief: Tensor) -> Tensor:
    """Confusion matrices M,K,K from belief counts, for methods that have none, one vote spread over each row."""
    counts = batch.by_pair.sum_exact(belief).view(batch.M, batch.K, batch.K).transpose(1, 2)
    return normalise(counts + 1 / batch.K).float()


def information(table: Tensor, share: Tensor) -> Tensor:
    """Mutual information of truth and label in bits, for each worker: what one vote tells at most. M."""
    label = torch.einsum("k,mkl->ml", share.float(), table)
    given = torch.einsum("k,mk->m", share.float(), entropy(table))
    return ((entropy(label) - given) / math.log(2)).clamp_min(0)


def chance(batch: Batch, share: Tensor) -> Tensor:
    """How often each worker would be right with the same label habits and no look at the task. M."""
    habits = scatter_sum(torch.ones(batch.V), batch.pair, batch.M * batch.K).view(batch.M, batch.K)
    return normalise(habits) @ share.double()


def worker_frame(
    votes: Votes, belief: Tensor, sure: Tensor, table: Tensor | None, samples: Tensor | None
) -> pl.DataFrame:
    """One row a worker. ``sure`` is the belief whose confidence is to be trusted."""
    batch = votes.whole
    mean, low, high = intervals(batch, sure, samples)
    share = normalise(belief.sum(0, dtype=torch.float64) + 1)
    luck = chance(batch, share)
    frame = pl.DataFrame(
        {
            "worker": votes.workers.names,
            "votes": batch.worker_offsets.diff().numpy(),
            "accuracy": mean.numpy(),
            "low": low.numpy(),
            "high": high.numpy(),
        }
    )
    if table is not None:
        frame = frame.with_columns(information=pl.Series(information(table, share).double().numpy()))
    worse = (high < luck) & (luck < 1)  # of one class every label is right, and tells nothing of who says it
    verdict = torch.where(low > luck, 1, torch.where(worse, -1, 0)).tolist()
    words = {1: "yes", 0: "unclear", -1: "worse"}
    return frame.with_columns(
        chance=pl.Series(luck.numpy()), better_than_chance=pl.Series([words[v] for v in verdict], dtype=pl.String)
    )
