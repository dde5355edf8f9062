"""Rows that sum to one, and their logarithms. Safe for logits of -inf (an excluded class)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from voxpop.numerics.segments import rows_of_a_block

TIE = 1e-5  # scores this close are ties, and the first class wins
_NARROW = 32
_LEAST = torch.finfo(torch.float32).min


def softmax_rows(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax along the last axis and the sum of the log normalisers (float64, a scalar)."""
    blocks = torch.split(logits, rows_of_a_block(logits.shape[1], logits.device)) if logits.numel() else ()
    return softmax_of_blocks(blocks, logits.new_zeros(logits.shape[1]), torch.empty_like(logits))


def softmax_of_blocks(blocks: Iterable[Tensor], prior: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """The same of logits that come block by block, with ``prior`` (K, or N,K) added to each row; written into ``out``.

    For a short last axis the work is done along the first axis of the transpose, in blocks that stay
    in cache: several times faster than a softmax over rows of four numbers.
    """
    total = torch.zeros((), dtype=torch.float64, device=out.device)
    start = 0
    for logits in blocks:
        rows = slice(start, start + len(logits))
        before = prior if prior.dim() == 1 else prior[rows]  # K or B,K
        softmax = _softmax_wide if logits.is_cuda or logits.shape[1] > _NARROW else _softmax_narrow
        total += softmax(logits, before, out[rows])
        start = rows.stop
    return out, total


def _softmax_wide(logits: Tensor, prior: Tensor, out: Tensor) -> Tensor:
    logits = logits + prior
    norm = torch.logsumexp(logits, 1)  # B
    torch.softmax(logits, 1, out=out)
    out.masked_fill_((norm == -torch.inf)[:, None], 1.0 / logits.shape[1])  # everything excluded: nothing is known
    return norm.sum(dtype=torch.float64)


def _softmax_narrow(logits: Tensor, prior: Tensor, out: Tensor) -> Tensor:
    columns = logits.new_empty(logits.shape[1], len(logits))  # K,B
    torch.add(logits.t(), prior[:, None] if prior.dim() == 1 else prior.t(), out=columns)
    top = columns.amax(0).clamp_min_(_LEAST)  # B; a row of -inf alone must not become -inf - -inf
    mass = columns.sub_(top).exp_().sum(0)
    norm = mass.log().add_(top).sum(dtype=torch.float64)
    if norm == -torch.inf:
        columns.masked_fill_(mass == 0, 1.0 / len(columns))  # everything excluded: nothing is known
        mass.masked_fill_(mass == 0, 1.0)
    torch.div(columns.t(), mass[:, None], out=out)
    return norm


def log_rows(logits: Tensor) -> Tensor:
    """Log softmax along a short last axis, with its gradient; torch's own takes several times as long there."""
    return logits - torch.logsumexp(logits, -1, keepdim=True)


def normalise(counts: Tensor) -> Tensor:
    """Rows divided by their sums; a row of zeros becomes uniform."""
    mass = counts.sum(-1, keepdim=True)
    return torch.where(mass > 0, counts / mass.clamp_min(torch.finfo(counts.dtype).tiny), 1.0 / counts.shape[-1])


def log(p: Tensor) -> Tensor:
    """Logarithm of a probability; zero becomes -inf, as it should (no floor in the mathematics)."""
    return torch.log(p)


def first_best(belief: Tensor) -> tuple[Tensor, Tensor]:
    """The most believed class of each row, the first one among ties; and which rows were ties."""
    top = belief.amax(1, keepdim=True)  # N,1
    near = belief >= top - TIE  # N,K
    return near.int().argmax(1).int(), near.sum(1) > 1


def entropy(p: Tensor) -> Tensor:
    """Entropy of each row in nats."""
    terms: Tensor = torch.special.entr(p)
    return terms.sum(-1)
