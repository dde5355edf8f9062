"""EM and VB against their twins: the same belief, bound and matrices at every step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.crowds import Crowd, all_truths, counts_of, crowd, log_polya
from tests.engines import twins
from voxpop.channels.coin import Coin
from voxpop.channels.confusion import Confusion
from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.engines import em, starts
from voxpop.engines.em import Model
from voxpop.priors import DirichletClasses, Frequencies, Uniform

STEPS = 8
ROWS = {K: prior_rows(K, 2.0, 1.0).numpy() for K in (2, 3)}

CASES: dict[str, tuple[Callable[[int], tuple], Callable[[Crowd, dict], list]]] = {
    "dawid-skene": (
        lambda K: (Confusion(0.1), Frequencies(1.0)),
        lambda c, gold: twins.dawid_skene(c, STEPS, 0.1, 1.0, gold),
    ),
    "one coin": (
        lambda K: (Coin(K, True, 2.0, 2.0), Uniform()),
        lambda c, gold: twins.coins(c, STEPS, 1.0, True, gold),
    ),
    "confusion vector": (
        lambda K: (Coin(K, False, 1.5, 1.5), Uniform()),
        lambda c, gold: twins.coins(c, STEPS, 0.5, False, gold),
    ),
    "bayes-gc": (
        lambda K: (DirichletConfusion(prior_rows(K, 2.0, 1.0)), DirichletClasses(1.1)),
        lambda c, gold: twins.variational(c, STEPS, 1.1, ROWS[c.K], gold),
    ),
}


@pytest.mark.parametrize("gold", [{}, {0: 1, 3: 0}], ids=["no gold", "gold"])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_every_step_equals_the_twin(name: str, K: int, gold: dict[int, int]) -> None:
    parts, twin = CASES[name]
    c = crowd(seed=K, N=20, M=5, K=K, per_task=3)
    known = c.votes.gold(gold or None)
    model, batch = Model(*parts(K), known), c.votes.whole
    state = em.State(starts.shares(c.votes, known), {}, {})
    for belief, bound, table in twin(c, gold):
        state, info = model.step(batch, state)
        np.testing.assert_allclose(state.belief, belief, atol=2e-5)
        assert info.bound == pytest.approx(bound, abs=1e-6 * c.votes.V + 1e-6 * abs(bound))
        np.testing.assert_allclose(model.channel.table(state.theta), table, atol=2e-5)


def test_the_em_bound_is_the_log_posterior_summed_over_all_truths() -> None:
    """log sum_z p(z) p(votes | z, Lambda) + log p(Lambda) + log p(pi), the last two up to their constants."""
    c = crowd(seed=5, N=6, M=4, K=3, per_task=3)
    model, batch = Model(Confusion(0.5), Frequencies(1.0)), c.votes.whole
    run = em.fit(batch, model, starts.shares(c.votes), max_iter=4, tol=0, stage="test")
    table = run.state.theta["log"].double().transpose(1, 2).numpy()  # [worker, truth, label]
    log_pi = run.state.pi["log"].double().numpy()
    logs = [log_pi[z].sum() + table[c.worker, z[c.task], c.label].sum() for z in all_truths(c.N, c.K)]
    expected = np.logaddexp.reduce(logs) + 0.5 * table.sum() + 1.0 * log_pi.sum()
    assert run.bound == pytest.approx(expected, abs=1e-6 * c.votes.V)


def test_the_vb_bound_is_below_the_evidence_and_near_it() -> None:
    """The evidence p(votes) summed over all truths, the parameters integrated in closed form (Polya)."""
    gaps = []
    for seed in range(10):
        c = crowd(seed=seed, N=7, M=4, K=2, per_task=3)
        model = Model(DirichletConfusion(prior_rows(2, 2.0, 1.0)), DirichletClasses(1.0))
        run = em.fit(c.votes.whole, model, starts.shares(c.votes), max_iter=200, tol=0, stage="test")
        logs = [
            log_polya(counts_of(c, z), ROWS[2]) + log_polya(np.bincount(z, minlength=2), np.ones(2))
            for z in all_truths(c.N, 2)
        ]
        gaps.append(np.logaddexp.reduce(logs) - run.bound)
    assert min(gaps) > 0
    assert max(gaps) < 2.5, "nats, of 21 votes; measured: 0.7 to 1.7"


def test_given_parameters_are_where_em_starts() -> None:
    c = crowd(seed=1, N=20, M=5, K=2, per_task=3)
    theta = Confusion.at(torch.tensor(c.table))
    model = Model(Confusion(0.1), Uniform())
    run = em.fit(c.votes.whole, model, starts.shares(c.votes), max_iter=1, tol=0, stage="test", theta=theta)
    first, _ = twins.expect(c, np.log([0.5, 0.5]), np.log(c.table), {})
    counts = twins.expected_counts(c, first) + 0.1
    np.testing.assert_allclose(
        run.state.theta["log"].exp().transpose(1, 2), counts / counts.sum(2, keepdims=True), atol=1e-5
    )
