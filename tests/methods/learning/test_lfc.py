"""LFC: logistic regression with a logistic reliability of each worker in all features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import voxpop as vp
from voxpop.votes import Votes


def crowd(seed: int = 0, N: int = 400, M: int = 5) -> tuple[np.ndarray, np.ndarray, Votes]:
    """Two classes along one axis; workers 0 to 3 are right where the other axis says, and worker 4 always lies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2)).astype(np.float32)
    truth = (X[:, 0] > 0).astype(int)
    right = np.stack([X[:, 1] > 0, X[:, 1] > 0, X[:, 1] < 0, X[:, 1] < 0, np.zeros(N, bool)], 1)
    right = np.where(rng.random((N, M)) < 0.9, right, ~right)
    right[:, :4] |= rng.random((N, 4)) < 0.6
    Y = np.where(right, truth[:, None], 1 - truth[:, None])
    return X, truth, Votes.from_matrix(Y)


def test_weights_of_workers_say_where_they_are_right() -> None:
    X, truth, votes = crowd()
    learner = vp.LFC(epochs=30, lr=0.05).fit(X, votes)
    assert (learner.consensus_.label.numpy() == truth).mean() > 0.9
    assert (learner.predict(X) == truth).mean() > 0.9
    weights = learner.objective_.theta["workers"]  # M,D+1: w_j and g_j
    assert (weights[:2, 1] > 0.3).all()
    assert (weights[2:4, 1] < -0.3).all()
    assert weights[4, 2] < -1


def test_its_channel_is_dalcs_without_topics() -> None:
    """p(right) = sigmoid(w_j' x + g_j) of rows as the network sees them."""
    X, _, votes = crowd(1, N=60)
    learner = vp.LFC(epochs=3).fit(X, votes)
    x = learner.objective_.lift(torch.from_numpy(X))
    u = learner.objective_.theta["workers"]
    expected = torch.sigmoid(x @ u[:, :-1].t() + u[:, -1])  # N,M
    found = learner.reliability_.sort("task", "worker")["reliability"].to_numpy()
    assert found == pytest.approx(expected.flatten().numpy(), abs=1e-5)
    assert "map" not in learner.objective_.theta
    assert float(learner.objective_.theta["mean"].norm()) == 0
