"""Stepwise EM: the schedule, the limit, and work in proportion to what is new."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import voxpop as vp
from tests.crowds import Crowd, crowd, good_crowd
from voxpop.engines import online
from voxpop.engines.online import Pace, Running
from voxpop.errors import BadInput, BadOption
from voxpop.votes import Votes


@cache
def large() -> Crowd:
    return good_crowd(1, N=600, M=12, K=3, per_task=5)


def parcels(of: Crowd, size: int) -> list[Votes]:
    """The votes as they come: at random, some at a time, tasks and workers under their names."""
    order = np.random.default_rng(0).permutation(len(of.task))
    return [Votes.from_arrays(of.task[s], of.worker[s], of.label[s]) for s in np.array_split(order, len(order) // size)]


def full_fit(of: Crowd, **how: Any) -> vp.Consensus:
    """EM over all votes with the pseudo votes of OnlineDawidSkene: 0.1 in every cell, 0.4 more in the right ones."""
    alike = np.tile(np.eye(of.K), (of.M, 1, 1))
    return vp.DawidSkene(smoothing=0.1, error_rates=alike, error_rate_votes=0.4, max_iter=500, **how).infer(of.votes)


def told(of: Crowd, size: int = 100, **how: Any) -> vp.OnlineDawidSkene:
    made = vp.OnlineDawidSkene(**how)
    for part in parcels(of, size):
        made.partial_fit(part)
    return made


def belief_of(model: vp.OnlineDawidSkene, of: Crowd) -> np.ndarray:
    """N,K in the order of the crowd's tasks and classes."""
    found = model.consensus_
    rows, columns = (np.argsort(list(axis)) for axis in (found.votes.tasks, found.votes.classes))
    assert len(rows) == of.N
    return found.belief.numpy()[rows][:, columns]


# -- the schedule -------------------------------------------------------------------------------------


def test_the_step_is_t_to_the_minus_point_six() -> None:
    """Paper 003: lambda_t = t^-0.6, t in units of votes."""
    pace = Pace(power=0.6, unit=1.0)
    for t in (100.0, 1000.0, 10_000.0):
        step = 1 - float(pace.keep(torch.tensor(t), torch.tensor(1.0)))
        assert step == pytest.approx(t**-0.6, rel=0.05)


@pytest.mark.parametrize("pace", [Pace(), Pace(1.0, 10), Pace(0.6, 1), Pace(0.51, 3)])
def test_how_votes_are_cut_into_calls_does_not_matter(pace: Pace) -> None:
    at_once = pace.keep(torch.tensor(7.0), torch.tensor(500.0))
    in_parts = torch.tensor(1.0, dtype=torch.float64)
    for before, fresh in ((7, 1), (8, 42), (50, 250), (300, 207)):
        in_parts *= pace.keep(torch.tensor(float(before)), torch.tensor(float(fresh)))
    assert float(in_parts) == pytest.approx(float(at_once), rel=1e-9)


def test_with_power_one_a_mean_is_the_plain_mean() -> None:
    rng = np.random.default_rng(0)
    said, state = torch.from_numpy(rng.random((200, 3))), Running.nothing(1, 3)
    for part in torch.split(said, 7):
        state = state.blended(part.sum(0)[None], torch.tensor([len(part)]), Pace(power=1.0))
    assert state.mean[0].tolist() == pytest.approx(said.mean(0).tolist())
    assert float(state.seen) == 200


def test_a_mean_follows_what_changes_the_faster_the_lower_the_power() -> None:
    """After three hundred votes for zero and as many for one."""
    found = []
    for power in (0.55, 0.6, 0.8, 1.0):
        state = Running.nothing(1, 1)
        for value in (0.0, 1.0):
            for _ in range(300):
                state = state.blended(torch.tensor([[value]]), torch.tensor([1]), Pace(power, unit=10))
        found.append(float(state.mean))
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.5)


def test_who_did_not_vote_is_not_forgotten() -> None:
    state = Running(torch.tensor([[0.3], [0.7]], dtype=torch.float64), torch.tensor([50.0, 9.0], dtype=torch.float64))
    after = state.blended(torch.tensor([[4.0], [0.0]]), torch.tensor([5, 0]), Pace())
    assert float(after.mean[1]) == 0.7
    assert float(after.mean[0]) > 0.3


# -- the limit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_prior", ["learned", "uniform"])
def test_gone_through_again_and_again_it_is_the_full_fit(class_prior: str) -> None:
    of = large()
    made = told(of, class_prior=class_prior).refine(60)
    full = full_fit(of, class_prior=class_prior, tol=1e-9)
    assert np.abs(belief_of(made, of) - full.belief.numpy()).max() < 0.02
    table = made.consensus_.table
    order = np.argsort(list(made.consensus_.votes.workers))
    kinds = np.argsort(list(made.consensus_.votes.classes))
    assert (table[order][:, kinds][:, :, kinds] - full.table).abs().max() < 0.02


def test_a_fixed_point_of_em_is_one_of_every_step() -> None:
    """Where running means are what the belief they lead to says, a step over all tasks moves nothing."""
    of = large()
    made = told(of).refine(80)
    before = (made._mean.values.clone(), made._classes.mean.clone())
    made.refine(1)
    assert float((made._mean.values - before[0]).abs().max()) < 1e-4
    assert float((made._classes.mean - before[1]).abs().max()) < 1e-4


def test_one_pass_over_votes_as_they_come_is_nearly_as_good() -> None:
    of = large()
    full = full_fit(of)
    label = belief_of(told(of, 60), of).argmax(1)
    assert (label == of.truth).mean() > (full.label.numpy() == of.truth).mean() - 0.02


def test_the_more_votes_the_nearer_to_the_full_fit() -> None:
    """Mean distance of the workers' accuracies, after one pass over votes of ever longer streams."""
    away = []
    for N in (50, 300, 1500):
        of = good_crowd(2, N=N, M=8, K=2, per_task=5)
        full = full_fit(of).workers.sort("worker")["accuracy"].to_numpy()
        found = told(of, 100).workers.sort("worker")["accuracy"].to_numpy()
        away.append(np.abs(found - full).mean())
    assert away[2] < 0.5 * away[0]
    assert away[2] < 0.02


def test_a_crowd_of_any_matrices_is_followed() -> None:
    of = crowd(4, N=800, M=6, K=3, per_task=4)
    full = full_fit(of)
    assert (belief_of(told(of, 100).refine(20), of).argmax(1) == full.label.numpy()).mean() > 0.98


# -- work -----------------------------------------------------------------------------------------------


def test_work_is_in_proportion_to_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the state, a call looks at the votes of the touched tasks and the workers who gave them."""
    seen: list[tuple[int, int, int]] = []
    step = online.step

    def counting(batch: Any, state: Any, *rest: Any) -> Any:
        seen.append((batch.B, batch.V, len(state.workers.mean)))
        return step(batch, state, *rest)

    monkeypatch.setattr(online, "step", counting)
    for tasks in (100, 3000):
        made = vp.OnlineDawidSkene().partial_fit(good_crowd(0, N=tasks, M=60, K=2, per_task=4).votes)
        untouched = made._mean.values.clone()
        seen.clear()
        made.partial_fit(Votes.from_arrays([7, 7, 9], [1, 2, 1], [1, 1, 1]))
        assert len(seen) == 1
        (B, V, M) = seen[0]
        assert B <= 2
        assert V <= 2 * 4 + 3
        assert M <= V
        assert int((made._mean.values != untouched).any(2).any(1).sum()) <= M


def test_a_vote_told_twice_counts_once() -> None:
    of = good_crowd(0)
    made = vp.OnlineDawidSkene().partial_fit(of.votes)
    before = made.workers
    made.partial_fit(of.votes)
    assert (made.accepted_, made.known_) == (0, of.votes.V)
    assert made.workers.equals(before)


def test_tasks_workers_and_classes_may_appear() -> None:
    made = vp.OnlineDawidSkene().partial_fit(Votes.from_arrays(["a", "a"], ["x", "y"], ["cat", "cat"]))
    made.partial_fit(Votes.from_arrays(["b", "b", "a"], ["x", "z", "z"], ["dog", "dog", "cat"]))
    assert made.labels(["b", "a"])["label"].to_list() == ["dog", "cat"]
    assert made.workers.select("worker", "votes").rows() == [("x", 2), ("y", 1), ("z", 2)]
    assert set(made.consensus_.votes.classes) == {"cat", "dog"}
    assert made.consensus_.belief.sum(1).tolist() == pytest.approx([1, 1])


def test_labels_are_those_of_the_consensus() -> None:
    of = large()
    made = told(of)
    some = made.labels([5, 3, 5, 77])
    whole = made.consensus_.to_frame().select("task", "label", "confidence")
    expected = pl.DataFrame({"task": [5, 3, 5, 77]}).join(whole, on="task", how="left", maintain_order="left")
    assert some["label"].to_list() == expected["label"].to_list()
    assert some["confidence"].to_list() == pytest.approx(expected["confidence"].to_list(), abs=1e-5)


# -- kept -----------------------------------------------------------------------------------------------


def test_saved_and_read_back_it_goes_on_as_it_would_have(tmp_path: Path) -> None:
    of = large()
    first, *rest = parcels(of, 300)
    made = vp.OnlineDawidSkene().partial_fit(first)
    made.save(tmp_path / "online.vox")
    again = vp.load(tmp_path / "online.vox")
    assert isinstance(again, vp.OnlineDawidSkene)
    for part in rest:
        made.partial_fit(part)
        again.partial_fit(part)
    assert again.workers.equals(made.workers)
    assert torch.equal(again.consensus_.belief, made.consensus_.belief)


def test_equal_seeds_give_equal_answers() -> None:
    of = large()
    assert told(of).workers.equals(told(of).workers)


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="takes Votes"):
        vp.OnlineDawidSkene().partial_fit([[0, 1], [1, 1]])  # type: ignore[arg-type]
    with pytest.raises(BadOption, match="a number above"):
        vp.OnlineDawidSkene(power=0.5)
    with pytest.raises(BadInput, match="the tasks were"):
        vp.OnlineDawidSkene().partial_fit(Votes.from_arrays([1], [1], [0])).partial_fit(
            Votes.from_arrays(["one"], [1], [0])
        )
