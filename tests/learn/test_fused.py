"""Slopes worked out by hand equal those of the formulas, by finite differences in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from tests.crowds import crowd
from voxpop.learn.fused import foretold, picked, through, volume
from voxpop.votes import Batch


@pytest.fixture(params=[3, 40])
def batch(request: pytest.FixtureRequest) -> Batch:
    """Fewer workers than votes, and more."""
    return crowd(2, N=6, M=request.param, K=3, per_task=2).votes.whole


def numbers(*shape: int) -> Tensor:
    rng = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=rng, dtype=torch.float64, requires_grad=True)


def test_picked_is_the_label_of_a_log_softmax(batch: Batch) -> None:
    who, place = batch.by_whom
    weights = numbers(3, len(who), 3)
    expected = torch.stack(
        [weights[:, u].log_softmax(0)[label] for u, label in zip(place, batch.label.long(), strict=True)]
    )
    assert torch.allclose(picked(weights, place, batch), expected)
    assert gradcheck(lambda w: picked(w, place, batch), weights)


def test_foretold_sums_the_truths(batch: Batch) -> None:
    logp, given = numbers(6, 3).log_softmax(1), numbers(batch.V, 3)
    expected = (logp.exp()[batch.task.long()] * given.exp()).sum(1).log()
    assert torch.allclose(foretold(logp, given, batch), expected)
    assert gradcheck(lambda p, g: foretold(p, g, batch), (numbers(6, 3), given))


def test_foretold_knows_truths_that_cannot_be(batch: Batch) -> None:
    logp = torch.tensor([0.0, -torch.inf, -torch.inf], dtype=torch.float64).expand(6, 3).clone().requires_grad_()
    given = numbers(batch.V, 3)
    found = foretold(logp, given, batch)
    assert torch.allclose(found, given[:, 0])
    found.sum().backward()
    assert torch.equal(given.grad, torch.tensor([1.0, 0, 0]).double().expand(batch.V, 3))


def test_through_maps_predictions_by_each_votes_worker(batch: Batch) -> None:
    who, place = batch.by_whom
    p, weights = numbers(6, 3), numbers(3, len(who), 3)
    expected = torch.stack([weights[:, u] @ p[i] for u, i in zip(place, batch.task.long(), strict=True)])
    assert torch.allclose(through(p, weights, place, batch), expected)
    assert gradcheck(lambda p, w: through(p, w, place, batch), (p, weights))


def test_volume_is_the_log_determinant() -> None:
    rows = numbers(2, 3)  # of a lower rank than the matrix
    assert torch.allclose(volume(rows, 0.1), torch.logdet(rows.t() @ rows + 0.1 * torch.eye(3, dtype=torch.float64)))
    assert gradcheck(lambda r: volume(r, 0.1), rows)


def test_everybody_who_votes_is_in_a_batch_and_the_votes_say_where(batch: Batch) -> None:
    who, place = batch.by_whom
    assert torch.equal(who[place], batch.worker.long())
    assert torch.equal(who, who.unique())
