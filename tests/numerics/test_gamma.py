"""voxpop.numerics.gamma: the distribution, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special, stats

from voxpop.numerics.gamma import log_draws
from voxpop.numerics.seeds import generator


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 1.7, 12.0, 900.0])
def test_draws_have_the_gamma_distribution(alpha: float) -> None:
    found = log_draws(torch.full((300, 200), alpha), generator(0, "test")).double().exp().numpy()
    assert stats.kstest(found.ravel(), "gamma", args=(alpha,)).pvalue > 0.01


@pytest.mark.parametrize("alpha", [1e-3, 1e-6])
def test_a_tiny_parameter_does_not_underflow(alpha: float) -> None:
    """E[log] = digamma(alpha), about -1 / alpha: far below what exp would leave."""
    found = log_draws(torch.full((100_000,), alpha), generator(0, "test")).double()
    assert torch.isfinite(found).all()
    assert float(found.mean()) == pytest.approx(special.digamma(alpha), rel=0.02)


def test_each_number_has_a_parameter_of_its_own_and_equal_seeds_give_equal_draws() -> None:
    alpha = torch.tensor([0.3, 2.0, 50.0])[:, None].expand(-1, 20_000)
    found, again = (log_draws(alpha, generator(1, "test")) for _ in range(2))
    assert torch.equal(found, again)
    np.testing.assert_allclose(found.double().exp().mean(1), [0.3, 2.0, 50.0], rtol=0.03)
    assert bool((alpha == torch.tensor([0.3, 2.0, 50.0])[:, None]).all())  # what was given is as it was
