"""Top-k scores of a ranking, ties in the mean over all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from voxpop.errors import BadInput
from voxpop.results.ranking import rank_scores


def test_without_ties_it_is_scikit_learns():
    rng = np.random.default_rng(0)
    truth = (rng.random(200) < 0.2).astype(int)
    score = rng.random(200) + 0.5 * truth
    called = np.zeros(200, int)
    called[np.argsort(-score)[: truth.sum()]] = 1
    found = rank_scores(torch.from_numpy(score), torch.from_numpy(truth))
    assert found["accuracy"] == pytest.approx(accuracy_score(truth, called))
    assert found["f1"] == pytest.approx(f1_score(truth, called))
    assert found["auc"] == pytest.approx(roc_auc_score(truth, score))


def test_ties_are_the_mean_over_all_orders():
    score, truth = torch.tensor([2.0, 1, 1, 1, 0]), torch.tensor([1, 1, 0, 0, 1])
    found = rank_scores(score, truth)
    every = []
    for order in permutations(range(5)):
        broken = score + torch.tensor(order) * 1e-3
        every.append([rank_scores(broken, truth)[name] for name in ("accuracy", "f1", "auc")])
    assert [found[name] for name in ("accuracy", "f1", "auc")] == pytest.approx(np.mean(every, 0))
    assert found["auc"] == pytest.approx(roc_auc_score(truth, score))


@pytest.mark.parametrize(("truth", "message"), [([0, 0], "one class"), ([0, 2], "0 or 1"), ([0, 1, 1], "each task")])
def test_what_cannot_be_ranked(truth, message):
    with pytest.raises(BadInput, match=message):
        rank_scores(torch.rand(2), torch.tensor(truth))
