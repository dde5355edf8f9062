"""Prototypes: the posterior over a list, and zeros."""

from __future__ import annotations

import numpy as np
import torch

from voxpop.channels.prototypes import Prototypes

TABLES = torch.tensor([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]], [[0.3, 0.7], [0.6, 0.4]]])


def test_weights_are_the_posterior_of_the_list() -> None:
    counts = torch.tensor(np.random.default_rng(0).uniform(0, 4, (5, 2, 2)))  # [worker, label, truth]
    theta = Prototypes(TABLES).update({"counts": counts}, None)
    logs = np.einsum("mlk,skl->ms", counts.numpy(), np.log(TABLES.double().numpy()))
    weight = np.exp(logs) / np.exp(logs).sum(1, keepdims=True)
    np.testing.assert_allclose(theta["weight"], weight, rtol=1e-6)
    expected = np.einsum("ms,skl->mlk", weight, np.log(TABLES.double().numpy()))
    np.testing.assert_allclose(theta["log"], expected, rtol=1e-5)
    mean = np.einsum("ms,skl->mkl", weight, TABLES.double().numpy())
    np.testing.assert_allclose(Prototypes(TABLES).table(theta), mean, rtol=1e-5)


def test_a_prototype_that_excludes_a_vote_is_out() -> None:
    tables = torch.stack([torch.eye(2), torch.full((2, 2), 0.5)])
    counts = torch.tensor([[[3.0, 0.0], [0.0, 2.0]], [[3.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])
    theta = Prototypes(tables).update({"counts": counts.double()}, None)
    np.testing.assert_allclose(theta["weight"], [[1 / (1 + 2.0**-5), 1 / 33], [0, 1], [0.5, 0.5]], rtol=1e-9)
    log = theta["log"]
    assert not torch.isnan(log).any()
    assert torch.isneginf(log[0, 1, 0])  # no label 1 for truth 0 while the infallible one is possible
    torch.testing.assert_close(log[1].exp(), torch.full((2, 2), 0.5))
    assert not torch.isnan(Prototypes(tables).table(theta)).any()


def test_where_every_prototype_is_out_all_are_alike() -> None:
    tables = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])  # always 0, always 1
    counts = torch.ones(1, 2, 2).double()
    theta = Prototypes(tables).update({"counts": counts}, None)
    assert theta["weight"].tolist() == [[0.5, 0.5]]
    assert torch.isfinite(Prototypes(tables).penalty(theta))
