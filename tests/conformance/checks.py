"""The list of checks. Each takes a subject and says by an assertion what is wrong; ``needs`` says for whom it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from tests.conformance.subjects import Subject, known
from tests.crowds import Crowd, crowd, good_crowd
from voxpop.engines.events import Progress, listening
from voxpop.engines.outcome import Status
from voxpop.errors import BadInput, BadOption, DataWarning, TooLarge
from voxpop.options import parse_option
from voxpop.results import Consensus, load
from voxpop.votes import Votes

Check = Callable[..., None]
CHECKS: dict[str, tuple[Check, frozenset[str]]] = {}
GOOD = good_crowd(0)  # 60 tasks, 9 workers, 3 classes: beliefs far from ties
HARD = crowd(2, N=25, M=7, K=3, per_task=3)
SAME = 1e-3  # of beliefs whose sums were taken in another order, and may have stopped a step apart


def check(*needs: str) -> Callable[[Check], Check]:
    def add(function: Check) -> Check:
        CHECKS[function.__name__] = function, frozenset(needs)
        return function

    return add


def is_an_answer(found: Consensus) -> None:
    """What holds of any answer to anything."""
    votes = found.votes
    assert isinstance(found, Consensus)
    assert found.belief.shape == (votes.N, votes.K)
    assert found.belief.dtype == torch.float32
    assert torch.isfinite(found.belief).all()
    assert (found.belief >= 0).all()
    torch.testing.assert_close(found.belief.sum(1), torch.ones(votes.N), atol=1e-5, rtol=0)
    assert isinstance(found.status, Status)
    frame = found.to_frame()
    assert frame["task"].to_list() == list(votes.tasks)
    assert frame["label"].is_in(votes.classes.names.to_list()).all()
    assert frame["confidence"].is_between(-1e-6, 1 + 1e-6).all()
    assert frame["confidence"].is_finite().all()
    workers = found.workers
    assert workers["worker"].to_list() == list(votes.workers)
    assert workers["votes"].sum() == votes.V
    for column in ("accuracy", "low", "high", "chance"):
        assert workers[column].is_between(-1e-6, 1 + 1e-6).all(), column
    assert (workers["low"] <= workers["accuracy"] + 1e-6).all()
    assert (workers["accuracy"] <= workers["high"] + 1e-6).all()
    if found.table is not None:
        assert found.table.shape == (votes.M, votes.K, votes.K)
        torch.testing.assert_close(found.table.sum(2), torch.ones(votes.M, votes.K), atol=1e-4, rtol=0)
    if votes.N:
        found.explain(votes.tasks[0])
    assert found._repr_html_()


def columns(c: Crowd) -> pl.DataFrame:
    return pl.DataFrame({"task": c.task, "worker": c.worker, "label": c.label})


def near(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> None:
    torch.testing.assert_close(a, b, atol=tolerance, rtol=0)


# -- symmetry -------------------------------------------------------------------------------------


@check()
def row_order(subject: Subject) -> None:
    """Exactly the same answer, random or not."""
    frame = columns(HARD)
    answers = []
    for order in (np.arange(len(frame)), np.random.default_rng(0).permutation(len(frame))):
        answers.append(subject.make().infer(Votes.from_frame(frame[order])))
    first, second = answers
    assert torch.equal(first.belief, second.belief)
    assert first.to_frame().equals(second.to_frame())
    assert first.workers.equals(second.workers)


@check()
def worker_relabelling(subject: Subject) -> None:
    exception = known(subject, "worker_relabelling")
    names = np.random.default_rng(1).permutation(GOOD.M)
    plain = subject.settled().infer(GOOD.votes)
    renamed = subject.settled().infer(Votes.from_arrays(GOOD.task, names[GOOD.worker], GOOD.label))
    near(plain.belief, renamed.belief, SAME if exception is None else exception.tolerance)
    certain = ~(plain._best[1] | renamed._best[1]) & (plain.belief.amax(1) > 0.7)
    assert torch.equal(plain.label[certain], renamed.label[certain])
    if plain.accuracy_samples is None:
        moved = renamed.workers.sort("worker")["accuracy"].to_numpy()[names]
        np.testing.assert_allclose(plain.workers["accuracy"].to_numpy(), moved, atol=10 * SAME)


@check()
def class_relabelling(subject: Subject) -> None:
    exception = known(subject, "class_relabelling")
    names = np.array([2, 0, 1])
    plain = subject.settled().infer(GOOD.votes)
    renamed = subject.settled().infer(Votes.from_arrays(GOOD.task, GOOD.worker, names[GOOD.label]))
    near(plain.belief, renamed.belief[:, names], SAME if exception is None else exception.tolerance)
    certain = ~(plain._best[1] | renamed._best[1]) & (plain.belief.amax(1) > 0.7)
    assert torch.equal(torch.tensor(names)[plain.label[certain].long()], renamed.label[certain].long())


@check()
def names_of_any_kind(subject: Subject) -> None:
    """Text, integers or booleans, in the same order: the same numbers, and the names come back as they were."""
    c = crowd(3, N=20, M=5, K=2, per_task=3)
    answers = []
    for names in ([False, True], [-5, 7], ["no", "yes"]):
        labels = np.array(names, dtype=object)[c.label]
        votes = Votes.from_arrays([f"t{i:03}" for i in c.task], c.worker.astype(np.int16), labels)
        found = subject.make().infer(votes)
        assert set(found.labels["label"]) <= set(names)
        answers.append(found)
    for other in answers[1:]:
        assert torch.equal(answers[0].belief, other.belief)


# -- purity ---------------------------------------------------------------------------------------


@check()
def inputs_untouched(subject: Subject) -> None:
    votes = HARD.votes
    before = [getattr(votes, name).clone() for name in ("task", "worker", "label")]
    gold = {0: 1, 3: 2}
    method = subject.make()
    options = {f.name: getattr(method, f.name) for f in fields(method)}
    state = torch.get_rng_state()
    method.infer(votes, gold)
    assert all(
        torch.equal(a, getattr(votes, name)) for a, name in zip(before, ("task", "worker", "label"), strict=True)
    )
    assert gold == {0: 1, 3: 2}
    assert {f.name: getattr(method, f.name) for f in fields(method)} == options
    assert torch.equal(state, torch.get_rng_state()), "the global generator was used"
    assert torch.get_num_threads() == 1


@check()
def same_seed_same_answer(subject: Subject) -> None:
    first, second = (subject.make().infer(HARD.votes) for _ in range(2))
    assert torch.equal(first.belief, second.belief)
    assert first.to_frame().equals(second.to_frame())
    assert first.workers.equals(second.workers)


@check("random")
def another_seed_is_another_draw(subject: Subject) -> None:
    """And not far away: a seed that does nothing would be an option that does nothing."""
    exact = "one-coin" in subject.name and subject.name.startswith("BeliefPropagation")
    votes = crowd(3, N=30, M=6, K=2, per_task=3).votes if exact else HARD.votes
    first, second = (subject.make(seed=s).infer(votes) for s in (1, 2))
    assert torch.equal(first.certainty, second.certainty) == exact


@check()
def any_number_of_threads_same_answer(subject: Subject) -> None:
    """Enough votes for torch to share them among threads; sums of float64 may differ in their last digits."""
    c = crowd(4, N=9000, M=30, K=4, per_task=4)
    few = {"max_iter": 3} if "max_iter" in {f.name for f in fields(subject.kind)} else {}
    few = {"max_iter": 20, "chains": 1} if subject.name == "GibbsBCC" else few
    few |= {"samples": 4} if subject.name.startswith("BeliefPropagation") else {}
    answers = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            answers.append(subject.make(**few).infer(c.votes))
        finally:
            torch.set_num_threads(1)
    near(answers[0].belief, answers[1].belief, 1e-6)
    near(answers[0].certainty, answers[1].certainty, 1e-6)
    assert torch.equal(answers[0].label, answers[1].label)


@check()
def save_and_load_same_answer(subject: Subject, tmp_path: Path) -> None:
    found = subject.make().infer(HARD.votes, {0: 1})
    found.save(tmp_path / "found.vox")
    back = load(tmp_path / "found.vox")
    assert torch.equal(found.belief, back.belief)
    assert found.to_frame(beliefs=True).equals(back.to_frame(beliefs=True))
    assert found.workers.equals(back.workers)
    assert (found.method, found.status, found.notes) == (back.method, back.status, back.notes)
    for task in (0, 5):
        assert found.explain(task).equals(back.explain(task))
    assert [info.bound for info in found.history] == pytest.approx([i.bound for i in back.history], nan_ok=True)


# -- little data ----------------------------------------------------------------------------------


@check()
def beliefs_on_the_simplex(subject: Subject) -> None:
    is_an_answer(subject.make().infer(HARD.votes))
    is_an_answer(subject.make().infer(HARD.votes, {0: 2, 1: 0}))


@check()
def tasks_with_a_single_vote(subject: Subject) -> None:
    c = crowd(5, N=30, M=5, K=3, per_task=1)
    is_an_answer(subject.make().infer(c.votes))


@check()
def a_worker_with_one_vote(subject: Subject) -> None:
    task, worker = np.append(GOOD.task, 0), np.append(GOOD.worker, GOOD.M)
    found = subject.make().infer(Votes.from_arrays(task, worker, np.append(GOOD.label, 2)))
    is_an_answer(found)
    assert found.workers["votes"].to_list()[-1] == 1
    low, high = found.workers.row(-1, named=True)["low"], found.workers.row(-1, named=True)["high"]
    assert high - low > 0.3, "one vote says little about a worker"


@check()
def one_class_only(subject: Subject) -> None:
    for classes in (["x"], ["w", "x", "y"]):
        votes = Votes.from_arrays([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], ["x"] * 5, classes=classes)
        with pytest.warns(DataWarning, match="every vote says 'x'"):
            found = subject.make().infer(votes)
        is_an_answer(found)
        assert set(found.labels["label"]) == {"x"}


@check()
def one_worker_only(subject: Subject) -> None:
    votes = Votes.from_arrays(range(6), ["ann"] * 6, [0, 1, 0, 1, 1, 0])
    with pytest.warns(DataWarning, match="all votes are by worker 'ann'"):
        found = subject.make().infer(votes)
    is_an_answer(found)


@check()
def no_votes(subject: Subject) -> None:
    for workers in ([], ["ann"]):
        votes = Votes.from_arrays([], [], [], tasks=["t"], workers=workers, classes=["x", "y"])
        with pytest.warns(DataWarning, match="there are no votes"):
            found = subject.make().infer(votes)
        is_an_answer(found)
        exception = known(subject, "no_votes")
        near(found.belief, torch.full((1, 2), 0.5), 1e-5 if exception is None else exception.tolerance)


@check()
def a_task_without_votes(subject: Subject) -> None:
    """It gets the prior, and the others stay what they were, but for what one more task does to the classes' shares."""
    exception = known(subject, "a_task_without_votes")
    plain = subject.settled().infer(GOOD.votes)
    votes = Votes.from_arrays(GOOD.task, GOOD.worker, GOOD.label, tasks=range(GOOD.N + 1))
    found = subject.settled().infer(votes)
    is_an_answer(found)
    near(found.belief[:-1], plain.belief, 0.02 if exception is None else exception.tolerance)
    assert found.belief[-1].max() < 0.6, "without a vote nothing is known"
    assert found.to_frame()["votes"].to_list()[-1] == 0


@check()
def a_worker_without_votes(subject: Subject) -> None:
    exception = known(subject, "a_worker_without_votes")
    plain = subject.settled().infer(GOOD.votes)
    votes = Votes.from_arrays(GOOD.task, GOOD.worker, GOOD.label, workers=range(GOOD.M + 1))
    found = subject.settled().infer(votes)
    is_an_answer(found)
    near(found.belief, plain.belief, SAME if exception is None else exception.tolerance)
    assert found.workers.row(-1, named=True)["high"] > 0.6, "nothing is known against him"


@check()
def votes_that_repeat_count(subject: Subject) -> None:
    votes = Votes.from_arrays(np.tile(HARD.task, 2), np.tile(HARD.worker, 2), np.tile(HARD.label, 2))
    found = subject.make().infer(votes)
    is_an_answer(found)
    assert found.workers["votes"].sum() == 2 * HARD.votes.V


@check()
def a_thousand_classes(subject: Subject) -> None:
    """3,000 workers x 1,000 x 1,000: an answer, or an error that names what would fit."""
    rng = np.random.default_rng(0)
    label = np.where(np.arange(900) % 3 < 2, np.repeat(rng.integers(0, 1000, 300), 3), rng.integers(0, 1000, 900))
    task, worker = np.repeat(np.arange(300), 3), rng.integers(0, 3000, 900)
    votes = Votes.from_arrays(task, worker, label, tasks=range(300), workers=range(3000), classes=range(1000))
    try:
        found = subject.make(**({"max_iter": 3} if "iterative" in subject.can and not subject.careful else {})).infer(
            votes
        )
    except TooLarge as error:
        assert "OneCoin" in str(error) or "samples=" in str(error) or "consensus" in str(error)
        return
    assert "table" not in subject.can or subject.name == "Default"
    torch.testing.assert_close(found.belief.sum(1), torch.ones(300), atol=1e-4, rtol=0)
    agreed = label[::3] == label[1::3]
    assert (found.label.numpy()[agreed] == label[::3][agreed]).mean() > 0.9


# -- gold -----------------------------------------------------------------------------------------


@check("gold")
def gold_is_clamped(subject: Subject) -> None:
    """Also against all votes."""
    gold = {i: (int(GOOD.truth[i]) + 1) % 3 for i in (0, 17, 59)} | {5: int(GOOD.truth[5])}
    found = subject.make().infer(GOOD.votes, gold)
    is_an_answer(found)
    for task, label in gold.items():
        assert found.belief[task, label] == 1
        assert found.belief[task].sum() == 1
        assert found.certainty[task] == pytest.approx(1, abs=1e-5)
        assert found.label[task] == label


@check("gold")
def gold_for_every_task(subject: Subject) -> None:
    found = subject.make().infer(GOOD.votes, {i: int(k) for i, k in enumerate(GOOD.truth)})
    assert found.label.tolist() == GOOD.truth.tolist()
    hit = GOOD.label == GOOD.truth[GOOD.task]
    share = np.bincount(GOOD.worker, hit) / np.bincount(GOOD.worker)
    np.testing.assert_allclose(found.workers["accuracy"], share, atol=0.12)  # but for the prior, and the classes' mix


@check("gold")
def gold_as_a_frame_is_the_same_and_no_gold_is_none(subject: Subject) -> None:
    as_map = subject.make().infer(HARD.votes, {2: 1})
    as_frame = subject.make().infer(HARD.votes, pl.DataFrame({"task": [2], "label": [1]}))
    assert torch.equal(as_map.belief, as_frame.belief)
    assert torch.equal(subject.make().infer(HARD.votes, {}).belief, subject.make().infer(HARD.votes).belief)


@check("gold")
def bad_gold_is_refused(subject: Subject) -> None:
    with pytest.raises(BadInput, match="unknown task '99'"):
        subject.make().infer(HARD.votes, {99: 0})
    with pytest.raises(BadInput, match="takes Votes, not list"):
        subject.make().infer([1, 2])


# -- iterations -----------------------------------------------------------------------------------


@check("iterative")
def tol_0_never_stops_early_and_max_iter_is_obeyed(subject: Subject) -> None:
    steps = 25 if "sampler" in subject.can else 7
    found = subject.make(max_iter=steps, tol=0).infer(GOOD.votes)
    chains = getattr(found, "options", {}).get("chains", 1)
    assert len(found.history) == steps * chains
    assert found.status in (Status.OUT_OF_STEPS, Status.DEGENERATE)


@check("iterative")
def a_wide_tol_stops_early(subject: Subject) -> None:
    if "sampler" in subject.can:
        assert subject.make(max_iter=300, tol=10.0).infer(GOOD.votes).status is Status.CONVERGED
        return
    found = subject.make(max_iter=100, tol=1.0).infer(GOOD.votes)
    assert len(found.history) < 10
    assert found.status is Status.CONVERGED


@check("bound")
def the_bound_never_falls(subject: Subject) -> None:
    found = subject.make(max_iter=30, tol=0).infer(HARD.votes, {0: 1})
    bounds = np.array([info.bound for info in found.history])
    assert np.diff(bounds).min() >= -1e-6 * HARD.votes.V
    assert bounds[-1] > bounds[0]


@check("starts")
def of_several_starts_the_best_bound_is_kept(subject: Subject) -> None:
    one = subject.make().infer(HARD.votes)
    many = subject.make(starts=4).infer(HARD.votes)
    assert many.history[-1].bound >= one.history[-1].bound - 1e-6 * HARD.votes.V
    assert "of 4 by the bound" in many.notes[0]
    bounds = [float(b) for b in many.notes[0].split("(")[1].split(")")[0].split(", ")]
    assert len(bounds) == 4
    assert many.history[-1].bound == pytest.approx(max(bounds), rel=1e-5)


@check("starts")
def a_given_start_is_where_it_starts(subject: Subject) -> None:
    end = subject.make(tol=0, max_iter=200).infer(GOOD.votes)
    again = subject.make(start=end, max_iter=2, tol=0).infer(GOOD.votes)
    assert again.history[0].bound == pytest.approx(end.history[-1].bound, abs=0.05 + 1e-6 * GOOD.votes.V)
    assert again.history[0].bound > subject.make(max_iter=1).infer(GOOD.votes).history[0].bound - 1e-3
    for bad, words in ((torch.ones(3, 3), "shape"), (torch.full((GOOD.N, 3), torch.nan), "non-finite")):
        with pytest.raises(BadInput, match=words):
            subject.make(start=bad).infer(GOOD.votes)


@check("iterative")
def progress_is_an_event(subject: Subject) -> None:
    events: list[Progress] = []
    with listening(events.append):
        subject.make().infer(HARD.votes)
    assert events
    assert all(0 <= e.step <= e.steps for e in events)


# -- explanations ---------------------------------------------------------------------------------


@check()
def explanations_add_up_or_say_that_they_do_not(subject: Subject) -> None:
    gold = {0: 2}
    found = subject.make().infer(HARD.votes, gold)
    adds = "adds-up" in subject.can
    for task in range(HARD.N):
        frame = found.explain(task)
        assert len(frame) == HARD.votes.whole.votes_per_task[task] + 1
        assert set(frame["how"]) == {"adds up" if adds else "left out"}
        last = "(gold)" if task in gold else "(prior)" if adds else "(rest)"
        assert frame["worker"].to_list()[-1] == last
        belief = found.belief[task].double().log()
        odds = (belief - belief[int(found.label[task])]).numpy()
        sums = frame.drop("worker", "vote", "how").to_numpy().sum(0)
        sure = np.maximum(odds, -20)  # beyond, float32 beliefs are rounded
        np.testing.assert_allclose(np.maximum(sums, -20), sure, atol=2e-3, rtol=1e-3)


# -- options --------------------------------------------------------------------------------------

WRONG: dict[str, list[Any]] = {
    "a whole number": [1.5, "3", None, True, float("nan"), [1]],
    "a number": ["1", None, True, float("nan"), [1.0], 1j],
    "one of": ["", "nonsense", 3, None, True, ["uniform"]],
    "true or false": [1, 0, "true", None],
    "two numbers": [1.0, (1.0,), (1.0, 2.0, 3.0), ("a", "b"), None, (0, 0), (-1.0, 1.0), (float("nan"), 1.0)],
}


@check()
def options_refuse_what_breaks_their_rule(subject: Subject) -> None:
    """By introspection: each rule's own words say what is wrong for it."""
    for spec in fields(subject.kind):
        rule = spec.metadata.get("rule")
        assert rule is not None, f"{spec.name} has no rule"
        assert spec.metadata["help"], f"{spec.name} has no help"
        assert rule.test(spec.default), f"the default of {spec.name} breaks its own rule"
        if rule.words == "anything":
            continue
        start = next((words for words in WRONG if rule.words.startswith(words)), None)
        assert start is not None, f"no wrong values are known for '{rule.words}'"
        wrong = list(WRONG[start])
        if "of at least" in rule.words:
            wrong.append(type(spec.default)(float(rule.words.split()[-1]) - 1))
        if "above" in rule.words and start == "a number":
            wrong.append(float(rule.words.split()[-1]))
        if "from 0 to" in rule.words:
            wrong += [-0.1, 1.1] + ([1.0] if "below 1" in rule.words else [])
        for value in wrong:
            with pytest.raises(BadOption, match=f"{spec.name} is .*it must be"):
                subject.kind(**{spec.name: value})
        with pytest.raises(BadOption, match=spec.name):
            parse_option(subject.kind, spec.name, "surely-not-a-value")


@check()
def several_bad_options_are_all_told(subject: Subject) -> None:
    names = [f.name for f in fields(subject.kind) if f.metadata["rule"].words != "anything"]
    if len(names) > 1:
        with pytest.raises(BadOption) as error:
            subject.kind(**dict.fromkeys(names, "nonsense"))
        assert len(error.value.problems) == len(names)


@check()
def it_is_frozen_and_equal_by_its_options(subject: Subject) -> None:
    assert subject.make() == subject.make()
    for spec in fields(subject.kind):
        with pytest.raises(AttributeError):
            setattr(subject.make(), spec.name, None)


# -- and it works ---------------------------------------------------------------------------------


@check()
def a_good_crowd_is_understood(subject: Subject) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = (
            subject.make(seed=0).infer(GOOD.votes) if "iterative" in subject.can else subject.make().infer(GOOD.votes)
        )
    right = (found.label.numpy() == GOOD.truth).mean()
    majority = (GOOD.votes.whole.counts().argmax(1).numpy() == GOOD.truth).mean()
    assert right >= max(0.9, majority - 0.02)
    better = found.workers["better_than_chance"].to_list()
    assert better.count("yes") >= 7
