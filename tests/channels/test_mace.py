"""MACE: its update against loops over both latent variables, and against the gradient of its own Q."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.crowds import crowd
from voxpop.channels.mace import Spamming
from voxpop.channels.own_label import own_belief

PSEUDO = (0.3, 0.7, 0.5)  # trust, spam, label


def setting(seed: int, rounds: int) -> tuple[Spamming, dict, np.ndarray, object]:
    c = crowd(seed, N=20, M=5, K=3, per_task=3)
    belief = torch.tensor(np.random.default_rng(seed).dirichlet(np.full(3, 0.5), 20))
    channel = Spamming(*PSEUDO, rounds=rounds)
    stats = channel.stats(c.votes.whole, belief)
    return channel, stats, own_belief(c.votes.whole, belief).numpy(), c


def q_of(right: np.ndarray, c: object, trust: torch.Tensor, spam: torch.Tensor) -> torch.Tensor:
    """E over the truths of log p(votes | truths, trust, spam) + log priors: what the M-step must raise."""
    votes = c.votes  # type: ignore[attr-defined]
    total = torch.zeros((), dtype=torch.float64)
    for r, w, label in zip(right, votes.worker.tolist(), votes.label.tolist(), strict=True):
        guess = (1 - trust[w]) * spam[w, label]
        total = total + r * torch.log(trust[w] + guess) + (1 - r) * torch.log(guess)
    prior = PSEUDO[0] * trust.log() + PSEUDO[1] * torch.log1p(-trust)
    return total + prior.sum() + PSEUDO[2] * spam.log().sum()


@pytest.mark.parametrize("seed", range(20))
def test_every_round_raises_q(seed: int) -> None:
    channel, stats, right, c = setting(seed, rounds=1)
    theta = channel.update(stats, None)
    values = []
    for _ in range(6):
        values.append(q_of(right, c, theta["trust"], theta["spam"]).item())
        theta = channel.update(stats, theta)
    assert (np.diff(values) >= -1e-10).all()
    assert values[-1] > values[0]


def test_one_round_equals_em_over_truth_and_spamming_written_as_loops() -> None:
    channel, stats, right, c = setting(3, rounds=1)
    trust, spam = np.array([0.2, 0.4, 0.5, 0.7, 0.9]), np.random.default_rng(0).dirichlet(np.ones(3), 5)
    theta = channel.update(stats, {"trust": torch.tensor(trust), "spam": torch.tensor(spam)})
    honest, lazy = np.full(5, PSEUDO[0]), np.full((5, 3), 0.0)
    votes = c.votes  # type: ignore[attr-defined]
    for r, w, label in zip(right, votes.worker.tolist(), votes.label.tolist(), strict=True):
        knew = trust[w] / (trust[w] + (1 - trust[w]) * spam[w, label])  # if right; a wrong vote is spam for sure
        honest[w] += r * knew
        lazy[w, label] += r * (1 - knew) + (1 - r)
    np.testing.assert_allclose(theta["trust"], honest / (honest + lazy.sum(1) + PSEUDO[1]), rtol=1e-9)
    expected = lazy + PSEUDO[2]
    np.testing.assert_allclose(theta["spam"], expected / expected.sum(1, keepdims=True), rtol=1e-9)


def test_many_rounds_end_where_the_gradient_is_zero() -> None:
    """Finite differences of Q along trust, and along every direction in which a row of spam stays on the simplex."""
    channel, stats, right, c = setting(5, rounds=1000)
    theta = channel.update(stats, None)
    trust, spam, h = theta["trust"], theta["spam"], 1e-5
    for w in range(5):
        for plus, minus in ((0, 1), (1, 2)):
            values = []
            for sign in (-h, h):
                moved = spam.clone()
                moved[w, plus] += sign
                moved[w, minus] -= sign
                values.append(q_of(right, c, trust, moved).item())
            assert (values[1] - values[0]) / (2 * h) == pytest.approx(0, abs=1e-3)
        values = []
        for sign in (-h, h):
            moved = trust.clone()
            moved[w] += sign
            values.append(q_of(right, c, moved, spam).item())
        assert (values[1] - values[0]) / (2 * h) == pytest.approx(0, abs=1e-3)


def test_a_spammer_is_found_with_his_favourite() -> None:
    from voxpop.methods.mace import MACE

    honest = np.zeros((8, 3, 3)) + np.eye(3) * 0.85 + 0.05
    spammer = np.tile([0.1, 0.8, 0.1], (1, 3, 1))
    c = crowd(0, N=150, M=9, K=3, per_task=6, table=np.concatenate([honest, spammer]))
    found = MACE().infer(c.votes)
    assert found.evidence is not None
    theta = found.evidence.theta
    assert theta["trust"][8] < 0.15 < 0.6 < theta["trust"][:8].min()
    np.testing.assert_allclose(theta["spam"][8], [0.1, 0.8, 0.1], atol=0.12)
