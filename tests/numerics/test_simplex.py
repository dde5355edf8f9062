"""voxpop.numerics.simplex against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax

from voxpop.numerics import simplex
from voxpop.numerics.segments import rows_of_a_block


@pytest.mark.parametrize("width", [1, 2, 5, 33, 200], ids=lambda w: f"{w} classes")
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_softmax_rows_equals_scipy(rows: int, width: int) -> None:
    rng = np.random.default_rng(rows + width)
    logits = rng.normal(0, 30, (rows, width)).astype(np.float32)
    if width > 1:
        logits[rng.random((rows, width)) < 0.2] = -np.inf
        logits[:, 0] = np.where(np.isinf(logits).all(1), 0, logits[:, 0])
    p, total = simplex.softmax_rows(torch.tensor(logits))
    np.testing.assert_allclose(p, softmax(logits.astype(float), 1) if rows else p, atol=2e-6)
    np.testing.assert_allclose(total, logsumexp(logits.astype(float), 1).sum() if rows else 0, rtol=1e-6, atol=1e-4)
    assert total.dtype == torch.float64


def test_softmax_rows_in_more_than_one_block() -> None:
    logits = torch.randn(rows_of_a_block(3, torch.device("cpu")) + 77, 3, generator=torch.Generator().manual_seed(0))
    p, total = simplex.softmax_rows(logits)
    torch.testing.assert_close(p, torch.softmax(logits, 1))
    assert float(total) == pytest.approx(float(torch.logsumexp(logits.double(), 1).sum()), rel=1e-7)


@pytest.mark.parametrize("width", [3, 50])
def test_a_row_that_excludes_everything_is_uniform_and_impossible(width: int) -> None:
    logits = torch.zeros(4, width)
    logits[2] = -torch.inf
    p, total = simplex.softmax_rows(logits)
    torch.testing.assert_close(p, torch.full((4, width), 1 / width))
    assert float(total) == -np.inf


def test_softmax_rows_does_not_change_its_argument() -> None:
    logits = torch.tensor([[1.0, -torch.inf, 3.0]])
    before = logits.clone()
    simplex.softmax_rows(logits)
    assert torch.equal(logits, before)


def test_normalise_divides_by_the_sum_and_knows_nothing_of_zeros() -> None:
    counts = torch.tensor([[1.0, 3.0], [0.0, 0.0], [1e-37, 0.0]])
    assert simplex.normalise(counts).tolist() == [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]


def test_log_has_no_floor() -> None:
    assert simplex.log(torch.tensor([0.0, 1.0])).tolist() == [-np.inf, 0.0]


def test_first_best_takes_the_first_of_those_within_a_tie() -> None:
    belief = torch.tensor(
        [
            [0.5, 0.5, 0.0],
            [0.4, 0.4 + 0.5 * simplex.TIE, 0.2],  # within: the first, though the second is larger
            [0.4, 0.4 + 3 * simplex.TIE, 0.2],  # beyond: the second
            [0.1, 0.2, 0.7],
        ]
    )
    label, tied = simplex.first_best(belief)
    assert label.tolist() == [0, 0, 1, 2]
    assert tied.tolist() == [True, True, False, False]


def test_entropy_in_nats() -> None:
    found = simplex.entropy(torch.tensor([[0.25] * 4, [1.0, 0, 0, 0]]))
    np.testing.assert_allclose(found, [np.log(4), 0], rtol=1e-6)
