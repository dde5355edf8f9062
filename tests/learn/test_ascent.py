"""EM with a network: while the network is frozen its bound never falls, and the network's own step is checked apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import digamma, gammaln, logsumexp
from torch import Tensor, nn

import voxpop as vp
from tests.crowds import Crowd, coin_tables, crowd
from tests.learn.crowds import data_of, features, trained
from voxpop.learn.ascent import Ascending
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.learn.rows import TensorRows

PROTOTYPES = torch.from_numpy(coin_tables(np.array([0.9, 0.6, 1 / 3]), 3))
FAMILY: dict[str, Learner] = {
    "AggNet": vp.AggNet(),
    "Raykar": vp.Raykar(),
    "Yan": vp.Yan(),
    "DeepMF": vp.DeepMF(),
    "DeepMF, one coin": vp.DeepMF(workers_prior="one-coin"),
    "DeepMF, two coins": vp.DeepMF(workers_prior="two-coin"),
    "DeepMF, prototypes": vp.DeepMF(workers_prior=PROTOTYPES),
}


def some() -> Crowd:
    return crowd(2, N=80, M=8, K=3, per_task=3)


def linear(seed: int = 0, classes: int = 3) -> nn.Module:
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return nn.Linear(4, classes)


def ascending(learner: Learner, data: Data, seed: int = 0) -> Ascending:
    objective = learner.objective(linear(seed), data)
    assert isinstance(objective, Ascending)
    return objective


def informed(data: Data) -> Tensor:
    """What a frozen network might say: right more often than not, and never sure."""
    truth = torch.from_numpy(some().truth)
    noise = torch.randn(data.votes.N, 3, generator=torch.Generator().manual_seed(0))
    return (nn.functional.one_hot(truth, 3) + noise).log_softmax(1)


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("name", FAMILY)
def test_the_bound_never_falls_while_the_network_is_frozen(name: str, gold: bool) -> None:
    known = torch.full((80,), -1)
    known[:10] = torch.from_numpy(some().truth[:10])
    data = data_of(some(), known if gold else None)
    objective = ascending(FAMILY[name], data)
    logp = informed(data)
    bounds = np.array([objective.refresh(data, logp) for _ in range(25)])
    assert (np.diff(bounds) >= -1e-6 * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0] + 0.01


def each_vote(c: Crowd):
    return zip(c.task, c.worker, c.label, strict=True)


def test_aggnets_bound_is_its_log_posterior() -> None:
    data = data_of(some())
    objective = ascending(vp.AggNet(smoothing=0.3), data)
    logp = informed(data)
    for _ in range(3):
        bound = objective.refresh(data, logp)
    log = np.log(objective.table().double().numpy())  # M,K,K as [worker, truth, label]
    said = logp.double().numpy().copy()
    for i, m, label in each_vote(some()):
        said[i] += log[m, :, label]
    assert bound == pytest.approx(logsumexp(said, 1).sum() + 0.3 * log.sum(), rel=1e-5)


def kl_of_dirichlets(q: np.ndarray, p: np.ndarray) -> float:
    """KL(Dir(q) || Dir(p)) summed over rows."""
    norm = gammaln(q.sum(-1)) - gammaln(p.sum(-1)) + (gammaln(p) - gammaln(q)).sum(-1)
    return float((norm + ((q - p) * (digamma(q) - digamma(q.sum(-1, keepdims=True)))).sum(-1)).sum())


def test_deep_mfs_bound_is_equation_26() -> None:
    data = data_of(some())
    objective = ascending(vp.DeepMF(alpha=(3.0, 2.0), clip=1.0), data)
    logp = informed(data)
    for _ in range(3):
        bound = objective.refresh(data, logp)
    q = objective.believed().double().numpy()
    beta = objective.theta["posterior"].numpy().transpose(0, 2, 1)  # M,K,K as [worker, truth, label]
    log = digamma(beta) - digamma(beta.sum(2, keepdims=True))
    votes = sum(q[i] @ log[m, :, label] for i, m, label in each_vote(some()))
    truths = (q * (np.log(q) - logp.double().numpy())).sum()
    alpha = np.where(np.eye(3, dtype=bool), 3.0, 1.0)  # 2 shared by the two wrong labels
    assert bound == pytest.approx(votes - truths - kl_of_dirichlets(beta, np.broadcast_to(alpha, beta.shape)), rel=1e-5)


def test_deep_mf_updates_the_dirichlets_by_equation_29() -> None:
    data = data_of(some())
    objective = ascending(vp.DeepMF(alpha=(3.0, 2.0)), data)
    objective.refresh(data, None)
    q = objective.believed().double().numpy()
    objective.refresh(data, None)
    beta = np.tile(np.where(np.eye(3, dtype=bool), 3.0, 1.0), (8, 1, 1))
    for i, m, label in each_vote(some()):
        beta[m, :, label] += q[i]
    np.testing.assert_allclose(objective.theta["posterior"].transpose(1, 2), beta, rtol=1e-6)


# -- the network's own step -----------------------------------------------------------------------


def frozen_belief(learner: Learner, data: Data) -> Objective:
    """After one E-step; later ones are left out."""
    objective = ascending(learner, data)
    objective.refresh(data, informed(data))
    objective.refreshes = False
    return objective


@pytest.mark.parametrize("name", FAMILY)
def test_the_networks_step_lowers_its_loss_alone(name: str) -> None:
    data = data_of(some())
    objective = frozen_belief(FAMILY[name], data)
    belief, table = objective.believed().clone(), objective.state()
    losses = np.array([epoch.loss for epoch in trained(objective, data, 30, lr=0.02).history])
    assert (np.diff(losses) < 0).all()
    assert torch.equal(objective.believed(), belief)
    moved = [key for key, value in objective.state().items() if not torch.equal(value, table[key])]
    assert all(key.startswith("network.") for key in moved)


def test_the_loss_is_the_cross_entropy_with_the_belief() -> None:
    data = data_of(some())
    objective = frozen_belief(vp.AggNet(), data)
    expected = -(objective.believed() * objective.logp(data.rows.take(data.positions))).sum(1).mean()
    assert trained(objective, data, 1).history[0].loss == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_best_network_says_what_is_believed() -> None:
    """Paper 001, eq. 30: the minimum of KL(q || p), where the network can say anything of any task."""
    c = crowd(2, N=12, M=8, K=3, per_task=3)
    data = Data(TensorRows(torch.eye(12)), c.votes)
    objective = vp.DeepMF().objective(nn.Linear(12, 3), data)
    objective.refresh(data, None)
    objective.refreshes = False
    trained(objective, data, 150, lr=0.3)
    said = objective.logp(torch.eye(12)).detach().exp()
    assert torch.allclose(said, objective.believed(), atol=0.01)


@pytest.mark.parametrize("learner", [vp.AggNet, vp.DeepMF], ids=lambda kind: kind.__name__)
def test_with_both_steps_the_bound_rises(learner: type[Learner]) -> None:
    """Generalised EM: small full-batch steps of a network that has one optimum."""
    more = {"clip": 1.0} if learner is vp.DeepMF else {}
    fitted = learner("linear", epochs=40, batch_size=1000, lr=0.01, **more).fit(features(some()), some().votes)
    bounds = np.array([info.bound for info in fitted.consensus_.history])
    assert (np.diff(bounds) >= -1e-5 * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0] + 1
