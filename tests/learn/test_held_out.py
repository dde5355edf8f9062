"""What held-out votes are asked: the votes of a task together, at the temperature that suits them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor, nn

import voxpop as vp
from tests.crowds import crowd
from tests.learn.crowds import data_of, features
from voxpop.learn import held_out
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective, asking
from voxpop.learn.rows import TensorRows

RIGHT = 0.8


def corners(tasks: int, per_task: int, seed: int = 0) -> Data:
    """Two classes that the features tell for certain; each vote is right with a chance of 0.8."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, tasks)
    task, worker = np.repeat(np.arange(tasks), per_task), np.tile(np.arange(per_task), tasks)
    label = np.where(rng.random(len(task)) < RIGHT, truth[task], 1 - truth[task])
    x = torch.eye(2)[torch.from_numpy(truth)]
    return Data(TensorRows(x), vp.Votes.from_arrays(task, worker, label, tasks=range(tasks), classes=range(2)))


def explained(data: Data, sure: float, right: float, learner: Learner | None = None) -> Objective:
    """A network that is right with the chance ``sure``, and workers who are with the chance ``right``."""
    net = nn.Linear(2, 2, bias=False)
    objective = (learner or vp.CrowdLayer(simplex=True)).objective(net, data).double()
    with torch.no_grad():
        net.weight.copy_(math.log(sure / (1 - sure)) * torch.eye(2))
        objective.crowd.common.copy_(math.log(right / (1 - right)) * torch.eye(2)[:, None])
        objective.crowd.own.zero_()
    return objective


def asked(objective: Objective, data: Data) -> tuple[Tensor, Tensor]:
    """What it says of each vote, and of each task's votes together."""
    x = data.rows.take(data.positions).double()
    with asking(objective):
        return objective.foretell(x, data.votes.whole), objective.together(x, data.votes.whole)


ALMOST = 1 - 1e-9


def test_one_by_one_votes_cannot_tell_blurred_truths_from_blurred_workers_but_together_they_can() -> None:
    data = corners(500, 3)
    exact, blurred = explained(data, ALMOST, RIGHT), explained(data, RIGHT, ALMOST)
    (one, together), (other, merged) = asked(exact, data), asked(blurred, data)
    assert torch.allclose(one, other, atol=1e-6)
    assert float(together.mean() - merged.mean()) > 1


def test_a_single_vote_together_is_itself() -> None:
    data = corners(50, 1)
    one, together = asked(explained(data, 0.7, RIGHT), data)
    assert torch.allclose(one, together)


@pytest.mark.parametrize("learner", [vp.CrowdLayer(simplex=True), vp.COINNet(price=0.5, volume=0.0)])
def test_together_is_the_sum_over_truths_of_products(learner: Learner) -> None:
    """Items count as ordinary before their votes are seen, also where COINNet would call them odd."""
    data = corners(40, 3)
    _, together = asked(explained(data, 0.9, 0.7, learner), data)
    p = np.array([[0.9, 0.1], [0.1, 0.9]])[data.rows.take(data.positions).argmax(1).numpy()]
    table = np.array([[0.7, 0.3], [0.3, 0.7]])
    label = data.votes.label.view(40, 3).numpy()
    assert np.allclose(together, np.log((p * table[:, label].prod(2).T).sum(1)))


def test_heads_that_share_no_truth_are_independent_given_the_features() -> None:
    data = corners(40, 3)
    objective = vp.DoctorNet().objective(nn.Linear(2, 2), data).double()
    one, together = asked(objective, data)
    assert torch.allclose(one.view(40, 3).sum(1), together)


@pytest.mark.parametrize("t", [1.0, 0.4, 2.5])
def test_the_temperature_is_found_again(t: float) -> None:
    rng = np.random.default_rng(1)
    logits = torch.from_numpy(rng.normal(size=(4000, 3)) * 1.5)
    truth = torch.distributions.Categorical(logits=logits).sample()
    say = torch.full((3, 3), 0.1, dtype=torch.float64) + 0.7 * torch.eye(3)
    labels = [torch.distributions.Categorical(say[truth]).sample() for _ in range(3)]
    given = sum(say[:, label].T.log() for label in labels)
    found = held_out.temperature((t * logits).log_softmax(1), given)
    assert found == pytest.approx(t, rel=0.15)
    if t == 1:
        assert found == 1  # what chance alone could gain is not taken


def test_the_variant_is_what_the_votes_say_and_is_told_at_its_temperature() -> None:
    c = crowd(2, N=60, M=6, K=3, per_task=3)
    data = data_of(c)
    learner = vp.GeoCrowdNet("linear", lr=0.05)
    chosen, choice = learner._by_held_out(data, learner.variants(data))
    assert choice is not None
    alone = [learner._best_of(data, {name: changes})[1] for name, changes in learner.variants(data).items()]
    assert choice.score == choice.foretold == max(each.foretold for each in alone if each is not None)
    assert choice.foretold >= choice.curve[choice.epochs - 1]
    assert f"volume of F {chosen.weight:g}" in choice.name


def test_the_network_meets_the_votes_at_the_temperature_that_was_found(tmp_path: Path) -> None:
    """In beliefs and forecasts alike, also after a file; what is explained adds up to the belief."""
    c = crowd(3, N=80, M=6, K=3, per_task=3)
    x = features(c, far=0.5)
    learner = vp.CrowdLayer("linear", simplex=True, lr=0.3, epochs=15, cross_fit=False)
    data = learner._data(x, c.votes, None)
    learner._learn(data, *learner._by_held_out(data, {"": {}}))
    assert learner.temperature_ > 1  # it knows the training tasks too well
    log = learner.objective_.log_table().numpy()  # M,K,K as [worker, truth, label]
    given = np.zeros((80, 3))
    votes = c.votes
    np.add.at(given, votes.task.numpy(), log[votes.worker.numpy(), :, votes.label.numpy()])
    belief = softmax(np.log(learner.predict_proba(x)) + given, 1)
    np.testing.assert_allclose(learner.consensus_.belief, belief, atol=1e-5)
    np.testing.assert_allclose(learner.forecast(x, votes), belief, atol=1e-5)
    learner.save(tmp_path / "m.vox")
    np.testing.assert_allclose(vp.load(tmp_path / "m.vox").forecast(x, votes), belief, atol=1e-5)


# -- which variants are tried ---------------------------------------------------------------------


class Asked:
    """In place of ``choose``: remembers what was tried, and prefers what comes last."""

    def __init__(self) -> None:
        self.tried: list[list[str]] = []

    def __call__(self, makers: Mapping[str, Any], *others: Any, **more: Any) -> held_out.Choice:
        self.tried.append(list(makers))
        return held_out.Choice(list(makers)[-1], 1, 0.0, (0.0,), float(len(self.tried)))


@pytest.mark.parametrize(
    ("learner", "first", "then"),
    [
        (vp.MaxMIG(), ["counts 0.01", "identity 0.01", "average 0.01"], ["average 0.003", "average 0.03"]),
        (vp.MaxMIG(start="identity"), ["identity 0.01", "identity 0.003", "identity 0.03"], None),
        (vp.MaxMIG(crowd_lr=0.02), ["counts 0.02", "identity 0.02", "average 0.02"], None),
        (vp.COINNet(), ["6 0", "6 0.01", "6 0.1"], ["3 0.1", "20 0.1"]),
        (vp.COINNet(volume=0.5), ["6 0.5"], ["3 0.5", "20 0.5"]),
        (vp.COINNet(price=2.0, epochs=1), ["2 0", "2 0.01", "2 0.1"], None),
    ],
)
def test_what_is_best_is_refined(
    learner: Learner, first: list[str], then: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    monkeypatch.setattr(held_out, "choose", asked)
    data = data_of(crowd(2, N=20, M=4, K=3, per_task=2))
    chosen, _ = learner._chosen(data)
    told = [
        [" ".join(word.strip(",") for word in name.split() if _value(word)) for name in names] for names in asked.tried
    ]
    assert told == [first, *([then] if then else [])]
    assert (chosen.start if isinstance(chosen, vp.MaxMIG) else f"{chosen.price:g}") in (then or first)[-1]


def _value(word: str) -> bool:
    word = word.strip(",")
    return word in ("counts", "identity", "average") or word.replace(".", "").isdigit()


def test_nothing_is_tried_where_all_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr(held_out, "choose", asked)
    data = data_of(crowd(2, N=20, M=4, K=3, per_task=2))
    for learner in (vp.MaxMIG(start="identity", crowd_lr=0.02, epochs=1), vp.COINNet(price=1.0, volume=0.0, epochs=1)):
        assert learner._chosen(data)[1] is None
    assert asked.tried == []
