"""Alpha, kappa and agreeing pairs against published tables and against their definitions, written out in NumPy."""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from voxpop.audit import agreement
from voxpop.errors import BadInput, BadOption, DataWarning, UnknownName
from voxpop.simulate import Random, simulate
from voxpop.votes import Votes

agreement_module = import_module(agreement.__module__)  # the package's name for it is the function
NO = np.nan
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", part C: four observers, twelve units
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
        [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
    ]
).T
# ten subjects, fourteen raters, five categories: the worked example of Fleiss' kappa that textbooks print (0.210)
RATINGS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


def from_counts(counts: np.ndarray) -> Votes:
    """One worker for each vote of a task."""
    task = np.repeat(np.arange(len(counts)), counts.sum(1))
    label = np.concatenate([np.repeat(np.arange(counts.shape[1]), row) for row in counts])
    worker = np.concatenate([np.arange(n) for n in counts.sum(1)])
    return Votes.from_arrays(task, worker, label, classes=range(counts.shape[1]))


def alpha_by_pairs(matrix: np.ndarray, metric: str) -> float:
    """1 - D_o / D_e with every pair of values written out, and ordinal distances as printed."""
    units = [row[~np.isnan(row)] for row in matrix]
    units = [u for u in units if len(u) > 1]
    values = np.concatenate(units)
    n_of = {v: int((values == v).sum()) for v in sorted(set(values))}

    def distance(a: float, b: float) -> float:
        if metric == "nominal":
            return float(a != b)
        if metric == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        return (sum(n for v, n in n_of.items() if low <= v <= high) - (n_of[a] + n_of[b]) / 2) ** 2

    n = len(values)
    observed = sum(distance(a, b) / (len(u) - 1) for u in units for a, b in permutations(u, 2)) / n
    expected = sum(distance(a, b) for a, b in permutations(values, 2)) / (n * (n - 1))
    return 1 - observed / expected


def kappa_by_pairs(matrix: np.ndarray) -> tuple[float, float]:
    """Kappa and agreeing pairs as the docstring of ``agreement`` says them."""
    units = [row[~np.isnan(row)] for row in matrix]
    units = [u for u in units if len(u) > 1]
    same = np.mean([np.mean([a == b for a, b in permutations(u, 2)]) for u in units])
    chance = np.mean([np.mean(u[:, None] == v[None, :]) for u in units for v in units])
    return (same - chance) / (1 - chance), same


@pytest.mark.parametrize(("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(metric, printed):
    found = agreement(Votes.from_matrix(OBSERVERS), metric=metric, resamples=20)
    assert round(found.alpha.value, 3) == printed
    assert (found.compared_tasks, found.compared_votes, found.votes) == (11, 40, 41)


def test_kappa_of_the_published_example():
    found = agreement(from_counts(RATINGS), resamples=20)
    assert round(found.kappa.value, 3) == 0.210
    assert round(found.agreeing_pairs.value, 3) == 0.378


def test_kappa_is_fleiss_own_where_votes_are_equally_many():
    n, N = RATINGS.sum(1)[0], len(RATINGS)
    P = ((RATINGS**2).sum(1) - n).mean() / (n * (n - 1))  # as printed by Fleiss, with p_j pooled over all votes
    E = ((RATINGS.sum(0) / (N * n)) ** 2).sum()
    assert agreement(from_counts(RATINGS), resamples=1).kappa.value == pytest.approx((P - E) / (1 - E), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), tasks=st.integers(1, 7), workers=st.integers(2, 5), classes=st.integers(2, 4))
def test_all_measures_equal_their_definitions(data, tasks, workers, classes):
    cell = st.sampled_from([NO, *(float(c * c + 1) for c in range(classes))])  # 1, 2, 5, 10: uneven steps
    matrix = np.array(
        data.draw(st.lists(st.lists(cell, min_size=workers, max_size=workers), min_size=tasks, max_size=tasks))
    )
    compared = matrix[(~np.isnan(matrix)).sum(1) > 1]
    assume(len(set(compared[~np.isnan(compared)])) > 1)
    votes = Votes.from_matrix(matrix)
    for metric in ("nominal", "ordinal", "interval"):
        found = agreement(votes, metric=metric, resamples=1)
        assert found.alpha.value == pytest.approx(alpha_by_pairs(matrix, metric), abs=1e-9)
    kappa, same = kappa_by_pairs(matrix)
    assert found.kappa.value == pytest.approx(kappa, abs=1e-9)
    assert found.agreeing_pairs.value == pytest.approx(same, abs=1e-9)


def test_groups_of_tasks_change_nothing_but_the_draws(monkeypatch):
    votes = simulate(1500, kind="believable", seed=4).votes
    fine = [agreement(votes, metric=m) for m in ("nominal", "ordinal", "interval")]
    monkeypatch.setattr(agreement_module, "_GROUPS", 400)
    monkeypatch.setattr(agreement_module, "_CELLS", 1 << 12)  # many blocks of groups and of resamples too
    for one in fine:
        other = agreement(votes, metric=one.metric)
        for name in ("alpha", "kappa", "agreeing_pairs"):
            a, b = getattr(one, name), getattr(other, name)
            assert a.value == pytest.approx(b.value, abs=1e-12)
            assert (a.high - a.low) == pytest.approx(b.high - b.low, rel=0.25)


def test_order_of_rows_and_names_do_not_matter():
    frame = simulate(300, kind="believable", seed=1).votes.to_frame()
    votes = Votes.from_frame(frame)
    assert agreement(votes) == agreement(Votes.from_frame(frame.sample(fraction=1.0, shuffle=True, seed=3)))
    named = frame.with_columns(
        frame["label"].replace_strict({0: "d", 1: "a", 2: "c", 3: "b"}), 49 - frame["worker"], -frame["task"]
    )
    renamed, found = agreement(Votes.from_frame(named)), agreement(votes)
    for name in ("alpha", "kappa", "agreeing_pairs"):
        assert getattr(renamed, name).value == pytest.approx(getattr(found, name).value, abs=1e-12)


def test_metrics_go_by_the_number_a_class_is_not_by_its_place():
    numbers = Votes.from_matrix(OBSERVERS)
    frame = numbers.to_frame()
    shuffled = Votes.from_frame(frame, classes=[3, 5, 1, 4, 2])
    text = Votes.from_frame(frame.with_columns(frame["label"].cast(str)), classes=["5", "3", "1", "2", "4"])
    for metric in ("ordinal", "interval"):
        value = agreement(numbers, metric=metric, resamples=1).alpha.value
        assert agreement(shuffled, metric=metric, resamples=1).alpha.value == pytest.approx(value)
        assert agreement(text, metric=metric, resamples=1).alpha.value == pytest.approx(value)


def test_ends_of_the_scale():
    perfect = agreement(from_counts(np.array([[3, 0], [0, 3], [4, 0]])))
    assert (perfect.alpha.value, perfect.kappa.value, perfect.agreeing_pairs.value) == pytest.approx((1, 1, 1))
    apart = agreement(from_counts(np.full((50, 2), 1)))
    assert apart.agreeing_pairs.value == 0
    assert apart.kappa.value == pytest.approx(-1)
    random = agreement(simulate(3000, 30, 3, "hammer-spammer", hammers=0.0).votes)
    assert random.alpha.low < random.alpha.value < random.alpha.high
    assert abs(random.alpha.value) < 0.02


def test_seeds():
    votes = simulate(200, seed=2).votes
    assert agreement(votes, seed=1) == agreement(votes, seed=1)
    assert agreement(votes, seed=1).alpha.low != agreement(votes, seed=2).alpha.low
    assert agreement(votes, seed=1).alpha.value == agreement(votes, seed=2).alpha.value


def test_a_higher_level_is_wider():
    votes = simulate(200).votes
    narrow, wide = agreement(votes, level=0.5).alpha, agreement(votes, level=0.99).alpha
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@pytest.mark.parametrize("tasks", [120, 3000])  # the second resamples groups of tasks
def test_the_interval_covers_the_truth_about_as_often_as_it_says(tasks):
    """Identical workers with a 0.7 coin and a uniform truth: P = sum of squares of a row, E = 1 / K."""
    runs = 120 if tasks < 1000 else 40
    same = 0.7**2 + 2 * 0.15**2
    truth = {"alpha": (same - 1 / 3) / (2 / 3), "kappa": (same - 1 / 3) / (2 / 3), "agreeing_pairs": same}
    coin = [[[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]]]
    covered = dict.fromkeys(truth, 0)
    for seed in range(runs):
        some = simulate(tasks, 20, 3, "prototypes", seed, prototypes=coin, assignment=Random(3, varying=True))
        found = agreement(some.votes, level=0.8, resamples=150, seed=seed)
        for name, value in truth.items():
            estimate = getattr(found, name)
            covered[name] += estimate.low <= value <= estimate.high
    slack = 3.5 * (0.8 * 0.2 / runs) ** 0.5
    assert all(abs(count / runs - 0.8) < slack for count in covered.values()), covered


def test_nothing_to_compare():
    votes = Votes.from_arrays([0, 1, 2], [0, 0, 1], ["a", "b", "a"])
    with pytest.warns(DataWarning, match="no task has two votes"):
        found = agreement(votes)
    assert found.compared_tasks == found.compared_votes == 0
    assert found.votes == 3
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["alpha"] == plain["kappa"] == plain["agreeing_pairs"] == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_one_class_only(metric):
    seven = ["0.7"] * 6  # a number whose squares are rounded
    votes = Votes.from_arrays([0, 0, 0, 1, 1, 1, 2], [0, 1, 2, 0, 1, 2, 0], [*seven, "0.1"])  # 0.1 has no second vote
    with pytest.warns(DataWarning, match="one class only"):
        found = agreement(votes, metric=metric)
    assert found.to_dict()["alpha"] == {"value": None, "low": None, "high": None}
    assert found.to_dict()["kappa"]["value"] is None
    assert found.agreeing_pairs.value == found.agreeing_pairs.low == found.agreeing_pairs.high == 1


def test_one_task_has_no_interval():
    found = agreement(Votes.from_arrays([0, 0, 0], [0, 1, 2], [0, 0, 1]))
    assert found.agreeing_pairs.value == pytest.approx(1 / 3)
    assert found.to_dict()["agreeing_pairs"]["low"] is None


def test_resamples_of_one_class_are_left_out():
    votes = from_counts(np.array([[2, 0], [2, 0], [0, 2]]))  # a third of the resamples miss a class
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = agreement(votes)
    assert (found.alpha.low, found.alpha.high) == pytest.approx((1, 1))


def test_to_dict_keeps_everything():
    found = agreement(simulate(50).votes, level=0.8, resamples=30)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["alpha"]["low"] == found.alpha.low
    assert (plain["level"], plain["resamples"], plain["metric"]) == (0.8, 30, "nominal")


def test_mistakes_are_named():
    votes = Votes.from_arrays([0, 0], [0, 1], ["cat", "3"])
    with pytest.raises(UnknownName, match="did you mean 'ordinal'"):
        agreement(votes, metric="ordinl")
    with pytest.raises(BadInput, match=r"class 'cat' is not a number.*metric='nominal'"):
        agreement(votes, metric="interval")
    with pytest.raises(BadOption, match="level=90"):
        agreement(votes, level=90)
    with pytest.raises(BadOption, match="resamples=0"):
        agreement(votes, resamples=0)


def test_sums_are_kept_in_double_precision():
    """Beyond 2**24 votes a float32 sum would stand still; here the sums of a few large tasks must be exact."""
    counts = torch.tensor([[[2.0**25 + 1, 3.0]]], dtype=torch.float64)
    sums = agreement_module.Nominal().sums(counts)
    assert sums[0, 1:].tolist() == [2**25 + 1, 3]
    assert sums[0, 0].item() == pytest.approx(2 * 3 * (2**25 + 1) / (2**25 + 3), rel=1e-14)
