"""Gibbs sampling against the sum over all truths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import betaln

from tests.crowds import Crowd, counts_of, crowd, log_polya, posterior, side_by_side
from voxpop.channels.coin import Coin
from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.channels.mace import Spamming
from voxpop.channels.prototypes import Prototypes
from voxpop.engines import gibbs
from voxpop.engines.em import Model
from voxpop.engines.gibbs import Samples
from voxpop.engines.starts import shares
from voxpop.priors import DirichletClasses, Uniform

COPIES = 100  # of one problem side by side: so many chains for the price of one


def run(c: Crowd, channel: object, theta: dict, sweeps: int = 250, gold: dict[int, int] | None = None) -> Samples:
    """The problem's copies have no worker in common and classes are alike, so they are independent chains."""
    many = side_by_side([c] * COPIES)
    known = None if gold is None else {i + n * c.N: k for i, k in gold.items() for n in range(COPIES)}
    clamped = many.votes.gold(known)
    model = Model(channel, Uniform(), clamped)  # type: ignore[arg-type]
    begin = shares(many.votes, clamped)
    return gibbs.sample(
        many.votes.whole, model, begin, theta, sweeps=sweeps, burn_in=sweeps // 5, chains=1, seed=0, keep=sweeps
    )


def averaged(c: Crowd, drawn: Samples) -> np.ndarray:
    return drawn.belief.view(COPIES, c.N, c.K).mean(0).numpy()


@pytest.mark.parametrize("gold", [None, {0: 1}], ids=["no gold", "gold"])
@pytest.mark.parametrize("K", [2, 3])
def test_dirichlet_confusion_equals_enumeration(K: int, gold: dict[int, int] | None) -> None:
    """100 chains x 200 sweeps, correlated: a standard error of about 0.003; allowed is 0.015."""
    c = crowd(K, N=6, M=3, K=K, per_task=3)
    rows = prior_rows(K, 2.0, 1.0)
    expected = posterior(lambda z: log_polya(counts_of(c, z), rows.numpy()), 6, K, gold)
    drawn = run(c, DirichletConfusion(rows), {}, gold=gold)
    np.testing.assert_allclose(averaged(c, drawn), expected, atol=0.015)


@pytest.mark.parametrize("shared", [True, False], ids=["one coin", "two coins"])
def test_coins_equal_enumeration(shared: bool) -> None:
    c = crowd(4, N=6, M=3, K=3, per_task=3)

    def weight(z: np.ndarray) -> float:
        counts = counts_of(c, z)
        right = np.einsum("mkk->mk", counts)
        wrong = counts.sum(2) - right
        if shared:
            right, wrong = right.sum(1), wrong.sum(1)
        return float((betaln(2 + right, 1 + wrong) - wrong * np.log(2)).sum())

    drawn = run(c, Coin(3, shared, 2.0, 1.0, variational=True), {})
    np.testing.assert_allclose(averaged(c, drawn), posterior(weight, 6, 3), atol=0.015)


def test_prototypes_equal_enumeration() -> None:
    tables = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]], [[0.2, 0.8], [0.7, 0.3]]])
    c = crowd(5, N=6, M=3, K=2, per_task=3)

    def weight(z: np.ndarray) -> float:
        counts = counts_of(c, z)
        logs = np.einsum("mkl,skl->ms", counts, np.log(tables))
        return float(np.logaddexp.reduce(logs, 1).sum())

    drawn = run(c, Prototypes(torch.tensor(tables, dtype=torch.float32)), {})
    np.testing.assert_allclose(averaged(c, drawn), posterior(weight, 6, 2), atol=0.015)


def test_spammers_equal_a_grid() -> None:
    """MACE has no closed form: its two parameters a worker (K = 2) are summed on a grid of 120 x 120."""
    c = crowd(6, N=5, M=2, K=2, per_task=2)
    x = (np.arange(120) + 0.5) / 120
    trust, first = np.meshgrid(x, x, indexing="ij")
    log_prior = 0.5 * (np.log(trust) + np.log1p(-trust) + np.log(first) + np.log1p(-first))
    spam = np.stack([first, 1 - first])  # label, grid, grid

    def weight(z: np.ndarray) -> float:
        total = 0.0
        for w in range(c.M):
            logs = log_prior.copy()
            for i, label in zip(c.task[c.worker == w], c.label[c.worker == w], strict=True):
                logs += np.log(trust * (z[i] == label) + (1 - trust) * spam[label])
            total += np.logaddexp.reduce(logs.ravel())
        return total

    many = c.M * COPIES
    theta = {"trust": torch.full((many,), 0.5).double(), "spam": torch.full((many, 2), 0.5).double()}
    drawn = run(c, Spamming(), theta, sweeps=400)
    np.testing.assert_allclose(averaged(c, drawn), posterior(weight, 5, 2), atol=0.02)


def test_learned_classes_equal_enumeration() -> None:
    """Class frequencies with a Dirichlet prior couple all tasks: a chain of its own, 4,000 sweeps."""
    c = crowd(7, N=6, M=3, K=2, per_task=2)
    rows = prior_rows(2, 2.0, 1.0)

    def weight(z: np.ndarray) -> float:
        return log_polya(counts_of(c, z), rows.numpy()) + log_polya(np.bincount(z, minlength=2), np.full(2, 1.5))

    model = Model(DirichletConfusion(rows), DirichletClasses(1.5))
    drawn = gibbs.sample(
        c.votes.whole, model, shares(c.votes), {}, sweeps=4000, burn_in=200, chains=1, seed=0, keep=100
    )
    np.testing.assert_allclose(drawn.belief, posterior(weight, 6, 2), atol=0.03)


def test_the_workers_posterior_equals_enumeration() -> None:
    """With every truth known, a worker's accuracy is Beta(1 + right, 1 + wrong): its mean, its 5% and 95% points."""
    from scipy import stats

    c = crowd(8, N=12, M=2, K=2, per_task=2)
    gold = {i: int(k) for i, k in enumerate(c.truth)}
    drawn = run(c, Coin(2, True, 2.0, 1.0, variational=True), {}, sweeps=200, gold=gold)
    for w in range(c.M):
        hit = (c.label == c.truth[c.task])[c.worker == w]
        beta = stats.beta(1 + hit.sum(), 1 + (~hit).sum())
        found = drawn.accuracy[:, w :: c.M].ravel().numpy()
        assert found.mean() == pytest.approx(beta.mean(), abs=0.006)
        np.testing.assert_allclose(np.quantile(found, [0.05, 0.95]), beta.ppf([0.05, 0.95]), atol=0.012)


def test_a_class_that_is_excluded_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest and the largest number that torch.rand gives, 0 and 1 - 2^-24."""
    p = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    for u in (0.0, 1 - 2.0**-24):
        monkeypatch.setattr(torch, "rand", lambda *size, u=u, **_: torch.full(size, u))
        assert gibbs.draw_rows(p, torch.Generator()).tolist() == [1, 2, 0]


def test_rows_are_drawn_by_their_probabilities() -> None:
    p = torch.tensor([[0.2, 0.5, 0.3]]).expand(100_000, 3)
    drawn = torch.bincount(gibbs.draw_rows(p, torch.Generator().manual_seed(0)), minlength=3) / 100_000
    np.testing.assert_allclose(drawn, [0.2, 0.5, 0.3], atol=0.006)


def test_r_hat_is_one_for_chains_alike_and_large_for_chains_apart() -> None:
    rng = np.random.default_rng(0)
    alike = [rng.normal(0, 1, 2000).tolist() for _ in range(2)]
    apart = [rng.normal(5 * i, 1, 2000).tolist() for i in range(2)]
    drifting = [(rng.normal(0, 1, 2000) + np.linspace(0, 5, 2000)).tolist()]
    assert gibbs.r_hat(alike) == pytest.approx(1, abs=0.005)
    assert gibbs.r_hat(apart) > 2
    assert gibbs.r_hat(drifting) > 1.5, "a chain that drifts disagrees with its own first half"
    assert gibbs.r_hat([[1.0] * 10]) == 1
    assert gibbs.r_hat([[1.0, 2.0]]) == np.inf
