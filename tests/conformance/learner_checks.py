"""The list of checks of learners. Each takes a subject and says by an assertion what is wrong."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import voxpop as vp
from tests.conformance.checks import WRONG, is_an_answer
from tests.conformance.learners import Crowd, D, K, M, N, Subject, Zero, crowd, known
from voxpop.engines.events import Progress, listening
from voxpop.errors import BadInput, BadOption, RunFailed
from voxpop.learn.learner import Learner
from voxpop.learn.loop import in_batches
from voxpop.learn.objective import asking
from voxpop.options import check_options

Check = Callable[..., None]
CHECKS: dict[str, Check] = {}
SAME = 1e-4  # of probabilities whose sums were taken in another order
ODD: dict[str, tuple[Any, ...]] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def is_a_classifier(learner: Learner, X: Any, votes: vp.Votes) -> None:
    """What holds of anything that was learned."""
    p = learner.predict_proba(X)
    assert p.shape == (votes.N, votes.K)
    assert p.dtype == np.float64
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-9)
    assert learner.classes_.tolist() == list(votes.classes)
    np.testing.assert_array_equal(learner.predict(X), learner.classes_[p.argmax(1)])
    both = learner.forecast(X, votes)
    assert both.shape == p.shape
    assert np.isfinite(both).all()
    np.testing.assert_allclose(both.sum(1), 1, atol=1e-9)
    assert learner.consensus_.votes == votes
    is_an_answer(learner.consensus_)


def answers(learner: Learner, X: Any, votes: vp.Votes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return learner.predict_proba(X), learner.forecast(X, votes), learner.consensus_.belief.numpy()


def alike(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...], tolerance: float = 0.0) -> None:
    for name, one, other in zip(("predict_proba", "forecast", "belief"), a, b, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance, rtol=0, err_msg=name)


def fitted(subject: Subject, **more: Any) -> Learner:
    c = crowd()
    return subject.make(**more).fit(c.X, c.votes)


# -- devices --------------------------------------------------------------------------------------


@check
def all_that_was_learned_moves_together(subject: Subject) -> None:
    """To another device: here to one that keeps no numbers. Counters, of no dimension, stay."""
    learner = fitted(subject)
    state = learner.objective_.to("meta").state()
    numbers = {"q.numbers"}
    stayed = [name for name, part in state.items() if part.dim() and part.device.type != "meta" and name not in numbers]
    assert not stayed


@check
def half_precision_of_the_networks_passes(subject: Subject) -> None:
    c = crowd()
    is_a_classifier(fitted(subject, precision="bf16-mixed"), c.X, c.votes)


# -- symmetry -------------------------------------------------------------------------------------


@check
def answers_are_answers(subject: Subject) -> None:
    is_a_classifier(fitted(subject), crowd().X, crowd().votes)


@check
def row_order_of_votes(subject: Subject) -> None:
    """Exactly the same answer."""
    c = crowd()
    order = np.random.default_rng(0).permutation(len(c.task))
    shuffled = c.only(order).votes
    alike(answers(fitted(subject), c.X, c.votes), answers(subject.make().fit(c.X, shuffled), c.X, c.votes))


@check
def task_order(subject: Subject) -> None:
    """Rows and votes in another order: the same answer for each."""
    c = crowd()
    place = np.random.default_rng(1).permutation(N)  # task i becomes place[i]
    X = np.empty_like(c.X)
    X[place] = c.X
    votes = c.named(np.arange(M), np.arange(K), place)
    plain = answers(subject.exact.fit(c.X, c.votes), c.X, c.votes)
    moved = answers(subject.exact.fit(X, votes), X, votes)
    alike(plain, tuple(a[place] for a in moved), _tolerance(subject, "task_order"))


@check
def worker_relabelling(subject: Subject) -> None:
    c = crowd()
    votes = c.named(np.random.default_rng(1).permutation(M), np.arange(K))
    plain = answers(subject.exact.fit(c.X, c.votes), c.X, c.votes)
    alike(plain, answers(subject.exact.fit(c.X, votes), c.X, votes), _tolerance(subject, "worker_relabelling"))


@check
def class_relabelling(subject: Subject) -> None:
    c = crowd()
    names = np.array([2, 0, 1])
    votes = c.named(np.arange(M), names)
    plain = answers(subject.exact.fit(c.X, c.votes), c.X, c.votes)
    moved = answers(subject.exact.fit(c.X, votes), c.X, votes)
    alike(plain, tuple(a[:, names] for a in moved), _tolerance(subject, "class_relabelling"))


def _tolerance(subject: Subject, name: str) -> float:
    exception = known(subject, name)
    return SAME if exception is None or exception.tolerance is None else exception.tolerance


@check
def same_seed_same_answer(subject: Subject) -> None:
    alike(answers(fitted(subject), crowd().X, crowd().votes), answers(fitted(subject), crowd().X, crowd().votes))


@check
def any_thread_count_same_answer(subject: Subject) -> None:
    c, before = crowd(), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(answers(fitted(subject), c.X, c.votes))
    finally:
        torch.set_num_threads(before)
    alike(*found, SAME)


@check
def inputs_and_the_world_are_untouched(subject: Subject) -> None:
    c, module, gold = crowd(), torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(D, K)), {0: 2}
    X, votes, before = c.X.copy(), c.votes, copy.deepcopy(module.state_dict())
    columns = [getattr(votes, name).clone() for name in ("task", "worker", "label")]
    random, numpys, threads = torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_num_threads()
    learner = subject.make(model=module)
    options = learner.get_params()
    learner.fit(X, votes, gold).predict(X)
    learner.forecast(X, votes)
    np.testing.assert_array_equal(X, c.X)
    assert gold == {0: 2}
    for name, column in zip(("task", "worker", "label"), columns, strict=True):
        assert torch.equal(getattr(votes, name), column)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert module.training
    assert learner.model is module
    assert learner.get_params() == options
    assert torch.equal(torch.get_rng_state(), random)
    assert (np.random.get_state()[1] == numpys).all()
    assert torch.get_num_threads() == threads


# -- odd data -------------------------------------------------------------------------------------


def learns(subject: Subject, c: Crowd, votes: vp.Votes | None = None, gold: Any = None) -> Learner:
    votes = c.votes if votes is None else votes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vp.VoxWarning)
        learner = subject.make().fit(c.X, votes, gold)
        is_a_classifier(learner, c.X, votes)
    return learner


@check
def single_votes(subject: Subject) -> None:
    learns(subject, crowd().only(np.arange(0, 3 * N, 3)))


@check
def a_worker_with_one_vote(subject: Subject) -> None:
    c = crowd()
    others = c.worker != 0
    others[np.flatnonzero(c.worker == 0)[0]] = True
    learns(subject, c.only(others))


@check
def a_worker_without_votes(subject: Subject) -> None:
    c = crowd()
    votes = vp.Votes.from_arrays(c.task, c.worker, c.label, workers=range(M + 2))
    learns(subject, c, votes)


@check
def one_worker(subject: Subject) -> None:
    """All labels from one: a 1-D y says the same."""
    c = crowd()
    y = c.truth.copy()
    learner = subject.make().fit(c.X, y)
    is_a_classifier(learner, c.X, learner.consensus_.votes)


@check
def one_class(subject: Subject) -> None:
    c = crowd()
    learner = learns(subject, Crowd(c.X, c.truth, c.task, c.worker, np.zeros_like(c.label)), _of_one_class(c))
    assert (learner.predict(c.X) == 0).all()


def _of_one_class(c: Crowd) -> vp.Votes:
    return vp.Votes.from_arrays(c.task, c.worker, np.zeros_like(c.label))


@check
def a_class_that_nobody_names(subject: Subject) -> None:
    c = crowd()
    votes = vp.Votes.from_arrays(c.task, c.worker, c.label, classes=range(K + 1))
    learns(subject, c, votes)


@check
def repeated_votes(subject: Subject) -> None:
    c = crowd()
    twice = np.concatenate([np.arange(len(c.task)), np.arange(20)])
    learns(subject, c.only(twice))


@check
def tasks_without_votes(subject: Subject) -> None:
    """Semi-supervised: their rows are there, and they get an answer."""
    c = crowd()
    learner = learns(subject, c.only(c.task < N // 2))
    assert len(learner.consensus_.labels) == N


@check
def gold_is_respected(subject: Subject) -> None:
    c = crowd()
    gold = {0: int(c.truth[0] + 1) % K, 5: 0}
    learner = learns(subject, c, gold=gold)
    for task, label in gold.items():
        assert learner.consensus_.labels.row(task) == (task, label)
        assert float(learner.consensus_.belief[task, label]) == 1.0
    with pytest.raises(BadInput, match="gold label '7'"):
        subject.make().fit(c.X, c.votes, {0: 7})


@check
def gold_alone_teaches(subject: Subject) -> None:
    """No votes at all, but some known truths."""
    c = crowd()
    votes = vp.Votes.from_arrays([], [], [], tasks=range(N), workers=range(M), classes=range(K))
    learns(subject, c, votes, {i: int(c.truth[i]) for i in range(10)})


# -- keeping --------------------------------------------------------------------------------------


@check
def saved_and_loaded_it_answers_the_same(subject: Subject, tmp_path: Path) -> None:
    c = crowd()
    learner = subject.make().fit(c.X, c.votes, {0: 1})
    learner.save(tmp_path / "a.vox")
    again = vp.load(tmp_path / "a.vox")
    assert type(again) is type(learner)
    assert again.get_params() == learner.get_params()
    alike(answers(learner, c.X, c.votes), answers(again, c.X, c.votes))
    first, second = learner.consensus_, again.consensus_
    assert first.to_frame(beliefs=True).equals(second.to_frame(beliefs=True))
    assert first.workers.equals(second.workers)
    assert (first.method, first.status, first.notes) == (second.method, second.status, second.notes)
    assert first.explain(3).equals(second.explain(3))
    assert (learner.history_, learner.choice_, learner.variant_) == (again.history_, again.choice_, again.variant_)
    if hasattr(learner, "odd_"):
        assert learner.odd_.equals(again.odd_)
    again.save(tmp_path / "b.vox")
    alike(answers(learner, c.X, c.votes), answers(vp.load(tmp_path / "b.vox"), c.X, c.votes))


@check
def the_own_module_is_asked_for(subject: Subject, tmp_path: Path) -> None:
    c = crowd()
    learner = fitted(subject, model=torch.nn.Linear(D, K))
    learner.save(tmp_path / "a.vox")
    with pytest.raises(BadInput, match=r"your own Linear, .* model=Linear\(\.\.\.\)"):
        vp.load(tmp_path / "a.vox")
    with pytest.raises(BadInput, match="do not fit"):
        vp.load(tmp_path / "a.vox", model=torch.nn.Sequential(torch.nn.Linear(D, K)))
    alike(
        answers(learner, c.X, c.votes),
        answers(vp.load(tmp_path / "a.vox", model=torch.nn.Linear(D, K)), c.X, c.votes),
    )


@check
def exported_it_answers_the_same(subject: Subject, tmp_path: Path) -> None:
    c = crowd()
    learner = fitted(subject)
    learner.export(tmp_path / "a.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = torch.jit.load(tmp_path / "a.pt")
    for rows in (c.X, c.X[:1]):
        np.testing.assert_allclose(plain(torch.from_numpy(rows)).detach(), learner.predict_proba(rows), atol=1e-5)


@check
def a_checkpoint_goes_on_exactly(subject: Subject, tmp_path: Path) -> None:
    c = crowd()
    whole = subject.make(epochs=3).fit(c.X, c.votes)
    subject.make(epochs=2, checkpoint=str(tmp_path / "c")).fit(c.X, c.votes)
    resumed = subject.make(epochs=3, checkpoint=str(tmp_path / "c")).fit(c.X, c.votes)
    assert len(resumed.history_) == 3
    alike(answers(whole, c.X, c.votes), answers(resumed, c.X, c.votes), 1e-6)


# -- scikit-learn ---------------------------------------------------------------------------------


@check
def it_is_an_estimator(subject: Subject) -> None:
    learner = subject.make()
    assert is_classifier(learner)
    again = clone(learner)
    assert again is not learner
    assert again.get_params() == learner.get_params()
    assert again.set_params(seed=7).seed == 7
    assert set(learner.get_params()) == {spec.name for spec in fields(learner)}
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(nonsense=1)
    assert eval(repr(learner), {subject.kind.__name__: subject.kind}).get_params() == learner.get_params()
    assert fitted(subject).score(crowd().X, crowd().truth) >= 0


@check
def another_fit_forgets_the_first(subject: Subject) -> None:
    c, other = crowd(), crowd(1)
    learner = subject.make().fit(other.X[:, :3], other.votes)
    alike(answers(fitted(subject), c.X, c.votes), answers(learner.fit(c.X, c.votes), c.X, c.votes))


@check
def a_frame_with_names_is_held_to_them(subject: Subject) -> None:
    pandas = pytest.importorskip("pandas")
    c = crowd()
    frame = pandas.DataFrame(c.X, columns=list("abcd"))
    learner = subject.make().fit(frame, c.votes)
    assert list(learner.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(learner.predict_proba(frame), fitted(subject).predict_proba(c.X))
    with pytest.raises(ValueError, match="feature names"):
        learner.predict(frame.rename(columns={"a": "z"}))


# -- bad input ------------------------------------------------------------------------------------


@check
def bad_input_gets_one_clear_line(subject: Subject) -> None:
    c = crowd()
    holed, endless = c.X.copy(), c.X.copy()
    holed[3, 1], endless[4, 0] = np.nan, np.inf
    for X, y, words in (
        (c.X[:-1], c.votes, f"X has {N - 1} rows and the votes {N} tasks"),
        (c.X[:-1], c.truth, f"X has {N - 1} rows and y {N} labels"),
        (holed, c.votes, "NaN at row 4, column 2"),
        (endless, c.votes, "infinity at row 5, column 1"),
        (c.X[:, 0], c.votes, "Reshape your data"),
        (c.X, None, "requires y to be passed"),
        (c.X, vp.Votes.from_arrays([], [], [], tasks=range(N), classes=range(K)), "nothing to learn from"),
    ):
        with pytest.raises(BadInput, match=words) as error:
            subject.make().fit(X, y)
        assert "\n" not in str(error.value)


@check
def a_network_that_does_not_fit_is_refused(subject: Subject) -> None:
    c = crowd()
    for module, words in (
        (Zero(D, K + 1), rf"answers \(2, {K + 1}\) to two rows; the votes have {K} classes"),
        (Zero(D + 1, K), rf"cannot take rows of shape \({D},\)"),
    ):
        with pytest.raises(BadInput, match=words):
            subject.make(model=module).fit(c.X, c.votes)
    with pytest.raises((BadOption, vp.UnknownName), match="linear, mlp, cnn"):
        subject.make(model="vgg").fit(c.X, c.votes)


@check
def bad_questions_get_one_clear_line(subject: Subject) -> None:
    c = crowd()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        subject.make().predict(c.X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        subject.make().save("nowhere/a.vox")
    learner = fitted(subject)
    with pytest.raises(BadInput, match=f"X has {D - 1} features, but {subject.kind.__name__} is expecting {D}"):
        learner.predict(c.X[:, 1:])
    with pytest.raises(BadInput, match=f"X has {N - 1} rows and the votes {N} tasks"):
        learner.forecast(c.X[1:], c.votes)
    strange = vp.Votes.from_arrays([0, 1], [0, 99], [0, 1], tasks=range(N))
    with pytest.raises(BadInput, match="worker '99' that nothing was learned of"):
        learner.forecast(c.X, strange)
    odd = vp.Votes.from_arrays([0, 1], [0, 1], [0, 7], tasks=range(N))
    with pytest.raises(BadInput, match="label '7' that nothing was learned of"):
        learner.forecast(c.X, odd)


@check
def a_loss_gone_to_nan_is_told(subject: Subject, tmp_path: Path) -> None:
    c = crowd()
    counted = fitted(subject, model=Burning(), epochs=1).objective_
    calls = next(module for module in counted.modules() if isinstance(module, Burning)).steps  # in an epoch
    place = tmp_path / "c"
    learner = subject.make(model=Burning(float(calls) + 1), epochs=3, checkpoint=str(place))
    with pytest.raises(RunFailed, match=r"in step .* of epoch 2.*checkpoint"):
        learner.fit(c.X, c.votes)
    assert place.exists()
    assert not hasattr(learner, "consensus_")


class Burning(torch.nn.Linear):
    """A network that answers NaN after so many steps."""

    def __init__(self, last: float = float("inf")) -> None:
        super().__init__(D, K)
        self.last = last
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() and self.training:
            self.steps += 1
        return super().forward(x) * (float("nan") if float(self.steps) > self.last else 1.0)


# -- options --------------------------------------------------------------------------------------


@check
def options_refuse_what_breaks_their_rule(subject: Subject) -> None:
    for spec in fields(subject.kind):
        rule = spec.metadata.get("rule")
        assert rule is not None, f"{spec.name} has no rule"
        assert spec.metadata["help"], f"{spec.name} has no help"
        assert rule.test(spec.default), f"the default of {spec.name} breaks its own rule"
        start = next((words for words in WRONG if rule.words.startswith(words)), None)
        if start is None:
            continue
        for value in WRONG[start]:
            if value is None and rule.words.endswith("or none"):
                continue
            with pytest.raises(BadOption, match=f"{spec.name} is .*it must be"):
                check_options(subject.kind(**{spec.name: value}))


@check
def progress_is_an_event(subject: Subject) -> None:
    told: list[Progress] = []
    with listening(told.append):
        fitted(subject)
    training = [event for event in told if event.stage == f"training {subject.kind.__name__}"]
    assert [event.step for event in training] == [1, 2] * subject.make().members
    own: list[Progress] = []
    fitted(subject, progress=own.append)
    assert len(own) >= 2


# -- and it works ---------------------------------------------------------------------------------


@check
def what_is_said_of_a_vote_sums_to_one(subject: Subject) -> None:
    """p(label | x) is a distribution over labels: methods are chosen among by it."""
    c = crowd()
    learner = fitted(subject)
    grid = np.stack(np.meshgrid(np.arange(N), np.arange(M), indexing="ij")).reshape(2, -1)
    p = np.zeros((N, M, K))
    for label in range(K):
        votes = vp.Votes.from_arrays(*grid, np.full(grid.shape[1], label), tasks=range(N), classes=range(K))
        data = learner._data(c.X, votes, None)
        with asking(learner.objective_):
            logs = [learner.objective_.foretell(x, parcel.batch) for x, parcel in in_batches(data, torch.device("cpu"))]
        p[:, :, label] = torch.cat(logs).exp().reshape(N, M).numpy()
    np.testing.assert_allclose(p.sum(2), 1, atol=1e-4)


@check
def a_good_crowd_is_understood(subject: Subject) -> None:
    c, new = crowd(0, 150), crowd(1, 150)
    learner = subject.make(epochs=20, lr=0.03).fit(c.X, c.votes)
    score = learner.score(new.X, new.truth)
    assert score >= 0.85, score
    right = learner.consensus_.evaluate(pl.DataFrame({"task": np.arange(150), "label": c.truth}))
    majority = vp.MajorityVote().infer(c.votes).evaluate(pl.DataFrame({"task": np.arange(150), "label": c.truth}))
    assert right["accuracy"] >= majority["accuracy"], (right["accuracy"], majority["accuracy"])
