"""Votes of the same worker and label side by side, so that messages are products of matrices.

What a worker's draws say of a vote is one row of each draw, and all of his votes with that label share it. So votes
are grouped by (worker, label), long groups are cut, and groups of about the same length make a block: a matrix of
votes for each group, padded a little. A block is as large as stays in a core's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.numerics.segments import offsets_of
from voxpop.votes import Batch

LONGEST = 256  # votes of a group, before it is cut


@dataclass(frozen=True, eq=False)
class Block:
    """P groups of at most c votes each."""

    votes: Tensor  # P,c: positions of votes; those beyond a group's end repeat its last
    valid: Tensor  # P,c
    worker: Tensor  # P
    label: Tensor  # P


def blocks_of(batch: Batch, size: int) -> list[Block]:
    """All votes, each once, in blocks of about so many."""
    pair, order = torch.sort(batch.pair, stable=True)  # V
    if not pair.numel():
        return []
    own, counts = torch.unique_consecutive(pair, return_counts=True)  # G
    pieces = (counts + LONGEST - 1).div(LONGEST, rounding_mode="floor")
    whole = torch.repeat_interleave(pieces)  # which group each piece is cut from
    place = torch.arange(whole.numel(), device=pair.device) - offsets_of(pieces)[whole]
    start = offsets_of(counts)[whole] + LONGEST * place
    count = (counts[whole] - LONGEST * place).clamp_max(LONGEST)
    longest_first = torch.argsort(count, descending=True, stable=True)
    return [
        _block(order, own[whole[some]].long(), start[some], count[some], batch.K)
        for some in _alike(longest_first, count[longest_first].tolist(), size)
    ]


def _alike(pieces: Tensor, counts: list[int], size: int) -> Iterator[Tensor]:
    """Runs of pieces, longest first, none shorter than three quarters of the first, that fill a block at most."""
    first = 0
    for place, count in enumerate(counts):
        longest = counts[first]
        if (place - first + 1) * longest > size or 4 * count < 3 * longest:
            if place > first:
                yield pieces[first:place]
            first = place
    yield pieces[first:]


def _block(order: Tensor, pair: Tensor, start: Tensor, count: Tensor, classes: int) -> Block:
    step = torch.arange(int(count.max()), device=order.device)  # c
    votes = order[start[:, None] + torch.minimum(step, count[:, None] - 1)]
    worker = pair.div(classes, rounding_mode="floor")
    return Block(votes, step < count[:, None], worker, pair - worker * classes)
