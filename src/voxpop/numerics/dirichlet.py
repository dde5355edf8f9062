"""What the Dirichlet distribution needs, along the last axis. Range: every parameter above zero."""

from __future__ import annotations

import torch
from torch import Tensor


def log_norm(alpha: Tensor) -> Tensor:
    """log B(alpha), the log normaliser."""
    return torch.lgamma(alpha).sum(-1) - torch.lgamma(alpha.sum(-1))


def expected_log(alpha: Tensor) -> Tensor:
    """E[log p] for p ~ Dir(alpha)."""
    return torch.digamma(alpha) - torch.digamma(alpha.sum(-1, keepdim=True))


def kl(q: Tensor, p: Tensor) -> Tensor:
    """KL(Dir(q) || Dir(p)), one number for each distribution."""
    return log_norm(p) - log_norm(q) + ((q - p) * expected_log(q)).sum(-1)


def sample(alpha: Tensor, generator: torch.Generator) -> Tensor:
    """One draw of p ~ Dir(alpha) for each row; in logs first, so that tiny parameters do not give 0/0."""
    return log_sample(alpha, generator).exp()


def log_sample(alpha: Tensor, generator: torch.Generator) -> Tensor:
    """One draw of log p. Gamma(a) = Gamma(a + 1) * U^(1/a), so a tiny parameter does not underflow."""
    gamma = torch._standard_gamma(alpha + 1, generator)
    uniform = torch.rand(alpha.shape, generator=generator, dtype=alpha.dtype, device=alpha.device)
    log_gamma = gamma.log() + uniform.clamp_min(torch.finfo(alpha.dtype).tiny).log() / alpha
    return log_gamma - torch.logsumexp(log_gamma, -1, keepdim=True)


def fit_from_logs(mean_log: Tensor, alpha: Tensor, rounds: int = 5) -> Tensor:
    """Steps towards the maximum likelihood Dirichlet of E[log p] (Minka 2000, the fixed point of eq. 9).

    Each round solves digamma(new) = digamma(sum(alpha)) + mean_log and never lowers the likelihood.
    """
    for _ in range(rounds):
        alpha = inverse_digamma(torch.digamma(alpha.sum(-1, keepdim=True)) + mean_log)
    return alpha


def inverse_digamma(y: Tensor) -> Tensor:
    """x with digamma(x) = y, by Newton's method from Minka's start (five rounds: 14 digits)."""
    x = torch.where(y >= -2.22, y.exp() + 0.5, -1 / (y - torch.digamma(torch.ones_like(y))))
    for _ in range(5):
        x = x - (torch.digamma(x) - y) / torch.polygamma(1, x)
    return x
