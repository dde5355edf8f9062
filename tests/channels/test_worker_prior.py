"""Priors on a worker's matrix: by name, as numbers, or drawn by a function."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from voxpop.channels.coin import Coin
from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.channels.prototypes import Prototypes
from voxpop.channels.worker_prior import WorkerPrior
from voxpop.errors import BadOption, UnknownName


def test_the_wrong_part_is_shared_by_the_wrong_labels() -> None:
    assert prior_rows(3, 2.0, 1.0).tolist() == [[2, 0.5, 0.5], [0.5, 2, 0.5], [0.5, 0.5, 2]]
    assert prior_rows(2, 2.0, 1.0).tolist() == [[2, 1], [1, 2]]
    assert prior_rows(1, 2.0, 1.0).tolist() == [[2]]


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("name", ["one-coin", "two-coin", "dirichlet"])
def test_draws_are_right_as_often_as_the_parameters_say(name: str, K: int) -> None:
    table = WorkerPrior(name, K, 3.0, 1.5).draw(4000, seed=0)
    assert table.shape == (4000, K, K)
    torch.testing.assert_close(table.sum(2), torch.ones(4000, K), atol=1e-5, rtol=0)
    right = table.diagonal(dim1=1, dim2=2)
    variance = (3 / 4.5) * (1.5 / 4.5) / 5.5  # Beta(3, 1.5) in all three
    np.testing.assert_allclose(right.mean(0), 3 / 4.5, atol=4 * (variance / 4000) ** 0.5)
    np.testing.assert_allclose(right.var(0), variance, rtol=0.1)
    together = float(np.corrcoef(right[:, 0], right[:, 1])[0, 1])
    assert together == pytest.approx(1 if name == "one-coin" else 0, abs=0.06)
    torch.testing.assert_close(table, WorkerPrior(name, K, 3.0, 1.5).draw(4000, seed=0))


def test_mean_field_makes_the_channel_that_is_conjugate() -> None:
    one = WorkerPrior("one-coin", 3).mean_field(10, 0)
    assert isinstance(one, Coin)
    assert one.shared
    assert one.variational
    assert isinstance(WorkerPrior("dirichlet", 3).mean_field(10, 0), DirichletConfusion)
    assert isinstance(WorkerPrior(torch.eye(3)[None], 3).mean_field(10, 0), Prototypes)


def test_a_function_is_called_with_the_number_and_the_seed() -> None:
    def draw(samples: int, seed: int) -> torch.Tensor:
        return torch.full((samples, 2, 2), 0.5) + 0 * seed

    assert WorkerPrior(draw, 2).draw(7, seed=3).shape == (7, 2, 2)


def test_numbers_may_come_as_an_array_or_a_list() -> None:
    for numbers in (np.eye(2)[None], [[[1.0, 0.0], [0.0, 1.0]]]):
        assert WorkerPrior(numbers, 2).draw(1, 0).tolist() == [[[1, 0], [0, 1]]]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (torch.eye(3)[None], r"shape \(1, 3, 3\)"),
        (torch.eye(2), r"shape \(2, 2\)"),
        (torch.tensor([[[0.5, 0.4], [0.5, 0.5]]]), "sum to 1"),
        (torch.tensor([[[1.5, -0.5], [0.5, 0.5]]]), "non-negative"),
        (lambda s, seed: "nonsense", "one of one-coin"),
        (object(), "one of one-coin"),
    ],
)
def test_bad_prototypes_are_refused(kind: object, words: str) -> None:
    with pytest.raises(BadOption, match=words):
        WorkerPrior(kind, 2).draw(3, 0)  # type: ignore[arg-type]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'one-coin'"):
        WorkerPrior("one-coins", 2)
