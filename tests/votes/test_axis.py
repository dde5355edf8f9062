"""voxpop.votes.axis: names in a fixed order."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from voxpop.errors import BadInput, UnknownName
from voxpop.votes import Axis


def found(values: list) -> list:
    return list(Axis.found_in("tasks", pl.Series(values)))


def test_names_that_are_found_are_sorted_and_numbers_by_their_value() -> None:
    assert found(["b", "a", "b"]) == ["a", "b"]
    assert found(["10", "9", "1"]) == ["1", "9", "10"]
    assert found(["1.5", "10", "-2"]) == ["-2", "1.5", "10"]
    assert found(["01", "1", "0"]) == ["0", "01", "1"]
    assert found(["10", "9", "x"]) == ["10", "9", "x"]
    assert found([3, 1, 2]) == [1, 2, 3]
    assert found([True, False]) == [False, True]


def test_a_given_axis_keeps_its_order() -> None:
    assert list(Axis("classes", ["no", "yes", "maybe"])) == ["no", "yes", "maybe"]


def test_whole_floats_are_integers_and_others_text() -> None:
    """Pandas turns integers with a gap into floats."""
    assert list(Axis("tasks", np.array([3.0, 1.0]))) == [3, 1]
    assert list(Axis("tasks", np.array([1.5, 2.0]))) == ["1.5", "2.0"]


@pytest.mark.parametrize("names", [["a", "b", "a"], [1, 1]])
def test_a_name_twice_is_refused(names: list) -> None:
    with pytest.raises(BadInput, match=f"names '{names[0]}' twice"):
        Axis("workers", names)


def test_a_missing_name_is_refused_with_its_place() -> None:
    with pytest.raises(BadInput, match="missing name at position 1"):
        Axis("workers", ["a", None])


@pytest.mark.parametrize(
    ("names", "asked", "codes"),
    [
        (["b", "a"], ["a", "b", "c", None], [1, 0, None, None]),
        ([5, 7], [7, 5, 6], [1, 0, None]),
        ([0, 1, 2], [2, 0, 3, -1], [2, 0, None, None]),
        ([5, 7], ["7", "5"], [1, 0]),
        (["5", "7"], [7, 5, 6], [1, 0, None]),
        ([False, True], [True, False], [1, 0]),
        ([], ["a"], [None]),
    ],
)
def test_codes_are_positions_and_null_off_the_axis(names: list, asked: list, codes: list) -> None:
    assert Axis("tasks", pl.Series(names)).codes(pl.Series(asked)).to_list() == codes


def test_codes_of_a_dictionary_column() -> None:
    column = pl.Series(["x", "y", None, "x", "z"]).cast(pl.Categorical)
    assert Axis("tasks", ["y", "x"]).codes(column).to_list() == [1, 0, None, 1, None]


def test_position_names_the_nearest() -> None:
    axis = Axis("tasks", ["img1", "img2", "img30"])
    assert axis.position("img2") == 1
    assert axis[2] == "img30"
    with pytest.raises(UnknownName, match="unknown task 'img300': did you mean 'img30'"):
        axis.position("img300")


def test_axes_are_equal_by_their_names_and_type() -> None:
    assert Axis("tasks", [0, 1]) == Axis.counting("tasks", 2)
    assert Axis("tasks", ["0", "1"]) != Axis.counting("tasks", 2)
    assert len(Axis.counting("tasks", 3)) == 3
    assert "a, b" in repr(Axis("tasks", ["a", "b"]))
