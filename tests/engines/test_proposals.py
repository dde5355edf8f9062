"""Draws of workers' matrices around their mean field: in blocks of workers, and kept once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import dirichlet

from tests.crowds import crowd
from voxpop.channels.worker_prior import WorkerPrior
from voxpop.engines import proposals
from voxpop.engines.bp import Particles
from voxpop.engines.proposals import Draws, propose
from voxpop.errors import TooLarge

M, K, S = 7, 3, 2000


def drawn(kind: str) -> tuple[Draws, torch.Tensor]:
    """Draws for seven workers, and the Dirichlet parameters that they are drawn around, as [worker, label, truth]."""
    prior = WorkerPrior(kind, K, 2.0, 1.0)
    shape = (M, K, K) if kind == "dirichlet" else (M, 1 if kind == "one-coin" else K, 2)
    posterior = 1 + 9 * torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return propose(prior, {"posterior": posterior}, S, 0, limit=1 << 27), posterior


@pytest.mark.parametrize("kind", ["one-coin", "two-coin", "dirichlet"])
@pytest.mark.parametrize("block", [1, 1 << 22], ids=["a worker at a time", "all at once"])
def test_draws_are_matrices_whose_weights_make_them_the_priors(
    kind: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sum of (p / q) / S is one, and the weighted mean matrix is the prior's: for every worker, in any blocks."""
    monkeypatch.setattr(proposals, "BLOCK", block)
    found, _ = drawn(kind)
    assert found.tables.shape == (M, S, K, K)
    assert torch.allclose(found.tables.sum(2), torch.ones(()), atol=1e-5)  # over labels
    weight = found.log_weight.double().exp()  # M,S
    assert torch.allclose(weight.sum(1), torch.ones(M, dtype=torch.float64), atol=0.15)
    right = (weight[:, :, None] * found.tables.diagonal(dim1=2, dim2=3)).sum(1) / weight.sum(1, keepdim=True)
    assert torch.allclose(right, torch.full((M, K), 2 / 3, dtype=torch.float64), atol=0.06)


def test_a_weight_is_the_prior_over_the_mixture() -> None:
    """Of two densities by SciPy, a third of the draws from the second."""
    rng = np.random.default_rng(0)
    before, wide = rng.random((K, 2)) + 0.2, rng.random((1, K, 2)) + 1.5  # C,R
    rows = rng.dirichlet(np.ones(K), (6, 2)).transpose(2, 0, 1)  # C,S,R
    p, q = (sum(dirichlet.logpdf(rows[:, :, r], alpha[:, r]) for r in range(2)) for alpha in (before, wide[0]))
    expected = p - np.log(2 / 3 * np.exp(p) + 1 / 3 * np.exp(q)) - np.log(6)
    log_rows = torch.from_numpy(rows).log().float()[None]
    found = proposals._log_weight(torch.from_numpy(before), torch.from_numpy(wide), log_rows, 1 / 3)
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


def test_what_is_drawn_is_what_messages_read() -> None:
    """No second copy of all workers' draws is made."""
    found, _ = drawn("dirichlet")
    factor = Particles(crowd(1, N=10, M=M, K=K, per_task=2).votes.whole, found.tables, found.log_weight)
    assert factor._rows.data_ptr() == found.tables.data_ptr()


def test_too_many_draws_are_refused_with_the_number_that_fits() -> None:
    prior = WorkerPrior("dirichlet", K, 2.0, 1.0)
    with pytest.raises(TooLarge, match="set samples=15"):
        propose(prior, {"posterior": torch.ones(M, K, K, dtype=torch.float64)}, 100, 0, limit=1000)
