"""With a network that says nothing the learners are the label-only methods of the foundation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import voxpop as vp
from tests.crowds import Crowd, coin_tables, crowd
from tests.learn.crowds import Constant, alike, data_of, features
from voxpop.learn.learner import Learner

EPOCHS = 15
FULL = 10_000


def many(K: int = 3) -> Crowd:
    return crowd(1, N=60, M=8, K=K, per_task=4)


def fitted(learner: Learner, c: Crowd) -> vp.Consensus:
    return learner.fit(features(c), c.votes).consensus_


def same(found: vp.Consensus, expected: vp.Consensus, more: float = 0.0) -> None:
    """The same belief, and along the way the same bounds (but for a constant ``more``).

    The last E-step of a learner comes after its last epoch.
    """
    np.testing.assert_allclose(found.belief, expected.belief, atol=1e-5)
    bounds = np.array([info.bound for info in expected.history])[:EPOCHS] + more
    if not np.isnan(bounds).any():
        np.testing.assert_allclose([info.bound for info in found.history], bounds, rtol=1e-5)


@pytest.mark.parametrize("K", [2, 3])
def test_aggnet_is_dawid_skene_with_classes_alike(K: int) -> None:
    learner = vp.AggNet(alike(K), epochs=EPOCHS, smoothing=0.05)
    method = vp.DawidSkene(class_prior="uniform", smoothing=0.05, max_iter=EPOCHS + 1, tol=0)
    same(fitted(learner, many(K)), method.infer(many(K).votes))


PROTOTYPES = torch.from_numpy(coin_tables(np.array([0.9, 0.6, 1 / 3]), 3))


@pytest.mark.parametrize("prior", ["dirichlet", "one-coin", "two-coin", PROTOTYPES], ids=lambda p: str(p)[:8])
def test_deep_mf_is_mean_field(prior: Any) -> None:
    learner = vp.DeepMF(alike(3), epochs=EPOCHS, workers_prior=prior, alpha=(3.0, 1.5))
    method = vp.MeanField(workers_prior=prior, alpha=(3.0, 1.5), max_iter=EPOCHS + 1, tol=0)
    same(fitted(learner, many()), method.infer(many().votes))


@pytest.mark.parametrize(("prior", "K"), [("one-coin", 2), (PROTOTYPES, 3)], ids=["exact", "prototypes"])
def test_deep_bp_is_belief_propagation(prior: Any, K: int) -> None:
    """Messages go on over the epochs, so it is the passes of all together that count."""
    learner = vp.DeepBP(alike(K), epochs=EPOCHS, workers_prior=prior, passes=1)
    method = vp.BeliefPropagation(workers_prior=prior, max_iter=EPOCHS + 1, tol=0)
    same(fitted(learner, many(K)), method.infer(many(K).votes))


@pytest.mark.parametrize("prior", ["dirichlet", "one-coin", "two-coin"])
def test_deep_bps_draws_are_those_of_belief_propagation(prior: str) -> None:
    """The first draws around the mean field; later ones move with it, so after many epochs it is near, not equal."""
    c = many()
    expected = vp.BeliefPropagation(workers_prior=prior, max_iter=5, tol=1e-4).infer(c.votes).belief
    learner = vp.DeepBP(alike(3), workers_prior=prior, passes=5)
    objective = learner.objective(alike(3), data_of(c))
    objective.refresh(data_of(c), None)
    np.testing.assert_allclose(objective.believed(), expected, atol=1e-6)
    later = fitted(vp.DeepBP(alike(3), epochs=EPOCHS, workers_prior=prior, samples=1000), c).belief
    settled = vp.BeliefPropagation(workers_prior=prior, samples=1000).infer(c.votes).belief
    assert float((later - settled).abs().mean()) < 0.01


def test_bayes_dgc_in_full_batches_is_bayes_gc() -> None:
    """A natural step of size one on all the data is the conjugate update: iteration by iteration the same.

    The bound knows of the network's log 1/K of each task: eq. 4 is not normalised.
    """
    c = many()
    learner = vp.BayesDGC(alike(3), epochs=EPOCHS, batch_size=FULL)
    same(fitted(learner, c), vp.BayesGC(max_iter=EPOCHS + 1, tol=0).infer(c.votes), -c.N * np.log(3))


def test_class_frequencies_that_the_network_knows_too_count_once_in_bayes_dgc() -> None:
    """A network that says how frequent classes are and no more adds nothing to pi; in eq. 4 as it stands it does."""
    c = many()
    expected = vp.BayesGC(max_iter=EPOCHS + 1, tol=0).infer(c.votes).belief
    rare = Constant(torch.tensor([0.8, 0.15, 0.05]).log())
    once, twice = (fitted(vp.BayesDGC(rare, epochs=EPOCHS, batch_size=FULL, ratio=r), c).belief for r in (True, False))
    np.testing.assert_allclose(once, expected, atol=1e-5)
    assert float((twice - expected).abs().max()) > 0.1
    assert float(twice[:, 2].sum()) < float(once[:, 2].sum())


@pytest.mark.parametrize(("decay", "near"), [(0.0, 0.06), (0.7, 0.02)], ids=["constant", "Robbins-Monro"])
def test_bayes_dgc_in_small_batches_ends_near_bayes_gc(decay: float, near: float) -> None:
    c = crowd(1, N=120, M=6, K=3, per_task=4)
    learner = vp.BayesDGC(alike(3), epochs=40, batch_size=24, decay=decay)
    expected = vp.BayesGC(tol=1e-9, max_iter=500).infer(c.votes).belief
    assert float((fitted(learner, c).belief - expected).abs().mean()) < near
    shares = learner.pi_posterior_ / learner.pi_posterior_.sum()
    assert np.abs(shares - ((expected.sum(0) + 1.1) / (120 + 3 * 1.1)).numpy()).max() < near


def test_raykar_without_features_is_dawid_skene_with_his_prior() -> None:
    """Beta priors of (2, 1.1) are one pseudo vote for the right label and a tenth for each wrong one."""
    c = many()
    known = np.tile(np.where(np.eye(3, dtype=bool), 1.0, 0.1) / 1.2, (c.M, 1, 1))
    method = vp.DawidSkene(
        class_prior="uniform", smoothing=0.0, error_rates=known, error_rate_votes=1.2, max_iter=500, tol=1e-10
    )
    found = fitted(vp.Raykar(alike(3), epochs=100), c)
    np.testing.assert_allclose(found.belief, method.infer(c.votes).belief, atol=2e-3)
