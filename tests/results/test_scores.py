"""voxpop.results.scores against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss

from voxpop.engines.outcome import Status
from voxpop.errors import BadInput
from voxpop.results import Consensus
from voxpop.results.scores import calibration_bins, calibration_error
from voxpop.votes import Votes


def found(belief: np.ndarray) -> Consensus:
    n, k = belief.shape
    votes = Votes.from_arrays(np.arange(n), np.zeros(n, int), np.zeros(n, int), tasks=range(n), classes=range(k))
    return Consensus(votes, torch.tensor(belief, dtype=torch.float32), "Test", Status.EXACT)


def test_scores_equal_scikit_learn_on_the_tasks_with_known_truth() -> None:
    rng = np.random.default_rng(0)
    belief, truth = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    known = rng.permutation(50)[:30]
    scores = found(belief).evaluate({int(i): int(truth[i]) for i in known})
    best = belief.argmax(1)
    assert scores["tasks"] == 30
    assert scores["accuracy"] == pytest.approx(accuracy_score(truth[known], best[known]))
    assert scores["f1"] == pytest.approx(f1_score(truth[known], best[known], average="macro"))
    assert scores["log_loss"] == pytest.approx(log_loss(truth[known], belief[known], labels=[0, 1, 2]), rel=1e-5)
    assert scores["confidence"] == pytest.approx(belief[known].max(1).mean(), rel=1e-5)


def test_truths_of_other_tasks_are_left_out_and_truths_of_no_class_are_misses() -> None:
    belief = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    scores = found(belief).evaluate({0: 0, 1: 7, 99: 0})
    assert scores["tasks"] == 2
    assert scores["accuracy"] == 0.5
    with pytest.raises(BadInput, match="none of the 1 tasks"):
        found(belief).evaluate({99: 0})


def test_calibration_error_by_hand() -> None:
    sure = torch.tensor([0.6, 0.9, 0.6, 0.9, 0.9, 0.6])
    hit = torch.tensor([1.0, 1, 0, 1, 0, 1])
    assert calibration_bins(sure.double(), hit.double(), 2) == [
        (pytest.approx(0.6), pytest.approx(2 / 3), 3),
        (pytest.approx(0.9), pytest.approx(2 / 3), 3),
    ]
    assert calibration_error(sure.double(), hit.double(), 2) == pytest.approx((abs(0.6 - 2 / 3) + abs(0.9 - 2 / 3)) / 2)


def test_confidence_that_is_honest_has_little_error() -> None:
    rng = np.random.default_rng(0)
    sure = torch.tensor(rng.uniform(0.5, 1, 50_000))
    honest = torch.tensor(rng.random(50_000)) < sure
    assert calibration_error(sure, honest.double()) < 0.01
    assert calibration_error(sure.sqrt(), honest.double()) > 0.05


def test_without_any_truth_there_is_nothing_to_evaluate() -> None:
    with pytest.raises(BadInput, match="nothing to evaluate"):
        found(np.full((2, 2), 0.5)).evaluate({})
