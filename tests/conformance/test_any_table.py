"""Random tables thrown at every method: whatever is legal gets an answer."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.checks import is_an_answer
from tests.conformance.subjects import SUBJECTS, Subject
from voxpop.errors import VoxWarning
from voxpop.votes import Votes

TABLES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(rows=TABLES, spare=st.booleans(), gold=st.dictionaries(st.integers(0, 6), st.integers(0, 3), max_size=3))
def test_any_table_gets_an_answer(subject: Subject, rows: list, spare: bool, gold: dict) -> None:
    task, worker, label = zip(*rows, strict=True)
    axes = {"tasks": range(8), "workers": range(6), "classes": range(4)} if spare else {}
    votes = Votes.from_arrays(task, worker, label, **axes)
    tasks, classes = set(votes.tasks), set(votes.classes)
    gold = {i: k for i, k in gold.items() if i in tasks and k in classes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VoxWarning)
        found = subject.make().infer(votes, gold)
    is_an_answer(found)
    for i, k in gold.items():
        assert found.labels.row(list(votes.tasks).index(i)) == (i, k)
