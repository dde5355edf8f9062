"""One list of checks on every learner, and scikit-learn's own."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

from tests.conformance.learner_checks import CHECKS
from tests.conformance.learners import EXCEPTIONS, SKLEARN, Subject, known, subjects
from voxpop.methods.registry import LEARNING

SUBJECTS = subjects()
PLAIN = [s for s in SUBJECTS if not s.options]
CASES = [pytest.param(s, name, id=f"{s}-{name}") for s in SUBJECTS for name in CHECKS]


@pytest.mark.parametrize(("subject", "name"), CASES)
def test_conforms(subject: Subject, name: str, tmp_path: Path) -> None:
    exception = known(subject, name)
    if exception is not None and exception.tolerance is None:
        pytest.skip(exception.reason)
    function = CHECKS[name]
    more = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(function).parameters else {}
    function(subject, **more)


@pytest.mark.filterwarnings("ignore:.*Skipping check")
@pytest.mark.parametrize("subject", PLAIN, ids=str)
def test_it_passes_the_checks_of_scikit_learn(subject: Subject) -> None:
    """With one annotator: a 1-D y has no code for a missing vote."""
    learner = subject.make(epochs=6, lr=0.1, batch_size=64)
    failed = {**SKLEARN.get("*", {}), **SKLEARN.get(subject.name, {})}
    results = check_estimator(learner, expected_failed_checks=failed, on_skip=None)
    unexpected = {r["check_name"] for r in results if r["status"] == "xfail"} ^ set(failed)
    assert not unexpected


def test_every_learner_is_a_subject() -> None:
    assert {e.python for e in LEARNING} == {s.name for s in PLAIN}


def test_exceptions_name_learners_and_checks_that_exist() -> None:
    for method, checks in EXCEPTIONS.items():
        assert method == "*" or any(s.name == method or s.kind.__name__ == method for s in SUBJECTS)
        assert set(checks) <= set(CHECKS)
