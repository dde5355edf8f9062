"""One list of checks on every method, by what it can do."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.conformance.checks import CHECKS
from tests.conformance.subjects import EXCEPTIONS, SUBJECTS, Subject, known
from voxpop.methods.registry import ENTRIES

CASES = [
    pytest.param(subject, name, id=f"{subject}-{name}")
    for subject in SUBJECTS
    for name, (_, needs) in CHECKS.items()
    if needs <= subject.can
]


@pytest.mark.parametrize(("subject", "name"), CASES)
def test_conforms(subject: Subject, name: str, tmp_path: Path) -> None:
    exception = known(subject, name)
    if exception is not None and exception.tolerance is None:
        pytest.skip(exception.reason)
    function, _ = CHECKS[name]
    more = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(function).parameters else {}
    function(subject, **more)


def test_every_method_is_a_subject() -> None:
    assert {e.python for e in ENTRIES} <= {s.name for s in SUBJECTS}


def test_exceptions_name_methods_and_checks_that_exist() -> None:
    for method, checks in EXCEPTIONS.items():
        assert any(s.name == method for s in SUBJECTS)
        assert set(checks) <= set(CHECKS)
