"""COINNet says which items are odd."""

from __future__ import annotations

import numpy as np
import torch

import voxpop as vp
from tests.crowds import Crowd, coin_tables, crowd
from tests.learn.crowds import features
from voxpop.results.ranking import rank_scores

ODD = 30


def planted(seed: int) -> tuple[Crowd, np.ndarray]:
    """300 tasks; everyone is misled on some of them, whose features say one class and whose votes another."""
    rng = np.random.default_rng(seed)
    c = crowd(seed, N=300, K=3, per_task=5, table=coin_tables(rng.uniform(0.7, 0.95, 10), 3))
    odd = np.zeros(c.N, dtype=bool)
    odd[rng.choice(c.N, ODD, replace=False)] = True
    misled = odd[c.task] & (rng.random(len(c.task)) < 0.9)
    label = np.where(misled, (c.truth[c.task] + 1) % 3, c.label)
    return Crowd(c.task, c.worker, label, c.truth, c.table), odd


def fitted(c: Crowd, **options: float) -> vp.COINNet:
    return vp.COINNet("linear", epochs=15, lr=0.03, volume=0.0, **options).fit(features(c, far=4.0), c.votes)


def test_planted_outliers_come_first() -> None:
    for seed in (0, 1):
        c, odd = planted(seed)
        found = fitted(c, price=6.0).odd_
        assert found.columns == ["task", "score"]
        assert found["score"].is_sorted(descending=True)
        score = found.sort("task")["score"].to_torch()
        assert rank_scores(score, torch.from_numpy(odd).long())["auc"] > 0.9


def test_an_odd_item_costs_its_price_at_most() -> None:
    """Where nothing may be set aside for the price, nothing is: the scores are zero, and it is CCEM."""
    c, _ = planted(0)
    dear = fitted(c, price=1e6)
    assert float(dear.odd_["score"].max()) < 1e-6
    plain = vp.CrowdLayer("linear", simplex=True, epochs=15, lr=0.03).fit(features(c, far=4.0), c.votes)
    np.testing.assert_allclose(dear.predict_proba(features(c)), plain.predict_proba(features(c)), atol=1e-3)


def test_the_classifier_is_not_misled_by_them() -> None:
    c, odd = planted(2)
    right = fitted(c, price=6.0).consensus_.labels["label"].to_numpy() == c.truth
    majority = vp.MajorityVote().infer(c.votes).labels["label"].to_numpy() == c.truth
    assert right[odd].mean() > majority[odd].mean() + 0.3
    assert right.mean() > majority.mean()


def test_the_score_is_the_length_of_what_no_matrix_explains() -> None:
    """The sum over an item's votes of |e|^2, from a of each vote as ``oddness`` has it."""
    c, _ = planted(3)
    learner = fitted(c, price=6.0)
    objective, x, votes = learner.objective_, torch.from_numpy(features(c, far=4.0)), c.votes
    with torch.no_grad():
        a, score = objective.oddness(x, votes.whole)
        p = objective.logp(x).exp()[votes.task]
        said = torch.einsum("vk,vkl->vl", p, objective.table()[votes.worker])
        e = a[:, None] * (torch.nn.functional.one_hot(votes.label.long(), 3) - said)
        expected = torch.zeros(c.N).index_add_(0, votes.task.long(), e.square().sum(1))
    assert float(score.max()) > 0.5
    assert torch.allclose(score, expected, atol=1e-4)
    assert torch.allclose(learner.odd_.sort("task")["score"].to_torch(), score, atol=1e-5)
