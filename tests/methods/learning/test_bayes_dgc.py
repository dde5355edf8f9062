"""BayesDGC beside paper 000's equations, worked out vote by vote in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from scipy.special import digamma, gammaln, logsumexp, softmax
from torch import nn

import voxpop as vp
from tests.crowds import Crowd, crowd
from tests.learn.crowds import data_of, features, trained
from voxpop.learn.data import Data
from voxpop.learn.loop import in_batches, parcels
from voxpop.methods.learning.bayes_dgc import Bayesian

CPU = torch.device("cpu")
K, M = 3, 6
BETA = np.where(np.eye(K, dtype=bool), 5.0, 1.0)  # the wrong labels share the 2


def some() -> Crowd:
    return crowd(4, N=40, M=M, K=K, per_task=3)


@dataclass
class Twin:
    """q(pi) and q(V), and what eqs. 14, 17 and 18 make of them; matrices are [worker, truth, label]."""

    crowd: Crowd
    alpha: np.ndarray = field(default_factory=lambda: np.full(K, 1.1))
    beta: np.ndarray = field(default_factory=lambda: np.tile(BETA, (M, 1, 1)))

    def __post_init__(self) -> None:
        self.first = self.alpha.copy(), self.beta.copy()

    def votes(self, task: int):
        here = self.crowd.task == task
        return zip(self.crowd.worker[here], self.crowd.label[here], strict=True)

    def natural(self, logp: np.ndarray, task: int) -> np.ndarray:
        """Eq. 14, with log p(y | x) for the potential."""
        eta = digamma(self.alpha) - digamma(self.alpha.sum()) + logp
        for m, label in self.votes(task):
            eta = eta + digamma(self.beta[m, :, label]) - digamma(self.beta[m].sum(1))
        return eta

    def belief(self, logp: np.ndarray) -> np.ndarray:
        return softmax(np.stack([self.natural(row, i) for i, row in enumerate(logp)]), 1)

    def step(self, tasks: np.ndarray, belief: np.ndarray, rate: float) -> None:
        """Along eqs. 17 and 18, scaled by N / B."""
        scale, (alpha, beta) = self.crowd.N / len(tasks), self.first
        to_alpha, to_beta = alpha.copy(), beta.copy()
        for i, q in zip(tasks, belief, strict=True):
            to_alpha += scale * q
            for m, label in self.votes(i):
                to_beta[m, :, label] += scale * q
        self.alpha = self.alpha + rate * (to_alpha - self.alpha)
        self.beta = self.beta + rate * (to_beta - self.beta)

    def bound(self, logp: np.ndarray) -> float:
        """Eq. 15: the bound at the best q(Y)."""
        alpha, beta = self.first
        truths = sum(logsumexp(self.natural(row, i)) for i, row in enumerate(logp))
        return float(truths - kl(self.alpha, alpha) - kl(self.beta, beta))


def kl(q: np.ndarray, p: np.ndarray) -> float:
    norm = gammaln(q.sum(-1)) - gammaln(p.sum(-1)) + (gammaln(p) - gammaln(q)).sum(-1)
    return float(np.sum(norm + ((q - p) * (digamma(q) - digamma(q.sum(-1, keepdims=True)))).sum(-1)))


def both(data: Data, ratio: bool = False, **options: float) -> tuple[Bayesian, Twin]:
    """The method as the paper has it, unless told otherwise."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        objective = vp.BayesDGC(ratio=ratio, **options).objective(nn.Linear(4, K), data)
    assert isinstance(objective, Bayesian)
    return objective, Twin(some())


def said(objective: Bayesian, data: Data) -> np.ndarray:
    return objective.logp(data.rows.take(data.positions)).detach().double().numpy()


def same(objective: Bayesian, twin: Twin) -> None:
    np.testing.assert_allclose(objective.q.of_classes, twin.alpha, rtol=1e-5)
    np.testing.assert_allclose(objective.q.of_workers.transpose(1, 2), twin.beta, rtol=1e-5)


def shares() -> np.ndarray:
    counts = np.zeros((some().N, K))
    np.add.at(counts, (some().task, some().label), 1)
    return counts / counts.sum(1, keepdims=True)


def test_a_full_natural_step_is_the_conjugate_update() -> None:
    data = data_of(some())
    objective, twin = both(data)
    everything = np.arange(some().N)
    objective.refresh(data, None)  # from the shares of the votes
    twin.step(everything, shares(), 1.0)
    same(objective, twin)
    logp = said(objective, data)
    belief = twin.belief(logp)
    objective(*next(in_batches(data, CPU)))
    alpha, beta = twin.first
    counts = np.zeros_like(beta)
    for i in everything:
        for m, label in twin.votes(i):
            counts[m, :, label] += belief[i]
    twin.alpha, twin.beta = alpha + belief.sum(0), beta + counts
    same(objective, twin)


def test_small_steps_on_batches_follow_equations_17_and_18() -> None:
    """Also where the scale of what is kept becomes small and is brought back."""
    data = data_of(some())
    objective, twin = both(data, step_size=3.0)
    rng = np.random.default_rng(0)
    logp = said(objective, data)
    for _ in range(30):
        tasks = rng.choice(some().N, 10, replace=False)
        belief = twin.belief(logp)[tasks]
        rate = objective.rate(10 / some().N)
        objective._follow(data.votes.batch(torch.from_numpy(tasks)), torch.from_numpy(belief))
        twin.step(tasks, belief, rate)
        same(objective, twin)


def test_one_natural_step_follows_several_batches_where_there_are_many() -> None:
    """40 batches of one task: a step for every two, with the beliefs that both had before it."""
    data = data_of(some())
    objective, twin = both(data)
    objective.refresh(data, None)
    twin.step(np.arange(some().N), shares(), 1.0)
    logp = said(objective, data)
    objective.passes = 1.0  # the network's mean stays as it is
    together = some().N // 16
    for number, parcel in enumerate(parcels(data, data.positions, 1, CPU)):
        objective(data.rows.take(parcel.rows), parcel)
        if (number + 1) % together == 0:
            tasks = np.arange(number + 1 - together, number + 1)
            twin.step(tasks, twin.belief(logp)[tasks], together / some().N)
            same(objective, twin)


def test_the_best_belief_is_equation_14() -> None:
    data = data_of(some())
    objective, twin = both(data)
    objective.refresh(data, None)
    twin.step(np.arange(some().N), shares(), 1.0)
    x = data.rows.take(data.positions)
    np.testing.assert_allclose(
        objective.combine(x, data.votes.whole, objective.prior_of(x)).detach(),
        twin.belief(said(objective, data)),
        atol=1e-5,
    )


@pytest.mark.parametrize("ratio", [False, True])
def test_the_bound_is_equation_15(ratio: bool) -> None:
    """With the network as it is, or over its own mean (times 1 / K, so that one without an opinion is as before)."""
    data = data_of(some())
    objective, twin = both(data, ratio=ratio)
    objective.refresh(data, None)
    twin.step(np.arange(some().N), shares(), 1.0)
    logp = objective.logp(data.rows.take(data.positions)).detach()
    known = logp.double().numpy()
    usual = logsumexp(known, axis=0) - np.log(len(known) / K) if ratio else 0
    assert objective.refresh(data, logp) == pytest.approx(twin.bound(known - usual), rel=1e-6)


def test_the_networks_gradient_is_that_of_the_bound() -> None:
    """q*(Y) is the optimum, so the cross-entropy with it has the bound's gradient: by finite differences of eq. 15."""
    data = data_of(some())
    objective, twin = both(data)
    objective.refresh(data, None)
    twin.step(np.arange(some().N), shares(), 1.0)
    network = objective.network.double()

    def bound() -> float:
        x = data.rows.take(data.positions).double()
        return twin.bound(network(x).log_softmax(1).detach().numpy())

    x, parcel = next(in_batches(data, CPU))
    objective(x.double(), parcel).backward()
    for weights in network.parameters():
        flat, grad = weights.data.view(-1), weights.grad.view(-1)
        for place in range(flat.numel()):
            kept = float(flat[place])
            ends = []
            for move in (1e-5, -1e-5):
                flat[place] = kept + move
                ends.append(bound())
            flat[place] = kept
            assert float(grad[place]) * some().N == pytest.approx(-(ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-3)


def test_the_bound_rises_over_full_batches() -> None:
    """From the second on: before the first epoch classes are alike, then the network speaks."""
    data = data_of(some())
    objective, _ = both(data)
    bounds = np.array([epoch.bound for epoch in trained(objective, data, 20, lr=0.01).history])
    assert (np.diff(bounds[1:]) >= -1e-5 * np.abs(bounds[2:])).all()
    assert bounds[-1] > bounds[1] + 1


def test_the_first_steps_add_up_to_the_step_size() -> None:
    """However many batches a pass has; later ones fall as Robbins and Monro ask."""
    data = data_of(some())
    for batches in (1, 4, 10):
        objective, _ = both(data, step_size=0.5, decay=0.0)
        assert sum(objective.rate(1 / batches) for _ in range(batches)) == pytest.approx(0.5)
    falling, _ = both(data, decay=0.7)
    rates = []
    for _ in range(3):
        rates.append(falling.rate(0.1))
        falling.passes += 1
    assert rates == pytest.approx([0.1, 0.1 * 2**-0.7, 0.1 * 3**-0.7])


def test_the_defaults_are_the_papers_and_the_posteriors_can_be_read() -> None:
    learner = vp.BayesDGC()
    assert (learner.model, learner.alpha, learner.beta, learner.lr) == ("mlp:100", 1.1, (5.0, 2.0), 1e-3)
    c = some()
    learner = vp.BayesDGC("linear", epochs=3, batch_size=1000).fit(features(c), c.votes)
    assert learner.pi_posterior_.sum() == pytest.approx(c.N + K * 1.1)
    assert learner.posterior_.shape == (M, K, K)
    assert (learner.posterior_ - Twin(c).beta).sum() == pytest.approx(len(c.task))
    np.testing.assert_allclose((learner.posterior_ - Twin(c).beta).sum((1, 2)), np.bincount(c.worker, minlength=M))
