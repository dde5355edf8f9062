"""Max-MIG: the gain goes to the true f-mutual information, and what E.2 of paper 004 says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import voxpop as vp
from tests.crowds import crowd
from tests.learn.crowds import data_of
from voxpop.learn.data import Data
from voxpop.learn.rows import TensorRows
from voxpop.methods.learning.aggnet import AggNet
from voxpop.methods.learning.max_mig import DIVERGENCES, Intersection, counts_start, gains

F: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "kl": lambda t: t * np.log(t),
    "pearson": lambda t: (t - 1) ** 2,
    "js": lambda t: -(t + 1) * np.log((t + 1) / 2) + t * np.log(t),
}

# p(x | truth), p(label | truth) of two workers: all of them multiples of 1/4, so that 256 tasks hold each case exactly
PRIOR = np.array([0.25, 0.75])
SEEN = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
TOLD = np.array([[[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5], [0.25, 0.75]]])


def joint() -> np.ndarray:
    """P(truth, x, label of the first, label of the second)."""
    return np.einsum("y,yx,ya,yb->yxab", PRIOR, SEEN, TOLD[0], TOLD[1])


def mutual_information(f: Callable[[np.ndarray], np.ndarray]) -> float:
    p = joint().sum(0).reshape(3, 4)  # x, both labels
    apart = p.sum(1, keepdims=True) * p.sum(0)
    return float((apart * f(p / apart)).sum())


def population(copies: int) -> tuple[Tensor, Tensor]:
    """log P(truth | x) and log P(truth | labels) of tasks in their exact proportions: B,2 both."""
    p = joint()
    times = np.round(p.sum(0) * 256).astype(int)
    assert np.allclose(times, p.sum(0) * 256)
    x, a, b = (np.repeat(each.ravel(), times.ravel() * copies) for each in np.indices(times.shape))
    by_x = p.sum((2, 3)) / p.sum((0, 2, 3))  # truth,x
    by_labels = p.sum(1) / p.sum((0, 1))  # truth,a,b
    return torch.from_numpy(by_x.T[x]).log(), torch.from_numpy(by_labels[:, a, b].T).log()


@pytest.mark.parametrize("name", F)
def test_the_gain_goes_to_the_f_mutual_information(name: str) -> None:
    """Theorem 3.4. Leaving out a task's own pair is off by 1 / N: four times the tasks, a quarter of the error."""
    log_prior = torch.from_numpy(PRIOR).log()
    expected = mutual_information(F[name])
    errors = []
    for copies in (1, 4):
        h, g = population(copies)
        errors.append(float(gains(h, g, log_prior, DIVERGENCES[name]).mean()) - expected)
    assert abs(errors[1]) < 0.01 * expected + 1e-4
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.05)


@pytest.mark.parametrize("name", F)
def test_no_other_pair_of_predictions_gains_more(name: str) -> None:
    log_prior = torch.from_numpy(PRIOR).log()
    h, g = population(4)
    best = float(gains(h, g, log_prior, DIVERGENCES[name]).mean())
    for change in (lambda p: p * 0.5, lambda p: p * 2.0, lambda p: p + torch.tensor([0.7, 0.0]), lambda p: p.flip(1)):
        for one, other in ((change(h).log_softmax(1), g), (h, change(g).log_softmax(1))):
            assert float(gains(one, other, log_prior, DIVERGENCES[name]).mean()) < best - 1e-4
    wrong = torch.tensor([0.5, 0.5], dtype=torch.float64).log()
    assert float(gains(h, g, wrong, DIVERGENCES[name]).mean()) < best - 1e-4


@pytest.mark.parametrize("name", F)
def test_the_gain_is_equation_1(name: str) -> None:
    """Pair by pair, with f' by differences, and f* at f' as t f'(t) - f(t)."""
    rng = np.random.default_rng(0)
    h, g, p = rng.dirichlet(np.ones(3), 6), rng.dirichlet(np.ones(3), 6), rng.dirichlet(np.ones(3))
    f = F[name]

    def slope(t: float) -> float:
        return float((f(np.array(t + 1e-6)) - f(np.array(t - 1e-6))) / 2e-6)

    told = 0.0
    for i in range(6):
        told += slope((h[i] * g[i] / p).sum()) / 6
        for j in range(6):
            t = (h[i] * g[j] / p).sum()
            told -= (t * slope(t) - float(f(np.array(t)))) / 30 if i != j else 0
    found = gains(*(torch.from_numpy(np.log(each)) for each in (h, g, p)), DIVERGENCES[name])
    assert float(found.mean()) == pytest.approx(told, abs=1e-6)


@pytest.mark.parametrize("name", F)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_equal_finite_differences(name: str, weighted: bool) -> None:
    data = data_of(crowd(3, N=12, M=5, K=3, per_task=3))
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        objective = vp.MaxMIG(divergence=name, prior="learned").objective(nn.Linear(4, 3), data).double()
        for weights in objective.parameters():
            weights.data += 0.3 * torch.randn(weights.shape, dtype=torch.float64)
    if weighted:
        objective.class_weight = torch.tensor([1.0, 3.0, 0.5])
    x, batch = data.rows.take(data.positions).double(), data.votes.whole
    objective.loss(x, batch).backward()
    for weights in objective.parameters():
        flat, grad = weights.data.view(-1), weights.grad.reshape(-1)
        for place in range(0, flat.numel(), max(1, flat.numel() // 5)):
            kept, ends = float(flat[place]), []
            for move in (1e-5, -1e-5):
                flat[place] = kept + move
                ends.append(float(objective.loss(x, batch).detach()))
            flat[place] = kept
            assert float(grad[place]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-7)


def bayes() -> tuple[Intersection, Data]:
    """The aggregator of conditionally independent workers: W = log p(label | truth), b = log p (Proposition D.3)."""
    p = joint().sum(1)  # truth,a,b
    labels = np.array([(a, b) for a in range(2) for b in range(2)])
    votes = vp.Votes.from_arrays(np.repeat(np.arange(4), 2), np.tile([0, 1], 4), labels.ravel(), classes=range(2))
    data = Data(TensorRows(torch.zeros(4, 1)), votes)
    weight = torch.from_numpy(np.log(TOLD)).transpose(1, 2).contiguous()  # M,K,K as [worker, label, truth]
    made = Intersection(
        nn.Linear(1, 2).double(), data, weight, torch.from_numpy(PRIOR), learned=False, divergence="kl", lr=0.01
    )
    assert np.allclose(made.aggregate(votes.whole).exp().detach(), (p / p.sum(0)).reshape(2, 4).T)
    return made, data


def test_the_forecaster_is_bayes_rule() -> None:
    """Section 3.1: with the posteriors for h and g and the true p, h g / p is p(truth | x, labels)."""
    objective, data = bayes()
    for x in range(3):
        by_x = PRIOR * SEEN[:, x] / (PRIOR * SEEN[:, x]).sum()
        with torch.no_grad():
            objective.network.weight.zero_()
            objective.network.bias.copy_(torch.from_numpy(np.log(by_x)))
            rows = torch.zeros(4, 1, dtype=torch.float64)
            found = objective.combine(rows, data.votes.whole, objective.prior_of(rows))
        p = joint()[:, x].reshape(2, 4)
        np.testing.assert_allclose(found, (p / p.sum(0)).T, atol=1e-9)


def test_w_starts_by_equation_2() -> None:
    """log of the share of a worker's labels where the votes say each truth; a pseudo vote keeps the log finite.

    Here every worker uses all labels alike.
    """
    labels = np.array([[0, 0, 1], [1, 1, 2], [2, 2, 0], [0, 1, 0], [1, 2, 1], [2, 0, 2]])  # N,M
    share = np.stack([(labels == k).mean(1) for k in range(3)], 1)  # N,K
    data = Data(TensorRows(torch.zeros(6, 1)), vp.Votes.from_matrix(labels))
    start = counts_start(data, 0.3).numpy()  # M,K,K as [worker, label, truth]
    for m in range(3):
        told = np.stack([share[labels[:, m] == label].sum(0) for label in range(3)]) + 0.1  # label,truth
        np.testing.assert_allclose(np.exp(start[m]), told / told.sum(0), atol=1e-5)


# -- example E.2 ------------------------------------------------------------------------------------

COPIES = 100


def example() -> tuple[np.ndarray, np.ndarray, vp.Votes]:
    """The first worker knows; the second tosses a coin, and 99 copy the second. X is the truth."""
    rng = np.random.default_rng(0)
    truth, coin = np.arange(100) % 2, rng.integers(0, 2, 100)
    labels = np.concatenate([truth[:, None], np.repeat(coin[:, None], COPIES, 1)], 1)
    return np.eye(2, dtype=np.float32)[truth], truth, vp.Votes.from_matrix(labels)


def test_the_likelihood_prefers_the_useless_classifier() -> None:
    """Theorem E.3: at its best log 0.5 for the coin and again for the first worker, against 100 log 0.5."""
    x, _, votes = example()
    data = Data(TensorRows(torch.from_numpy(x)), votes)
    told = {}
    for name, says in (("nothing", torch.full((100, 2), 0.5).log()), ("all", torch.from_numpy(x - 1) * 1e4)):
        objective = AggNet(smoothing=1e-6).objective(nn.Linear(2, 2), data)
        for _ in range(20):
            objective.refresh(data, says)
        p = says + data.batch.by_task.sum(objective.theta["log"].reshape(-1, 2))
        told[name] = float(p.logsumexp(1).mean())
    assert told["nothing"] == pytest.approx(2 * np.log(0.5), abs=0.05)
    assert told["all"] == pytest.approx(COPIES * np.log(0.5), rel=0.05)


def fitted(start: str, votes: vp.Votes, x: np.ndarray) -> vp.MaxMIG:
    return vp.MaxMIG("linear", epochs=120, batch_size=100, lr=0.05, start=start).fit(x, votes)


def test_max_mig_finds_the_truth_and_aggnet_does_not() -> None:
    x, truth, votes = example()
    found = fitted("average", votes, x)
    assert found.score(x, truth) == 1.0
    assert (found.consensus_.belief.argmax(1).numpy() == truth).mean() == 1.0
    weight = found.objective_.crowd.detach()  # M,K,K as [worker, label, truth]
    moves = (weight[:, 0, 0] - weight[:, 1, 0]) - (weight[:, 0, 1] - weight[:, 1, 1])  # M: what a label says
    assert float(moves[0]) > 3 * abs(float(moves[1:].sum()))  # they began the other way round, a hundred to one
    fooled = vp.AggNet("linear", epochs=40, batch_size=100, lr=0.05).fit(x, votes)
    assert (fooled.consensus_.belief.argmax(1).numpy() == truth).mean() < 0.7


def test_held_out_gain_tells_the_start_that_finds_it() -> None:
    """Trained on the one half, asked about the other: W = I and eq. 2 believe the copies."""
    x, _, votes = example()
    half = votes.select(votes.task < 50)
    score = {}
    for start in ("average", "identity", "counts"):
        objective = fitted(start, half, x).objective_
        rest = torch.arange(50, 100)
        score[start] = float(objective.score(torch.from_numpy(x)[rest], votes.batch(rest)).mean().detach())
    assert score["average"] > 0.5
    assert max(score["identity"], score["counts"]) < 0.1
