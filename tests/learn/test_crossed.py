"""Truths are inferred by networks that have not seen the votes on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn

import voxpop as vp
from tests.crowds import crowd
from voxpop.engines.events import listening
from voxpop.learn import crossed, held_out
from voxpop.learn.data import Data
from voxpop.learn.rows import TensorRows


def rote(votes: vp.Votes) -> tuple[vp.CrowdLayer, Tensor]:
    """A learner that can only learn by heart: a feature for each task."""
    learner = vp.CrowdLayer(nn.Linear(votes.N, votes.K), simplex=True, lr=0.3, epochs=40)
    return learner, torch.eye(votes.N)


def test_what_was_learned_by_heart_does_not_count_twice() -> None:
    """Features tell nothing here, so the network can say nothing that the votes have not: with it they would be
    surer, and wrong more often; crossed, the belief is that of the votes."""
    c = crowd(1, N=200, M=8, K=3, per_task=3)
    learner, x = rote(c.votes)
    apart = learner.fit(x, c.votes)
    by_heart = clone(learner).set_params(cross_fit=False).fit(x, c.votes)

    def gap(found: vp.Consensus) -> float:
        """Confidence beyond accuracy."""
        right = found.belief.argmax(1) == torch.as_tensor(c.truth)
        return float(found.belief.max(1).values.mean() - right.double().mean())

    assert gap(by_heart.consensus_) > gap(apart.consensus_) + 0.02
    unseen = apart.crossed(apart._data(x, c.votes, None), 40, None)
    assert unseen is not None
    told = (unseen.logp / unseen.temperature).softmax(1)
    assert float(told.max()) < 0.6  # of a feature that was never on, there is nothing to say


def test_each_task_is_inferred_without_its_votes() -> None:
    """The votes on a task may change as they like: what is said of it before they are counted does not."""
    c = crowd(2, N=40, M=6, K=3, per_task=3)
    rng = np.random.default_rng(0)
    rows = TensorRows(torch.from_numpy(rng.normal(size=(40, 4))).float())
    learner = vp.CrowdLayer("linear", simplex=True, epochs=5)
    before = learner.crossed(Data(rows, c.votes), 5, None)
    assert before is not None
    assert before.tasks.sort().values.tolist() == list(range(40))
    task = int(before.tasks[0])
    label = torch.where(c.votes.task == task, (c.votes.label + 1) % 3, c.votes.label)
    votes = vp.Votes.from_arrays(
        c.votes.task.numpy(), c.votes.worker.numpy(), label.numpy(), tasks=range(40), workers=range(6), classes=range(3)
    )
    after = learner.crossed(Data(rows, votes), 5, None)
    assert after is not None
    assert torch.allclose(before.over(40)[task], after.over(40)[task], atol=1e-6)
    assert not torch.allclose(before.over(40), after.over(40), atol=1e-3)


def test_what_was_held_out_already_is_taken() -> None:
    c = crowd(2, N=40, M=6, K=3, per_task=3)
    rng = np.random.default_rng(0)
    learner = vp.CrowdLayer("linear", simplex=True)
    data = learner._data(rng.normal(size=(40, 4)).astype(np.float32), c.votes, None)
    chosen, choice = learner._chosen(data)
    assert choice is not None
    assert chosen.crossed(data, choice.epochs, choice.held) is choice.held
    some = held_out.Held(choice.held.tasks[1:], choice.held.logp[1:], 1.0)
    assert crossed.fit(chosen._maker(), data, chosen._settings(), 1, some) is not some


@pytest.mark.parametrize("gold", [None, {3: 1, 4: 0}])
def test_tasks_without_votes_and_known_truths_stay(gold: dict[int, int] | None) -> None:
    c = crowd(2, N=30, M=6, K=3, per_task=3)
    votes = vp.Votes.from_arrays(
        c.votes.task.numpy() + 5, c.votes.worker.numpy(), c.votes.label.numpy(), tasks=range(35), classes=range(3)
    )
    x = np.random.default_rng(0).normal(size=(35, 4)).astype(np.float32)
    said: list[str] = []
    with listening(lambda event: said.append(event.stage)):
        learner = vp.CrowdLayer("linear", simplex=True, epochs=5).fit(x, votes, gold=gold)
    assert "inferring each half by the other" in said
    belief = learner.consensus_.belief
    assert torch.isfinite(belief).all()
    silent = [task for task in range(5) if task not in (gold or {})]
    assert np.allclose(belief[silent], learner.predict_proba(x)[silent], atol=1e-5)
    for task, label in (gold or {}).items():
        assert belief[task, label] == 1
