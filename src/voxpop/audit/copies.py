"""Pairs of workers who vote alike more often than chance and their own confusion matrices explain.

Two workers who look at a task of class k by themselves agree on it with probability sum_l A_a[k, l] A_b[k, l].
A worker who copies a share c of the other's votes agrees in c + (1 - c) of that instead. So the excess over
what is expected estimates c. Tasks differ in difficulty, which makes everyone agree a little more than the
matrices say: that share, the median over all pairs, is taken as given. A pair stands out where a binomial
with that probability would hardly ever reach the agreement; it has heavier tails than the sum of unequal
chances that it stands for (Hoeffding 1956), so it errs on the side of the worker. Who copies whom, or both
a third, cannot be told from votes.
"""

from __future__ import annotations

import polars as pl
import torch
from torch import Tensor

from voxpop.errors import TooLarge
from voxpop.numerics.segments import offsets_of
from voxpop.results import Consensus
from voxpop.votes import Votes

MOST_PAIRS = 4_000_000  # of votes on one task; of more, a random part of the tasks is looked at
_CELLS = 1 << 22  # of confusion matrices at a time


def copies(found: Consensus, least: int = 10, copied: float = 0.5, level: float = 0.01) -> pl.DataFrame:
    """worker, other, shared, agreed, expected, copied, p: the pairs that stand out, most surprising first.

    ``shared`` tasks (at least ``least``), on which they ``agreed`` where the matrices let us expect ``expected``;
    ``copied`` is the share of votes that copying would explain; ``p`` the number of pairs as striking that a
    crowd without copies would have, at most ``level``.
    """
    from scipy.special import bdtrc  # type: ignore[import-untyped]

    if found.table is None:
        raise TooLarge("the confusion matrices of so many workers and classes do not fit in memory")
    pairs = _agreements(found).filter(pl.col("shared") >= least)
    excess = (pl.col("agreed") - pl.col("expected")) / (pl.col("shared") - pl.col("expected")).clip(1e-9)
    pairs = pairs.with_columns(copied=excess)
    if pairs.is_empty():
        return pairs.with_columns(p=pl.lit(0.0))
    usual = pairs["copied"].median()
    usual = max(0.0, usual) if isinstance(usual, float) else 0.0
    chance = usual + (1 - usual) * (pairs["expected"] / pairs["shared"])
    tail = bdtrc(pairs["agreed"].to_numpy() - 1, pairs["shared"].to_numpy(), chance.to_numpy())
    return (
        pairs.with_columns(p=pl.Series(tail * len(pairs)))
        .filter((pl.col("p") <= level) & (pl.col("copied") >= copied))
        .sort("p", "worker", "other")
    )


def _agreements(found: Consensus) -> pl.DataFrame:
    """Every pair of workers with tasks in common: on how many they agreed, and on how many to expect."""
    votes = found.votes
    first, second = _pairs_of_votes(votes)
    truth = found.label[votes.task[first].long()]
    same = votes.label[first] == votes.label[second]
    key = (votes.worker[first].long() * votes.M + votes.worker[second]) * votes.K + truth
    case, place = torch.unique(key, return_inverse=True)  # cases: pair of workers and class found
    number = torch.bincount(place, minlength=len(case)).double()
    agreed = torch.bincount(place, weights=same.double(), minlength=len(case))
    pair, place = torch.unique(case // votes.K, return_inverse=True)

    def summed(values: Tensor) -> Tensor:
        return torch.bincount(place, weights=values, minlength=len(pair))

    return pl.DataFrame(
        {
            "worker": votes.workers.names.gather((pair // votes.M).numpy()),
            "other": votes.workers.names.gather((pair % votes.M).numpy()),
            "shared": summed(number).long().numpy(),
            "agreed": summed(agreed).long().numpy(),
            "expected": summed(number * _chance_to_agree(found, case)).numpy(),
        }
    )


def _chance_to_agree(found: Consensus, case: Tensor) -> Tensor:
    table, K = found.table, found.votes.K
    assert table is not None
    rows = table.reshape(-1, K)  # M*K,K
    pair, truth = case // K, case % K
    one, other = pair // found.votes.M * K + truth, pair % found.votes.M * K + truth
    step = max(1, _CELLS // K)
    parts = [(rows[one[i : i + step]] * rows[other[i : i + step]]).sum(1) for i in range(0, max(len(case), 1), step)]
    return torch.cat(parts).double()


def _pairs_of_votes(votes: Votes) -> tuple[Tensor, Tensor]:
    """Positions of two votes of different workers on one task: all such pairs, or those of a part of the tasks."""
    count = votes.offsets.diff().long()  # N
    number = count * (count - 1) // 2
    chosen = torch.ones(votes.N, dtype=torch.bool)
    if int(number.sum()) > MOST_PAIRS:
        order = torch.randperm(votes.N, generator=torch.Generator().manual_seed(0))
        small = number[order] <= MOST_PAIRS // 10  # one task with thousands of votes must not take all room
        chosen[order] = small & ((number[order] * small).cumsum(0) <= MOST_PAIRS)
    place = torch.nonzero(chosen[votes.task.long()])[:, 0]
    after = votes.offsets.long()[1:][votes.task[place].long()] - place - 1  # later votes on the same task
    first = torch.repeat_interleave(place, after)
    second = torch.arange(len(first)) - torch.repeat_interleave(offsets_of(after)[:-1], after) + first + 1
    other = votes.worker[first] != votes.worker[second]
    return first[other], second[other]
