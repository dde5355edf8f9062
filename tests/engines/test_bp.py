"""Belief propagation against the sum over all truths, the workers' matrices integrated out.

Exact on trees: to rounding where the factor is exact (one coin, prototypes), within Monte-Carlo error where it is
made of draws. Close on small graphs with loops, where mean field is not.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import betaln, logsumexp

from tests.crowds import Crowd, all_truths, counts_of, crowd, dirichlet_tables, log_polya, posterior, side_by_side, vote
from voxpop.channels.dirichlet import prior_rows
from voxpop.channels.worker_prior import WorkerPrior
from voxpop.engines.bp import Particles, gather, propagate
from voxpop.engines.bp_exact import OneCoinExact
from voxpop.errors import DataWarning
from voxpop.methods.belief_propagation import EXACT_UP_TO, BeliefPropagation
from voxpop.methods.mean_field import MeanField
from voxpop.votes import Votes

ALPHA = (2.0, 1.0)


def tree(seed: int, N: int, M: int, K: int) -> Crowd:
    """A random tree of tasks and workers: every new node votes with, or is asked of, one node of the other kind."""
    rng = np.random.default_rng(seed)
    edges = [(0, 0)]
    tasks, workers = [0], [0]
    while len(tasks) < N or len(workers) < M:
        if len(tasks) < N and (len(workers) == M or rng.random() < N / (N + M)):
            tasks.append(len(tasks))
            edges.append((tasks[-1], int(rng.choice(workers))))
        else:
            workers.append(len(workers))
            edges.append((int(rng.choice(tasks)), workers[-1]))
    task, worker = np.array(edges).T
    return vote(rng, task, worker, rng.integers(0, K, N), dirichlet_tables(rng, M, K))


def coin_weight(c: Crowd, z: np.ndarray) -> float:
    """log p(votes | z) for one coin a worker with right ~ Beta(2, 1)."""
    right = np.bincount(c.worker, z[c.task] == c.label, c.M)
    many = np.bincount(c.worker, minlength=c.M)
    a, b = ALPHA
    return float((betaln(a + right, b + many - right) - betaln(a, b) - (many - right) * np.log(max(c.K - 1, 1))).sum())


def dirichlet_weight(c: Crowd, z: np.ndarray) -> float:
    return log_polya(counts_of(c, z), prior_rows(c.K, *ALPHA).numpy())


def two_coin_weight(c: Crowd, z: np.ndarray) -> float:
    counts = counts_of(c, z)
    right = np.einsum("mkk->mk", counts)
    wrong = counts.sum(2) - right
    a, b = ALPHA
    return float((betaln(a + right, b + wrong) - betaln(a, b) - wrong * np.log(max(c.K - 1, 1))).sum())


def prototype_weight(c: Crowd, z: np.ndarray, tables: np.ndarray) -> float:
    """Every worker is one of S matrices, all alike before the votes."""
    with np.errstate(divide="ignore"):
        logs = np.log(tables)[:, z[c.task], c.label]  # S,V
    each = np.zeros((len(tables), c.M))
    for v, w in enumerate(c.worker):
        each[:, w] += logs[:, v]
    return float((logsumexp(each, 0) - np.log(len(tables))).sum())


PROTOTYPES = np.array(
    [
        [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
        [[1 / 3] * 3] * 3,
        [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]],
    ]
)


# -- trees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gold", [{}, {1: 0, 4: 1}], ids=["no gold", "gold"])
@pytest.mark.parametrize("seed", range(6))
def test_one_coin_is_exact_on_trees(seed: int, gold: dict[int, int]) -> None:
    c = tree(seed, N=9, M=5, K=2)
    found = BeliefPropagation(workers_prior="one-coin", alpha=ALPHA, tol=0, max_iter=25).infer(c.votes, gold or None)
    assert "exact" in found.notes[0]
    np.testing.assert_allclose(found.belief, posterior(lambda z: coin_weight(c, z), 9, 2, gold), atol=2e-6)


@pytest.mark.parametrize("gold", [{}, {0: 2}], ids=["no gold", "gold"])
@pytest.mark.parametrize("seed", range(4))
def test_prototypes_are_exact_on_trees(seed: int, gold: dict[int, int]) -> None:
    """Paper 001 eq. 42 has no Monte-Carlo error where the prior is a list."""
    c = tree(seed, N=6, M=4, K=3)
    method = BeliefPropagation(workers_prior=torch.tensor(PROTOTYPES, dtype=torch.float32), tol=0, max_iter=25)
    expected = posterior(lambda z: prototype_weight(c, z, PROTOTYPES), 6, 3, gold)
    np.testing.assert_allclose(method.infer(c.votes, gold or None).belief, expected, atol=5e-6)


@pytest.mark.parametrize("seed", range(4))
def test_prototypes_with_zeros_are_exact_on_trees(seed: int) -> None:
    """One worker is never wrong, one always says the last class, one guesses: -inf minus -inf must not occur."""
    tables = np.array([np.eye(3), [[0, 0, 1]] * 3, [[0.5, 0.3, 0.2]] * 3])
    c = tree(seed, N=6, M=4, K=3)
    method = BeliefPropagation(workers_prior=torch.tensor(tables, dtype=torch.float32), tol=0, max_iter=25)
    expected = posterior(lambda z: prototype_weight(c, z, tables), 6, 3)
    np.testing.assert_allclose(method.infer(c.votes).belief, expected, atol=5e-6)


@pytest.mark.parametrize(
    ("prior", "weight", "K"),
    [
        ("dirichlet", dirichlet_weight, 2),
        ("dirichlet", dirichlet_weight, 3),
        ("two-coin", two_coin_weight, 3),
        ("one-coin", coin_weight, 3),
    ],
    ids=["dirichlet, 2 classes", "dirichlet, 3 classes", "two coins", "one coin, 3 classes"],
)
@pytest.mark.parametrize("seed", range(3))
def test_named_priors_are_exact_on_trees_within_monte_carlo_error(
    prior: str, weight: object, K: int, seed: int
) -> None:
    """4,000 draws a worker: the error of a probability is about 1/(2 sqrt(4000)) = 0.008; allowed are 4 of these."""
    c = tree(seed, N=7 if K == 2 else 6, M=4, K=K)
    method = BeliefPropagation(workers_prior=prior, alpha=ALPHA, samples=4000, tol=0, max_iter=20)
    expected = posterior(lambda z: weight(c, z), c.N, K)  # type: ignore[operator]
    np.testing.assert_allclose(method.infer(c.votes).belief, expected, atol=0.03)


# -- factors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("votes_of_one", [1, 2, 9])
@pytest.mark.parametrize("alpha", [(2.0, 1.0), (0.3, 0.2), (1.0, 6.0)], ids=str)
def test_the_exact_message_is_the_sum_over_the_other_truths(alpha: tuple[float, float], votes_of_one: int) -> None:
    """Paper 001 eq. 36 by brute force, for messages from near 0 to near 1."""
    rng = np.random.default_rng(votes_of_one)
    n = votes_of_one
    votes = Votes.from_arrays(np.arange(n), np.zeros(n, int), rng.integers(0, 2, n), tasks=range(n), classes=range(2))
    p = rng.beta(0.4, 0.4, n).clip(1e-6, 1 - 1e-6)
    incoming = np.stack([1 - p, p], 1)
    label, a, b = votes.label.numpy(), *alpha
    expected = np.zeros((n, 2))
    for z in all_truths(n, 2):
        right = (z == label).sum()
        factor = np.exp(betaln(a + right, b + n - right))
        for i in range(n):
            others = np.prod([incoming[j, z[j]] for j in range(n) if j != i])
            expected[i, z[i]] += factor * others
    found = OneCoinExact(votes.whole, a, b).messages(torch.tensor(incoming, dtype=torch.float32)).exp()
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), atol=1e-5)


def test_the_exact_message_with_certain_tasks() -> None:
    votes = Votes.from_arrays(np.arange(3), np.zeros(3, int), np.array([0, 1, 1]), classes=range(2))
    incoming = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    found = OneCoinExact(votes.whole, 2.0, 1.0).messages(incoming).exp()
    assert found[2, 1].item() == pytest.approx((2 + 2) / (3 + 2), abs=1e-6)  # two of two right: Beta(4, 1)


def test_draws_agree_with_the_exact_recursion() -> None:
    """One worker prior, two ways: 8,000 draws of Beta(2, 1), and the recursion."""
    c = crowd(3, N=30, M=6, K=2, per_task=3)
    tables = WorkerPrior("one-coin", 2, *ALPHA).draw(8_000, seed=0).transpose(1, 2).contiguous()
    batch, flat = c.votes.whole, torch.full((2,), -np.log(2))
    many = Particles(batch, tables, torch.zeros(len(tables)))
    beliefs = [
        propagate(batch, factor, flat, None, max_iter=12, tol=1e-6, damping=0).state.belief
        for factor in (many, OneCoinExact(batch, *ALPHA))
    ]
    torch.testing.assert_close(*beliefs, atol=0.02, rtol=0)


def test_blocks_of_votes_do_not_change_the_messages() -> None:
    c = crowd(1, N=20, M=5, K=3, per_task=3)
    tables = WorkerPrior("dirichlet", 3, *ALPHA).draw(50, seed=0).transpose(1, 2).contiguous()
    incoming = torch.softmax(torch.randn(c.votes.V, 3, generator=torch.Generator().manual_seed(0)), 1)
    whole, cut = (Particles(c.votes.whole, tables, torch.zeros(50), block=b).messages(incoming) for b in (1 << 23, 450))
    torch.testing.assert_close(whole, cut)


def test_the_mean_matrix_of_draws_of_one_s_own_is_that_of_draws_that_all_share() -> None:
    c = crowd(1, N=20, M=5, K=3, per_task=3)
    tables = WorkerPrior("dirichlet", 3, *ALPHA).draw(50, seed=0).transpose(1, 2).contiguous()
    incoming = torch.softmax(torch.randn(c.votes.V, 3, generator=torch.Generator().manual_seed(0)), 1)
    shared = Particles(c.votes.whole, tables, torch.zeros(50))
    own = Particles(c.votes.whole, tables.expand(5, -1, -1, -1), torch.zeros(5, 50))
    torch.testing.assert_close(own.posterior_table(incoming), shared.posterior_table(incoming))
    torch.testing.assert_close(own.messages(incoming), shared.messages(incoming))


def test_a_worker_s_weights_are_products_of_what_fits_however_small() -> None:
    """Nine votes on one label, draws that hardly allow it: their product leaves float32, its log does not."""
    votes = Votes.from_arrays(range(9), [0] * 9, [0] * 9, tasks=range(9), classes=range(2))
    right = torch.tensor([1e-9, 2e-9])
    tables = torch.stack([right, 1 - right], 1)[:, :, None].expand(-1, -1, 2).contiguous()  # S,K,K, any truth
    score, zeros = Particles(votes.whole, tables, torch.zeros(2))._scores(torch.full((9, 2), 0.5))
    assert zeros is None
    np.testing.assert_allclose(score[0], [-9 * np.log(2), 0], rtol=1e-5)


@pytest.mark.parametrize("many", [1, 40, EXACT_UP_TO, EXACT_UP_TO + 1, 1500])
def test_busy_workers_stay_in_the_range_of_numbers(many: int) -> None:
    """E[coin^c (1 - coin)^(r - c)] is about 2^-r in the middle: at 1,100 votes it left float64, and all was NaN."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (many, 2))
    labels[0] = 0, 1
    found = BeliefPropagation(workers_prior="one-coin", max_iter=2).infer(Votes.from_matrix(labels))
    assert torch.isfinite(found.belief).all()
    np.testing.assert_allclose(found.belief.sum(1), 1, atol=1e-5)


def test_a_task_hears_everybody_but_the_one_it_talks_to() -> None:
    """Paper 001 eq. 20, first line, and eq. 21."""
    votes = Votes.from_arrays([0, 0, 0], [0, 1, 2], [0, 1, 1], classes=range(2))
    said = torch.tensor([[0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
    state = gather(votes.whole, torch.log(torch.tensor([[0.9, 0.1]])), said.log())
    first = torch.tensor([0.9 * 0.3 * 0.2, 0.1 * 0.7 * 0.8])
    torch.testing.assert_close(state.incoming[0], first / first.sum())
    everybody = first * said[0]
    torch.testing.assert_close(state.belief[0], everybody / everybody.sum())


def test_messages_that_exclude_every_class_leave_what_was_known() -> None:
    votes = Votes.from_arrays([0, 0], [0, 1], [0, 1], classes=range(2))
    prior = torch.log(torch.tensor([[0.9, 0.1]]))
    state = gather(votes.whole, prior, torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]]))
    torch.testing.assert_close(state.belief, prior.exp())
    torch.testing.assert_close(state.incoming, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))


def test_a_vote_that_no_prototype_allows_says_nothing() -> None:
    votes = Votes.from_arrays([0, 1], [0, 1], [1, 0], classes=range(2))
    always_first = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    found = BeliefPropagation(workers_prior=always_first).infer(votes)
    assert found.belief.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert torch.isfinite(found.table).all()


# -- loops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("per_task", "error"), [(2, 0.012), (3, 0.035)])
def test_on_small_loopy_graphs_it_is_close_where_mean_field_is_not(per_task: int, error: float) -> None:
    """9 tasks, 8 workers, Dir(2, 1) coins: the mean error of p against the sum over all truths."""
    crowds = [crowd(seed, N=9, M=8, K=2, per_task=per_task) for seed in range(30)]
    exact = np.concatenate([posterior(lambda z, c=c: coin_weight(c, z), 9, 2) for c in crowds])
    votes = side_by_side(crowds).votes
    off = {
        kind: np.abs(kind(workers_prior="one-coin", alpha=ALPHA).infer(votes).belief.numpy() - exact)[:, 0].mean()
        for kind in (BeliefPropagation, MeanField)
    }
    assert off[BeliefPropagation] < error
    assert off[MeanField] > 5 * off[BeliefPropagation]


def test_damping_ends_in_the_same_place() -> None:
    c = crowd(2, N=20, M=6, K=2, per_task=3)
    plain, damped = (
        BeliefPropagation(workers_prior="one-coin", damping=d, tol=1e-7, max_iter=200).infer(c.votes).belief
        for d in (0.0, 0.5)
    )
    torch.testing.assert_close(plain, damped, atol=1e-4, rtol=0)


def test_doubt_about_a_matrix_is_doubt_about_all_of_a_workers_tasks() -> None:
    """One worker, right always or never: the accuracy is near 1 or near 0, not surely a half."""
    always, never = torch.eye(2), torch.eye(2).flip(1)
    votes = Votes.from_arrays(range(30), [0] * 30, [0, 1] * 15)
    with pytest.warns(DataWarning, match="all votes are by worker"):
        found = BeliefPropagation(workers_prior=torch.stack([always, never])).infer(votes)
    drawn = found.accuracy_samples[:, 0]
    assert ((drawn > 0.7) | (drawn < 0.3)).all()
    assert (drawn > 0.5).float().mean() == pytest.approx(0.5, abs=0.1)
    low, high = found.workers.select("low", "high").row(0)
    assert low < 0.1
    assert high > 0.9


def test_accuracies_follow_the_messages() -> None:
    """On average as many votes are right as the messages say, where gold says which."""
    c = crowd(3, N=40, M=4, K=3, per_task=3)
    gold = {i: int(k) for i, k in enumerate(c.truth)}
    found = BeliefPropagation(samples=50).infer(c.votes, gold)
    hit = np.bincount(c.worker, c.label == c.truth[c.task], minlength=4)
    expected = (hit + 1) / (np.bincount(c.worker, minlength=4) + 2)
    np.testing.assert_allclose(found.accuracy_samples.mean(0), expected, atol=0.02)
