"""voxpop.numerics.segments against sums written as loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from voxpop.numerics import segments
from voxpop.numerics.segments import PIECE, Segments, offsets_of, scatter_sum, segment_sum


def by_loop(table: np.ndarray, index: np.ndarray, counts: list[int]) -> np.ndarray:
    ends = np.cumsum([0, *counts])
    return np.stack([table[index[a:b]].sum(0) for a, b in pairwise(ends)])


@pytest.mark.parametrize(
    "counts",
    [[3, 0, 2], [0, 0], [1], [0, 5, PIECE, 0, PIECE + 1, 2 * PIECE, 1, 0], [3 * PIECE + 7, 0]],
    ids=["short", "empty", "one", "long", "very long"],
)
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_both_sums_equal_a_loop(counts: list[int], kind: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    table = rng.random((11, 3)).astype(np.float32)
    index = rng.integers(0, 11, sum(counts))
    grouped = Segments(torch.tensor(index, dtype=kind), offsets_of(torch.tensor(counts)).to(kind))
    expected = by_loop(table.astype(float), index, counts)
    exact = grouped.sum_exact(torch.tensor(table))
    assert exact.dtype == torch.float64
    np.testing.assert_allclose(exact, expected, rtol=2e-5)  # a piece is summed in float32: at most PIECE / 2^24 off
    np.testing.assert_allclose(grouped.sum(torch.tensor(table)), expected, rtol=1e-4)
    assert grouped.counts.tolist() == counts
    assert grouped.size == len(counts)


def test_a_long_segment_goes_on_growing_where_float32_stops() -> None:
    """2^24 + 1 is the first whole number that float32 cannot hold."""
    many = (1 << 24) + 5001
    grouped = Segments(torch.zeros(many, dtype=torch.int32), torch.tensor([0, many], dtype=torch.int32))
    assert grouped.sum_exact(torch.ones(1, 1)).item() == many


def test_a_sum_is_exact_for_whole_numbers_cut_into_pieces_anywhere() -> None:
    """Whole numbers below 2^24 in each piece: not one unit may be lost."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 4000, (50, 2)).astype(np.float32)
    counts = [PIECE - 1, 1, 2 * PIECE + 1, 0, 17]
    index = rng.integers(0, 50, sum(counts))
    grouped = Segments(torch.tensor(index), offsets_of(torch.tensor(counts)))
    assert grouped.sum_exact(torch.tensor(table)).tolist() == by_loop(table.astype(float), index, counts).tolist()


def test_sums_in_blocks_are_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    counts = torch.tensor(rng.integers(0, 4, 23))
    grouped = Segments(torch.tensor(rng.integers(0, 9, int(counts.sum()))), offsets_of(counts))
    table = torch.tensor(rng.random((9, 2)), dtype=torch.float32)
    monkeypatch.setattr(segments, "BLOCK", 10)
    blocks = list(grouped.sums(table))
    assert [len(b) for b in blocks] == [5, 5, 5, 5, 3]
    torch.testing.assert_close(torch.cat(blocks), grouped.sum(table))


def test_column_sums_are_exact_past_2_to_the_24(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = torch.ones(1, 1).expand((1 << 24) + 5, 1)
    assert segments.column_sums(ones).tolist() == [(1 << 24) + 5]
    assert segments.column_sums(torch.zeros(0, 3)).tolist() == [0, 0, 0]
    monkeypatch.setattr(segments, "BLOCK", 8)
    table = torch.arange(22, dtype=torch.float32).view(11, 2)
    assert segments.column_sums(table).tolist() == [110, 121]


def test_segment_sum_takes_one_or_two_axes() -> None:
    values = torch.arange(12, dtype=torch.float32)
    offsets = torch.tensor([0, 5, 5, 12])
    assert segment_sum(values, offsets).tolist() == [10, 0, 56]
    both = segment_sum(torch.stack([values, -values], 1), offsets)
    assert both.tolist() == [[10, -10], [0, 0], [56, -56]]
    assert both.dtype == torch.float64


def test_minus_infinity_stays_minus_infinity_and_does_not_spread() -> None:
    values = torch.tensor([0.0, -torch.inf, -torch.inf, 1.0])
    assert segment_sum(values, torch.tensor([0, 1, 3, 4])).tolist() == [0, -torch.inf, 1]


def test_scatter_sum_equals_numpy() -> None:
    rng = np.random.default_rng(2)
    values, index = rng.random((100, 2)).astype(np.float32), rng.integers(0, 7, 100)
    expected = np.zeros((9, 2))
    np.add.at(expected, index, values.astype(float))
    found = scatter_sum(torch.tensor(values), torch.tensor(index, dtype=torch.int32), 9)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert scatter_sum(torch.ones(0), torch.zeros(0, dtype=torch.int32), 3).tolist() == [0, 0, 0]


def test_offsets_are_where_segments_begin_and_the_last_ends() -> None:
    assert offsets_of(torch.tensor([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert offsets_of(torch.tensor([], dtype=torch.int64)).tolist() == [0]
