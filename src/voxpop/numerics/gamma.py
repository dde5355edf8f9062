"""Many draws of gamma variables in few operations on whole tensors, in float32.

Marsaglia and Tsang (2000), "A simple method for generating gamma variables". Exact in distribution, to the 24 bits of a
float.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST = 2.0**-25  # half of the least that torch.rand answers besides zero


def log_draws(alpha: Tensor, rng: torch.Generator) -> Tensor:
    """log of one draw of Gamma(alpha) for each number. Gamma(a) = Gamma(a + 1) U^(1/a): tiny parameters are as good."""
    alpha = alpha.float().contiguous()
    uniform = _uniform(alpha, rng)
    return uniform.log_().div_(alpha).add_(_log_above_one(alpha + 1, rng))


def _log_above_one(alpha: Tensor, rng: torch.Generator) -> Tensor:
    """log of one draw of Gamma(alpha), alpha > 1: at least 95 of 100 tries are taken, the others are made again."""
    d = alpha - 1 / 3
    out, taken = _tried(d, rng)
    again = (~taken).view(-1).nonzero()[:, 0]
    while again.numel():
        new, taken = _tried(d.view(-1)[again], rng)
        out.view(-1)[again] = new
        again = again[~taken]
    return out.add_(d.log_())


def _tried(d: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """log v of d v, and whether it is taken."""
    x = torch.randn(d.shape, generator=rng, device=d.device)
    root = (9 * d).rsqrt_().mul_(x).add_(1)  # v is its cube; below zero its log is not a number, and it is not taken
    log_v = root.log().mul_(3)
    most = root.pow_(3).neg_().add_(1).add_(log_v).mul_(d).add_(x.square_(), alpha=0.5)
    return log_v, _uniform(d, rng).log_() < most


def _uniform(like: Tensor, rng: torch.Generator) -> Tensor:
    return torch.rand(like.shape, generator=rng, device=like.device).clamp_min_(SMALLEST)
