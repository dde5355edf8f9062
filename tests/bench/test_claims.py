"""Means, intervals, paired differences, and what they decide."""

from __future__ import annotations

import math

import pytest
from scipy.stats import ttest_1samp, ttest_rel

from voxpop.bench.claims import at_least, at_most
from voxpop.bench.experiment import Cell
from voxpop.bench.results import Mean, Results
from voxpop.bench.store import Row

OURS, THEIRS = [0.9, 0.8, 0.95, 0.7], [0.85, 0.78, 0.93, 0.6]


def results() -> Results:
    """Of two methods, in any order of seeds, with a seed that only one of them has."""
    rows = [
        Row(Cell("part", "case", method, seed), {"classifier": value})
        for method, values in (("ours", [*OURS, 0.1]), ("theirs", THEIRS))
        for seed, value in reversed(list(enumerate(values)))
    ]
    return Results([*rows, Row(Cell("other part", "case", "ours", 0), {"classifier": 0.0})], "part")


def test_intervals_are_students() -> None:
    mean = Mean.of(OURS)
    interval = ttest_1samp(OURS, 0).confidence_interval(0.95)
    assert mean.value == pytest.approx(sum(OURS) / 4)
    assert (mean.value - mean.half, mean.value + mean.half) == pytest.approx((interval.low, interval.high))
    assert (str(Mean.of([])), str(Mean.of([0.5])), Mean.of([0.5, 0.7]).in_points()) == ("-", "0.5", "60.0 ±127.1")


def test_gaps_are_taken_seed_by_seed() -> None:
    gap = results().gap("case", "ours", "theirs")
    interval = ttest_rel(OURS, THEIRS).confidence_interval(0.95)
    assert gap.seeds == 4
    assert (gap.value - gap.half, gap.value + gap.half) == pytest.approx((interval.low, interval.high))
    assert results().mean("case", "ours").seeds == 5


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (at_least("a", {"x": 0.1, "y": 0.2}, 0.1), "holds"),
        (at_least("a", {"x": 0.1, "y": 0.05}, 0.1), "does not hold"),
        (at_most("a", {"x": 0.1, "y": 0.05}, 0.1), "holds"),
        (at_most("a", {"x": 0.11, "y": 0.05}, 0.1), "does not hold"),
        (at_least("a", {"x": 0.2, "y": math.nan}, 0.1), "not measured"),
        (at_most("a", {}, 0.1), "not measured"),
    ],
)
def test_verdicts(claim: object, verdict: str) -> None:
    assert claim.verdict == verdict  # type: ignore[attr-defined]


def test_evidence_names_the_numbers_and_the_bound() -> None:
    assert at_least("a", {"x": 0.123, "y": -0.05}, 0.1).evidence == "x +12.3, y -5.0 (bound +10.0)"
