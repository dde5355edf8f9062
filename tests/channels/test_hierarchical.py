"""The crowd's own parameters: a fixed point that climbs, ends at the optimum, and finds the strength of the pooling."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import gammaln

from voxpop.channels.dirichlet import prior_rows
from voxpop.channels.hierarchical import HierarchicalConfusion

START, WEIGHT = prior_rows(3, 2.0, 1.0), 0.1


def objective(alpha: np.ndarray, counts: np.ndarray) -> float:
    """log Polya(counts; alpha) + log prior, as a loop. All as [(worker,) label, truth]."""
    total = 0.0
    for n in counts:
        for k in range(3):
            a, row = alpha[:, k], n[:, k]
            total += gammaln(a.sum()) - gammaln(a.sum() + row.sum()) + (gammaln(a + row) - gammaln(a)).sum()
    return total + WEIGHT * (np.log(alpha) - alpha / START.numpy()).sum()


def counts(seed: int, M: int, alpha: np.ndarray, votes: int) -> np.ndarray:
    """Counts of M workers whose rows are Dir(alpha[:, truth])."""
    rng = np.random.default_rng(seed)
    return np.stack(
        [np.stack([rng.multinomial(votes, rng.dirichlet(alpha[:, k])) for k in range(3)], 1) for _ in range(M)]
    ).astype(float)


@pytest.mark.parametrize("seed", range(10))
def test_every_round_climbs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = counts(seed, 6, rng.uniform(0.2, 8, (3, 3)), 10) * rng.uniform(0, 1, (6, 3, 3))  # expected counts
    channel, alpha = HierarchicalConfusion(START, WEIGHT), START
    values = [objective(alpha.numpy(), data)]
    for _ in range(20):
        alpha = channel._raise(torch.tensor(data), alpha)
        values.append(objective(alpha.numpy(), data))
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0]


def test_it_ends_where_finite_differences_are_zero() -> None:
    data = counts(0, 20, START.numpy() * 3, 15)
    channel, alpha = HierarchicalConfusion(START, WEIGHT), START
    for _ in range(800):
        alpha = channel._raise(torch.tensor(data), alpha)
    for place in np.ndindex(3, 3):
        up, down = alpha.numpy().copy(), alpha.numpy().copy()
        h = 1e-4 * up[place]
        up[place] += h
        down[place] -= h
        assert (objective(up, data) - objective(down, data)) / (2 * h) == pytest.approx(0, abs=5e-3)


@pytest.mark.parametrize("strength", [3.0, 30.0])
def test_the_strength_of_the_pooling_is_learned(strength: float) -> None:
    """400 workers x 40 votes a row: alpha to 15%, from the same start for a mixed crowd and one of workers alike."""
    mean = np.array([[0.8, 0.2, 0.1], [0.1, 0.6, 0.1], [0.1, 0.2, 0.8]])  # [label, truth]
    data = counts(1, 400, strength * mean, 40)
    channel, alpha = HierarchicalConfusion(START, WEIGHT), START
    for _ in range(500):
        alpha = channel._raise(torch.tensor(data), alpha)
    np.testing.assert_allclose(alpha, strength * mean, rtol=0.15)


def test_a_worker_without_votes_is_judged_like_the_crowd() -> None:
    data = np.concatenate([counts(2, 30, 10 * START.numpy(), 20), np.zeros((1, 3, 3))])
    channel = HierarchicalConfusion(START, WEIGHT)
    theta = channel.update({"counts": torch.tensor(data)}, None)
    crowd = theta["crowd"] / theta["crowd"].sum(0)
    torch.testing.assert_close(channel.table(theta)[30].double(), crowd.t(), atol=1e-6, rtol=1e-5)  # type: ignore[index]
