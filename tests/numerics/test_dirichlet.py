"""voxpop.numerics.dirichlet against SciPy, quadrature, and draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator

ALPHAS = [[2.0, 1.0], [0.3, 0.2], [1.0, 1.0], [40.0, 3.5], [5.0, 0.5, 0.5], [0.01, 3.0, 1.0, 1.0]]


def t(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
def test_expected_log_is_the_gradient_of_the_log_normaliser(alpha: list[float]) -> None:
    a = t(alpha).requires_grad_()
    (slope,) = torch.autograd.grad(dirichlet.log_norm(a), a)
    np.testing.assert_allclose(dirichlet.expected_log(t(alpha)), slope, rtol=1e-9)
    h = 1e-4 * np.array(alpha)
    for k in range(len(alpha)):
        up, down = np.array(alpha), np.array(alpha)
        up[k] += h[k]
        down[k] -= h[k]
        number = (dirichlet.log_norm(t(up)) - dirichlet.log_norm(t(down))) / (2 * h[k])
        assert dirichlet.expected_log(t(alpha))[k].item() == pytest.approx(number.item(), rel=1e-5)


@pytest.mark.parametrize(("q", "p"), [((2.0, 1.5), (1.0, 1.0)), ((3.0, 7.0), (2.0, 1.0)), ((1.2, 1.0), (30.0, 4.0))])
def test_kl_of_betas_equals_quadrature(q: tuple[float, float], p: tuple[float, float]) -> None:
    def integrand(x: float) -> float:
        return stats.beta.pdf(x, *q) * (stats.beta.logpdf(x, *q) - stats.beta.logpdf(x, *p))

    expected, _ = integrate.quad(integrand, 0, 1)
    assert dirichlet.kl(t(q), t(p)).item() == pytest.approx(expected, rel=1e-6)


def test_kl_of_dirichlets_equals_the_mean_over_draws() -> None:
    q, p = t([4.0, 1.5, 2.0]), t([1.0, 1.0, 3.0])
    draws = dirichlet.log_sample(q.expand(200_000, 3).contiguous(), generator(0, "kl"))
    difference = ((q - p) * draws).sum(1) - dirichlet.log_norm(q) + dirichlet.log_norm(p)
    error = difference.std() / len(draws) ** 0.5
    assert abs(difference.mean() - dirichlet.kl(q, p)) < 4 * error
    assert dirichlet.kl(q, q).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("alpha", [[2.0, 1.0], [0.5, 0.2, 3.0]], ids=str)
def test_draws_have_the_moments_of_the_distribution(alpha: list[float]) -> None:
    n = 100_000
    p = dirichlet.sample(t(alpha).expand(n, len(alpha)).contiguous(), generator(1, "moments"))
    mean, variance = stats.dirichlet.mean(alpha), stats.dirichlet.var(alpha)
    assert (np.abs(p.mean(0).numpy() - mean) < 4 * np.sqrt(variance / n)).all()
    np.testing.assert_allclose(p.var(0), variance, rtol=0.03)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-12)


def test_tiny_parameters_give_logs_that_are_numbers() -> None:
    """Gamma(0.001) underflows to zero more often than not; its logarithm need not."""
    a = 1e-3
    logs = dirichlet.log_sample(torch.full((20_000, 2), a, dtype=torch.float64), generator(2, "tiny"))
    assert torch.isfinite(logs).all()
    np.testing.assert_allclose(torch.logsumexp(logs, 1), 0, atol=1e-12)
    odds = (logs[:, 0] - logs[:, 1]).numpy()  # difference of two log Gamma(a): variance 2 trigamma(a)
    assert np.var(odds) == pytest.approx(2 * special.polygamma(1, a), rel=0.06)
    assert abs(odds.mean()) < 4 * odds.std() / len(odds) ** 0.5


@pytest.mark.parametrize("x", [1e-8, 1e-3, 0.1, 0.5, 1.0, 1.4616, 7.0, 1e3, 1e7])
def test_inverse_digamma_inverts(x: float) -> None:
    assert dirichlet.inverse_digamma(t([special.digamma(x)])).item() == pytest.approx(x, rel=1e-9)


def test_fit_from_logs_finds_the_dirichlet_of_its_own_expectation() -> None:
    """E[log p] of Dir(alpha) has Dir(alpha) as its maximum likelihood; the likelihood rises on the way."""
    alpha = t([3.0, 0.8, 1.5])
    mean_log = dirichlet.expected_log(alpha)

    def likelihood(a: torch.Tensor) -> float:
        return float(((a - 1) * mean_log).sum() - dirichlet.log_norm(a))

    now = t([1.0, 1.0, 1.0])
    for _ in range(200):
        ahead = dirichlet.fit_from_logs(mean_log, now, rounds=1)
        assert likelihood(ahead) >= likelihood(now) - 1e-12
        now = ahead
    np.testing.assert_allclose(now, alpha, rtol=1e-4)
