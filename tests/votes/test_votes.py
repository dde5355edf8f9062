"""voxpop.votes.votes: who said what about which task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from voxpop.errors import BadInput, UnknownName
from voxpop.votes import Votes

TABLE = {"task": ["t2", "t1", "t1", "t2"], "worker": ["b", "a", "b", "a"], "label": ["no", "yes", "no", "no"]}
ROWS = [("t1", "a", "yes"), ("t1", "b", "no"), ("t2", "a", "no"), ("t2", "b", "no")]


def triples(votes: Votes) -> list[tuple]:
    return votes.to_frame().rows()


# -- making ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda t: pl.DataFrame(t).lazy()])
def test_any_dataframe_gives_the_same_votes(make: object) -> None:
    votes = Votes.from_frame(make(TABLE))  # type: ignore[operator]
    assert triples(votes) == ROWS
    assert (votes.N, votes.M, votes.K, votes.V, len(votes)) == (2, 2, 2, 4, 4)
    assert votes.task.dtype == votes.worker.dtype == votes.label.dtype == torch.int32
    assert "4 votes of 2 workers on 2 tasks, 2 classes" in repr(votes)


def test_the_columns_may_have_other_names() -> None:
    frame = pl.DataFrame(TABLE).rename({"task": "item", "worker": "judge", "label": "said"})
    assert triples(Votes.from_frame(frame, task="item", worker="judge", label="said")) == ROWS


def test_given_axes_are_the_axes_also_without_votes() -> None:
    votes = Votes.from_frame(
        pl.DataFrame(TABLE), tasks=["t3", "t2", "t1"], workers=["c", "b", "a"], classes=["yes", "no", "both"]
    )
    assert list(votes.tasks) == ["t3", "t2", "t1"]
    assert votes.whole.votes_per_task.tolist() == [0, 2, 2]
    assert sorted(triples(votes)) == ROWS
    assert votes.K == 3


@pytest.mark.parametrize("axis", ["tasks", "workers", "classes"])
def test_a_name_that_is_not_on_a_given_axis_is_named_with_its_row(axis: str) -> None:
    names = {"tasks": ["t1"], "workers": ["a"], "classes": ["yes"]}[axis]
    with pytest.raises(BadInput, match="row 1: ") as error:
        Votes.from_frame(pl.DataFrame(TABLE), **{axis: names})
    assert "the frame, row 1" in error.value.problems[0]
    assert all(f"given {axis}" in p for p in error.value.problems)


def test_the_row_that_is_named_is_the_row_of_the_source_also_after_others_were_dropped() -> None:
    frame = pl.DataFrame({"task": [None, "t1", "t2"], "worker": ["a"] * 3, "label": ["x", "x", "y"]})
    with pytest.raises(BadInput, match="row 3: 'y' is not one of the given classes"):
        Votes.from_frame(frame, missing="drop", classes=["x"])


def test_a_missing_column_is_named_with_those_that_are_there() -> None:
    with pytest.raises(BadInput, match="no column 'worker'; it has 'task', 'label'"):
        Votes.from_frame(pl.DataFrame(TABLE).drop("worker"))


def test_what_is_no_dataframe_is_refused() -> None:
    with pytest.raises(BadInput, match="not a dataframe"):
        Votes.from_frame([1, 2])


def test_missing_values_are_an_error_that_lists_them_or_dropped_and_counted() -> None:
    frame = pl.DataFrame({"task": ["t", "t", None], "worker": ["a", "b", "c"], "label": ["x", None, "x"]})
    with pytest.raises(BadInput, match=r"row 2: no label.*and 1 more") as error:
        Votes.from_frame(frame)
    assert len(error.value.problems) == 2
    votes = Votes.from_frame(frame, missing="drop")
    assert votes.V == 1
    assert votes.dropped == {"missing": 2}


def test_nan_is_missing() -> None:
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": [0.0, np.nan]})
    with pytest.raises(BadInput, match="no label"):
        Votes.from_frame(frame)
    assert list(Votes.from_frame(frame, missing="drop").classes) == [0]


def test_abstentions_are_ignored_and_counted() -> None:
    votes = Votes.from_frame(pl.DataFrame(TABLE), ignore=["yes"])
    assert list(votes.classes) == ["no"]
    assert votes.dropped == {"ignored": 1}
    numbers = Votes.from_arrays([0, 0], [0, 1], [7, 8], ignore=[7])
    assert list(numbers.classes) == [8]


REPEATED = {"task": ["t"] * 5, "worker": ["a", "a", "a", "b", "b"], "label": ["y", "x", "y", "y", "x"]}


def test_repeats_are_kept_and_counted() -> None:
    votes = Votes.from_frame(pl.DataFrame(REPEATED))
    assert (votes.V, votes.repeated) == (5, 3)


def test_repeats_are_dropped_for_the_commonest_label_the_first_class_on_a_tie() -> None:
    votes = Votes.from_frame(pl.DataFrame(REPEATED), repeats="drop")
    assert triples(votes) == [("t", "a", "y"), ("t", "b", "x")]
    assert votes.dropped == {"repeated": 3}
    assert votes.repeated == 0


def test_repeats_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"worker 'a' voted .* on task 't'") as error:
        Votes.from_frame(pl.DataFrame(REPEATED), repeats="error")
    assert len(error.value.problems) == 2


def test_an_unknown_way_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'drop'"):
        Votes.from_frame(pl.DataFrame(TABLE), repeats="dropp")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[0, -1], [2, 1]]),
        np.array([[0, np.nan], [2, 1]]),
        np.array([[0, None], [2, 1]], dtype=object),
        pd.DataFrame([[0, np.nan], [2, 1]]),
    ],
    ids=["-1", "nan", "none", "pandas"],
)
def test_a_matrix_has_a_row_for_each_task_and_gaps_for_no_vote(matrix: object) -> None:
    votes = Votes.from_matrix(matrix)
    assert triples(votes) == [(0, 0, 0), (1, 0, 2), (1, 1, 1)]
    assert list(votes.classes) == [0, 1, 2]


def test_a_matrix_without_votes_of_some_keeps_its_size() -> None:
    votes = Votes.from_matrix(np.array([[-1, 1, -1], [-1, -1, -1]]))
    assert (votes.N, votes.M, votes.K) == (2, 3, 2)


def test_a_matrix_of_text() -> None:
    votes = Votes.from_matrix(np.array([["cat", None], ["dog", "cat"]], dtype=object))
    assert triples(votes) == [(0, 0, "cat"), (1, 0, "dog"), (1, 1, "cat")]


def test_a_matrix_must_have_two_axes() -> None:
    with pytest.raises(BadInput, match="1 axes"):
        Votes.from_matrix(np.zeros(3))


def test_arrays_must_be_of_one_length_and_have_one_axis() -> None:
    with pytest.raises(BadInput, match="2, 1, 2 rows"):
        Votes.from_arrays([0, 1], [0], [0, 1])
    with pytest.raises(BadInput, match="2 axes"):
        Votes.from_arrays(np.zeros((2, 2)), [0], [0])


def test_tensors_and_lists_are_arrays() -> None:
    votes = Votes.from_arrays(torch.tensor([1, 0]), [5, 5], ["x", "y"])
    assert triples(votes) == [(0, 5, "y"), (1, 5, "x")]


def test_text_labels_stay_text_and_booleans_booleans() -> None:
    assert Votes.from_arrays(["01", "1"], ["a", "a"], [True, False]).to_frame().rows() == [
        ("01", "a", True),
        ("1", "a", False),
    ]


# -- asking ---------------------------------------------------------------------------------------


def test_gold_is_a_mapping_or_a_frame() -> None:
    votes = Votes.from_frame(pl.DataFrame(TABLE))
    for gold in ({"t2": "yes"}, pl.DataFrame({"task": ["t2"], "label": ["yes"]})):
        assert votes.gold(gold).tolist() == [-1, 1]  # type: ignore[union-attr]
    assert votes.gold(None) is None
    assert votes.gold({}).tolist() == [-1, -1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ({"t9": "yes"}, "gold for an unknown task 't9'"),
        ({"t1": "maybe"}, "gold label 'maybe' is not one of the classes no, yes"),
        (pl.DataFrame({"task": ["t1", "t1"], "label": ["yes", "no"]}), "task 't1' two different labels"),
        (pl.DataFrame({"task": ["t1"]}), "gold has no column 'label'"),
    ],
)
def test_bad_gold_is_refused(gold: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Votes.from_frame(pl.DataFrame(TABLE)).gold(gold)


def test_select_keeps_the_axes() -> None:
    votes = Votes.from_frame(pl.DataFrame(TABLE))
    some = votes.select(torch.tensor([True, False, False, True]))
    assert triples(some) == [ROWS[0], ROWS[3]]
    assert (some.tasks, some.workers, some.classes) == (votes.tasks, votes.workers, votes.classes)
    assert votes.V == 4


tables = st.lists(
    st.tuples(st.integers(0, 6), st.text("abé 1", min_size=1, max_size=2), st.integers(-2, 3)), min_size=1, max_size=40
)


@settings(max_examples=60, deadline=None)
@given(rows=tables, seed=st.integers(0, 99))
def test_votes_are_the_rows_in_order_whatever_the_order_was(rows: list, seed: int) -> None:
    columns = [np.array(c, dtype=object) for c in zip(*rows, strict=True)]
    votes = Votes.from_arrays(*columns)
    frame = votes.to_frame()
    assert sorted(zip(frame["task"], frame["worker"], frame["label"], strict=True)) == sorted(rows)
    key = torch.stack([votes.task, votes.worker, votes.label]).long()
    flat = (key[0] * votes.M + key[1]) * votes.K + key[2]
    assert (flat.diff() >= 0).all()
    assert votes.offsets.diff().sum() == votes.V
    shuffled = np.random.default_rng(seed).permutation(len(rows))
    assert Votes.from_arrays(*(c[shuffled] for c in columns)) == votes
    assert Votes.from_frame(frame) == votes
