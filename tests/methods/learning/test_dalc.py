"""DALC: what it learns of a crowd, what it asks, and votes that come later."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from voxpop.errors import BadInput
from voxpop.methods.learning.targeted import Targeted
from voxpop.votes import Votes

K, D, M = 3, 5, 12


class World:
    """Workers who are right with the chance sigmoid(a + b'x): each is good in one direction of the space."""

    def __init__(self, seed: int = 0, tasks: int = 300, per_task: int = 4) -> None:
        rng = np.random.default_rng(seed)
        centres = 2.0 * np.eye(K, D)
        self.truth = rng.integers(0, K, tasks)
        self.X = (centres[self.truth] + rng.normal(size=(tasks, D))).astype(np.float32)
        self.slope = np.zeros((M, D))
        self.slope[:, 4] = np.where(np.arange(M) % 2, 3.0, -3.0)  # half are good where x_4 > 0, half where it is not
        self.right = 1 / (1 + np.exp(-(1.0 + self.X @ self.slope.T)))  # N,M
        self.task = np.repeat(np.arange(tasks), per_task)
        self.worker = np.concatenate([rng.permutation(M)[:per_task] for _ in range(tasks)])
        said = rng.random(len(self.task)) < self.right[self.task, self.worker]
        wrong = (self.truth[self.task] + rng.integers(1, K, len(self.task))) % K
        self.label = np.where(said, self.truth[self.task], wrong)

    def votes(self, which: Any = slice(None), tasks: Any = None) -> Votes:
        """Those votes; all tasks unless ``tasks`` are given."""
        tasks = range(len(self.X)) if tasks is None else tasks
        columns = (self.task[which], self.worker[which], self.label[which])
        return Votes.from_arrays(*columns, tasks=tasks, workers=range(M), classes=range(K))


def dalc(**how: Any) -> Any:
    return vp.DALC(**{"model": "mlp:32", "epochs": 12, "lr": 0.01, "topics": 3, "samples": 8, **how})


@cache
def world() -> World:
    return World()


@cache
def model() -> Any:
    return dalc().fit(world().X, world().votes())


def reliability(learner: Any, of: World) -> float:
    """Correlation of what is learned of each vote with what it was."""
    true = of.right[of.task, of.worker]
    found = learner.reliability_.sort("task", "worker")["reliability"].to_numpy()
    order = np.lexsort((of.worker, of.task))
    return float(np.corrcoef(true[order], found)[0, 1])


@pytest.mark.parametrize(
    "learner",
    [dalc(), dalc(inner="sgd"), dalc(low_rank=False), dalc(model="linear"), vp.LFC(epochs=12, lr=0.01)],
    ids=["DLC", "Algorithm 2", "DLC/Sparse", "DLC/LR", "LFC"],
)
def test_truths_and_the_reliability_of_each_vote_are_found(learner: Any) -> None:
    of = world()
    learner.fit(of.X, of.votes())
    assert (learner.consensus_.label.numpy() == of.truth).mean() > 0.9
    assert reliability(learner, of) > 0.75


def test_expertise_by_topic_beats_majority() -> None:
    of = world()
    majority = (vp.MajorityVote().infer(of.votes()).label.numpy() == of.truth).mean()
    assert (model().consensus_.label.numpy() == of.truth).mean() > majority + 0.02


def test_a_worker_is_good_where_the_features_say() -> None:
    of = world()
    u = model().objective_.theta["workers"]
    with torch.no_grad():
        right = torch.sigmoid(model().objective_.topics_of(torch.from_numpy(of.X)) @ u.t()).numpy()  # N,M
    high = of.X[:, 4] > 0
    for worker in range(M):
        assert (right[high, worker].mean() > right[~high, worker].mean()) == bool(worker % 2)


def test_the_mean_of_the_crowd_is_learned_unless_it_is_zero_as_in_the_paper() -> None:
    assert float(model().objective_.theta["mean"].norm()) > 0.1
    paper = dalc(shared=False, epochs=2).fit(world().X, world().votes())
    assert float(paper.objective_.theta["mean"].norm()) == 0


def test_pools_and_workers_frames() -> None:
    frame = model().expertise_
    assert frame.columns == ["worker", "votes", "expertise", "right"]
    assert frame["votes"].sum() == world().votes().V
    assert frame["expertise"].is_between(0, 1).all()


# -- asking -------------------------------------------------------------------------------------------


def test_ask_about_a_pool() -> None:
    pool = World(seed=1, tasks=40)
    names = [f"new{i}" for i in range(40)]
    found = model().ask(k=20, X=pool.X, tasks=names, workers=[1, 2, 3, 4], cost=None)
    assert found.columns[:3] == ["task", "worker", "score"]
    assert len(found) == 20
    assert found["task"].is_unique().all()
    assert set(found["worker"]) <= {1, 2, 3, 4}
    high = dict(zip(names, pool.X[:, 4] > 0, strict=True))
    expert = [high[task] == bool(worker % 2) for task, worker in found["task", "worker"].iter_rows()]
    assert np.mean(expert) > 0.9  # each goes to one who is good there
    doubt = torch.special.entr(torch.from_numpy(model().predict_proba(pool.X))).sum(1).numpy()
    asked = np.isin(names, found["task"])
    assert doubt[asked].mean() > doubt[~asked].mean()


def test_ask_about_the_training_tasks_asks_nobody_twice() -> None:
    of = world()
    found = model().ask(k=50)
    before = set(zip(of.task.tolist(), of.worker.tolist(), strict=True))
    assert len(found) == 50
    assert not set(found["task", "worker"].iter_rows()) & before


def test_of_a_pool_with_known_tasks_the_votes_count() -> None:
    """A task by its name has its votes: they are in the belief, and its workers are not asked again."""
    of = world()
    found = model().ask(k=20, X=of.X[:30], tasks=list(range(30)))
    before = set(zip(of.task.tolist(), of.worker.tolist(), strict=True))
    assert not set(found["task", "worker"].iter_rows()) & before


@pytest.mark.parametrize("score", ["bald", "relabel", "margin", "information", "error"])
def test_every_score_on_a_pool(score: str) -> None:
    assert len(model().ask(k=5, X=World(2, 20).X, score=score, diversity=0.3)) == 5


def test_draws_are_asked_for_where_there_are_none() -> None:
    with pytest.raises(BadInput, match="give X"):
        model().ask(k=5, score="bald")


def test_costs_and_frames_of_workers() -> None:
    people = pl.DataFrame({"worker": [0, 1, 2, "new"], "cost": [0.0, 9, 9, 9]}, strict=False)
    free = model().ask(k=3, X=World(2, 20).X, workers=people)
    assert free["cost"].sum() <= 27


# -- votes that come later ----------------------------------------------------------------------------


def frozen(learner: Targeted, of: World, votes: Votes, rounds: int = 200) -> torch.Tensor:
    """Workers by full EM with the network and the topics of the learner: M,d+1."""
    expert = learner.objective_
    x = torch.from_numpy(of.X)
    with torch.no_grad():
        logp, z = expert.prior_of(x), expert.topics_of(x)
    prior, batch = learner.prior(), votes.whole
    u = torch.zeros(M, z.shape[1]).requires_grad_()
    for _ in range(rounds):
        with torch.no_grad():
            belief = expert_belief(logp, u, z, batch)
        right = belief[batch.task.long(), batch.label.long()]
        optimiser = torch.optim.LBFGS([u], max_iter=20, line_search_fn="strong_wolfe")

        def loss(right: torch.Tensor = right, optimiser: Any = optimiser) -> torch.Tensor:
            optimiser.zero_grad()
            score = (u[batch.worker.long()] * z[batch.task.long()]).sum(1)
            error = torch.nn.functional.binary_cross_entropy_with_logits(score, right, reduction="sum")
            total = error + prior.penalty / 2 * (u - expert.theta["mean"]).square().sum()
            total.backward()
            return total

        before = u.detach().clone()
        optimiser.step(loss)
        if torch.allclose(before, u.detach(), atol=1e-4):
            break
    return u.detach()


def expert_belief(logp: torch.Tensor, u: torch.Tensor, z: torch.Tensor, batch: Any) -> torch.Tensor:
    """Eq. 12."""
    eta = torch.sigmoid((u[batch.worker.long()] * z[batch.task.long()]).sum(1))
    said = ((1 - eta) / (K - 1)).log()[:, None].repeat(1, K)
    said[torch.arange(batch.V), batch.label.long()] = eta.log()
    return (logp + torch.zeros_like(logp).index_add_(0, batch.task.long(), said)).softmax(1)


def chances(learner: Targeted, u: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(u @ learner.objective_.z.t())  # M,N


@cache
def streams() -> tuple[World, Any, torch.Tensor, torch.Tensor]:
    """Fitted to the first fifth of the tasks; the rest comes in parcels of 30 tasks."""
    of = World(seed=5, tasks=900)
    first = of.task < 180
    learner = dalc().fit(of.X[:180], of.votes(first, range(180)))
    start = learner.objective_.theta["workers"].clone()
    for begin in range(180, 900, 30):
        names = range(begin, begin + 30)
        learner.partial_fit(of.X[begin : begin + 30], of.votes((of.task >= begin) & (of.task < begin + 30), names))
    return of, learner, start, learner.objective_.theta["workers"].clone()


def test_partial_fit_nears_the_expertise_of_a_full_fit() -> None:
    """One pass over votes as they come, beside EM on all of them with the same network and topics."""
    of, learner, start, online = streams()
    full = chances(learner, frozen(learner, of, of.votes()))
    away, before = ((chances(learner, u) - full).square().mean().sqrt() for u in (online, start))
    assert float(away) < 0.06
    assert float(away) < 0.5 * float(before)


def test_refined_it_is_the_full_fit() -> None:
    of, learner, _, _ = streams()
    learner.refine(40)
    full = frozen(learner, of, of.votes())
    assert float((chances(learner, learner.objective_.theta["workers"]) - chances(learner, full)).abs().max()) < 0.03
    x = torch.from_numpy(of.X)
    with torch.no_grad():
        expected = expert_belief(learner.objective_.prior_of(x), full, learner.objective_.z, of.votes().whole)
    assert float((learner.consensus_.belief - expected).abs().max()) < 0.05


def test_what_came_later_counts_everywhere(tmp_path: Path) -> None:
    of, learner, _, _ = streams()
    assert learner.consensus_.votes.V == of.votes().V
    assert (learner.consensus_.label.numpy() == of.truth).mean() > 0.9
    assert len(learner.reliability_) == of.votes().V
    assert learner.expertise_["votes"].sum() == of.votes().V
    before = set(zip(of.task.tolist(), of.worker.tolist(), strict=True))
    assert not set(learner.ask(k=100)["task", "worker"].iter_rows()) & before
    learner.save(tmp_path / "model.vox")
    again = vp.load(tmp_path / "model.vox")
    assert again.expertise_.equals(learner.expertise_)
    assert again.ask(k=20).equals(learner.ask(k=20))
    learner.consensus_.explain(899)


def test_a_vote_told_twice_is_one_and_a_newcomer_is_one_of_the_crowd() -> None:
    of = world()
    learner = dalc(epochs=2).fit(of.X, of.votes())
    u, V = learner.objective_.theta["workers"].clone(), of.votes().V
    learner.partial_fit(None, of.votes(slice(0, 50)))
    assert learner.consensus_.votes.V == V
    assert torch.equal(learner.objective_.theta["workers"], u)
    new = Votes.from_arrays([3, 4, 5], [99, 99, 99], of.truth[3:6])
    learner.partial_fit(None, new)
    assert learner.consensus_.votes.V == V + 3
    assert 99 in learner.consensus_.votes.workers.names
    mean, found = learner.objective_.theta["mean"], learner.objective_.theta["workers"][-1]
    assert 0 < float((found - mean).norm()) < 3
    learner.forecast(of.X[3:6], new)


def test_only_the_workers_of_the_tasks_with_new_votes_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in proportion to what is new: nothing else is looked at."""
    of = world()
    learner = dalc(epochs=2).fit(of.X, of.votes(of.task >= 3))
    learner.partial_fit(None, of.votes(of.task == 0))  # makes the stream, once
    looked: list[int] = []
    grouped = type(learner._streaming.log).grouped
    monkeypatch.setattr(
        type(learner._streaming.log), "grouped", lambda log, tasks: looked.append(len(tasks)) or grouped(log, tasks)
    )
    before = learner.objective_.theta["workers"].clone()
    learner.partial_fit(None, of.votes(of.task == 1))
    assert looked == [1]
    moved = (learner.objective_.theta["workers"] != before).any(1).nonzero()[:, 0].tolist()
    assert sorted(moved) == sorted(of.worker[of.task == 1].tolist())


def test_rows_of_a_matrix_are_new_tasks() -> None:
    of = world()
    matrix = np.full((len(of.X), M), -1)
    matrix[of.task, of.worker] = of.label
    learner = dalc(epochs=1).fit(of.X[:200], matrix[:200]).partial_fit(of.X[200:], matrix[200:])
    assert learner.consensus_.votes == of.votes()
    assert len(learner.consensus_.belief) == len(of.X)


def test_what_partial_fit_cannot_take() -> None:
    of = world()
    learner = dalc(epochs=1)
    learner.partial_fit(of.X, of.votes())  # the first is a fit
    with pytest.raises(BadInput, match="'12345' is new: give X"):
        learner.partial_fit(None, Votes.from_arrays([12345], [1], [0]))
    with pytest.raises(BadInput, match="label '7'"):
        learner.partial_fit(None, Votes.from_arrays([1], [1], [7]))
    with pytest.raises(BadInput, match="give Votes"):
        learner.partial_fit(None, of.truth)
    assert learner.consensus_.votes.V == of.votes().V


def test_rows_without_names_are_new_tasks() -> None:
    """Row 0 is not task 0 of the fit: anybody may be asked about it, and no vote counts for it."""
    of = World(seed=1, tasks=1)
    assert set(model().ask(k=M, X=of.X)["worker"]) == set(range(M))
    named = model().ask(k=M - 4, X=of.X, tasks=[0])
    assert len(named) == M - 4
