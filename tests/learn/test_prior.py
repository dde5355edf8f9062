"""Clipping, paper 001 section 3.3: no class over c, the excess spread evenly over the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import voxpop as vp
from tests.crowds import crowd
from tests.learn.crowds import Constant, features
from voxpop.learn.prior import clip


def test_two_classes_share_the_excess() -> None:
    p = torch.tensor([[0.97, 0.03], [0.5, 0.5], [0.2, 0.8]])
    assert torch.allclose(clip(p, 0.9), torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))


def test_the_excess_goes_evenly_to_the_others() -> None:
    assert torch.allclose(clip(torch.tensor([[0.9, 0.1, 0.0]]), 0.7), torch.tensor([[0.7, 0.2, 0.1]]))


@pytest.mark.parametrize("most", [0.25, 0.3, 0.4, 0.6, 0.9])
def test_nothing_is_over_the_limit_and_the_order_stays(most: float) -> None:
    rng = np.random.default_rng(0)
    p = torch.from_numpy(rng.dirichlet(np.full(4, 0.3), 500)).float()
    out = clip(p, most)
    assert float(out.max()) <= most + 1e-6
    assert torch.allclose(out.sum(1), torch.ones(500), atol=1e-5)
    below = p.max(1).values <= most
    assert torch.equal(out[below], p[below])
    ranks = torch.argsort(p, 1)
    assert bool((out.gather(1, ranks).diff(dim=1) >= -1e-6).all())


def test_a_network_that_is_sure_and_wrong_is_bounded_by_clipping() -> None:
    """It always says class 0; held to 0.6, three good votes can say otherwise."""
    c = crowd(0, N=60, M=5, K=2, per_task=5, table=np.tile([[0.9, 0.1], [0.1, 0.9]], (5, 1, 1)))
    network = Constant(torch.tensor([60.0, 0.0]))
    believed = {}
    for most in (0.6, 1.0):
        found = vp.DeepMF(network, epochs=5, clip=most).fit(features(c), c.votes).consensus_
        believed[most] = float((found.belief.argmax(1).numpy() == c.truth).mean())
    assert believed[0.6] > 0.9
    assert believed[1.0] < 0.7
