"""Paper 002's channel, EM and Monte Carlo dropout, beside its formulas in plain NumPy."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture
from torch import nn

from tests.crowds import assign
from voxpop.learn import places
from voxpop.learn.data import Data
from voxpop.learn.dropout import draws, mean_of
from voxpop.learn.expertise import Expert, Reliability, said
from voxpop.learn.hill import Hill, Prior
from voxpop.learn.objective import asking
from voxpop.learn.places import Flat, Places
from voxpop.learn.rows import TensorRows
from voxpop.learn.topics import Mixture
from voxpop.numerics import simplex
from voxpop.votes import Batch, Votes

N, M, D, d = 20, 5, 4, 2
Parts = dict[str, np.ndarray]


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def data(seed: int = 0, K: int = 3, tasks: int = N, workers: int = M, per_task: int = 3) -> Data:
    """Workers who are good in one half of the space, and bad in the other."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(tasks, D))
    task, worker = assign(rng, tasks, workers, per_task)
    truth = rng.integers(0, K, tasks)
    right = rng.random(len(task)) < sigmoid(1 + 2 * x[task, worker % D])
    label = np.where(right, truth[task], (truth[task] + rng.integers(1, max(K, 2), len(task))) % K)
    votes = Votes.from_arrays(task, worker, label, tasks=range(tasks), workers=range(workers), classes=range(K))
    return Data(TensorRows(torch.from_numpy(x).float()), votes)


def channel(of: Data, low_rank: bool = True, shared: bool = True, penalty: float = 0.7, **how: object) -> Reliability:
    places = Places(of.rows, Flat(of.rows), of.positions)
    return Reliability(places, d if low_rank else None, Prior(penalty, shared), **how)  # type: ignore[arg-type]


def random(of: Reliability, seed: int = 0, workers: int = M) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    start = of.start(workers)
    return {
        name: torch.zeros_like(t) if name == "mean" and not of.prior.shared else torch.randn(t.shape, generator=rng)
        for name, t in start.items()
    }


def x_of(of: Reliability) -> np.ndarray:
    return torch.cat(list(of.places.features()))[:, :D].double().numpy()


def objective(p: Parts, x: np.ndarray, right: np.ndarray, worker: np.ndarray, task: np.ndarray, K: int) -> float:
    """Eq. 15, the prior of each worker once: sum of J1 + J2 in float64."""
    z = np.c_[x @ p["map"].T if "map" in p else x, np.ones(len(x))]
    eta = sigmoid((p["workers"][worker] * z[task]).sum(1))  # eq. 6
    votes = right * np.log(eta) + (1 - right) * np.log((1 - eta) / (K - 1))
    prior = 0.7 * ((p["workers"] - p["mean"]) ** 2).sum() + (p["mean"] ** 2).sum()
    return float(votes.sum() - (prior + (p["map"] ** 2).sum() if "map" in p else prior) / 2)


def hill(of: Reliability, batch: Batch, right: torch.Tensor) -> Hill:
    stats = of.stats(batch, torch.zeros(batch.B, batch.K))
    return of.hill({**stats, "right": right}, batch.K)


def at(of: Reliability, batch: Batch, right: torch.Tensor, theta: dict[str, torch.Tensor]) -> tuple[float, Any]:
    """The value, and its slopes."""
    found = hill(of, batch, right)
    point = found.at(theta)
    return found.value(point), found.slope(point)


@pytest.mark.parametrize("low_rank", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("K", [2, 4])
def test_value_and_slopes_are_those_of_the_paper(low_rank: bool, shared: bool, K: int) -> None:
    """Eqs. 15 to 20, u_j and F (and m) against differences of the objective."""
    of = data(K=K)
    made = channel(of, low_rank, shared)
    theta, batch = random(made), of.votes.whole
    right = torch.rand(batch.V, generator=torch.Generator().manual_seed(1))
    total, slope = at(made, batch, right, theta)
    p: Parts = {name: t.double().numpy() for name, t in theta.items()}
    rest = (x_of(made), right.double().numpy(), batch.worker.numpy(), batch.task.numpy(), K)
    assert total == pytest.approx(objective(p, *rest), rel=1e-5)
    for name, part in p.items():
        if name == "mean" and not shared:
            assert bool((slope["mean"] == 0).all())
            continue
        for place in product(*map(range, part.shape)):
            kept, ends = part[place], []
            for step in (1e-5, -1e-5):
                part[place] = kept + step
                ends.append(objective(p, *rest))
            part[place] = kept
            assert float(slope[name][place]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-4), name


@pytest.mark.parametrize("low_rank", [True, False])
def test_along_a_ray_the_value_is_that_of_where_it_leads(low_rank: bool) -> None:
    """And its derivatives are those of the value by differences; the best step is the highest."""
    of = data()
    made = channel(of, low_rank)
    batch = of.votes.whole
    right = torch.rand(batch.V, generator=torch.Generator().manual_seed(1))
    on = hill(made, batch, right)
    ray = on.ray(on.at(random(made)), random(made, seed=2))
    for t in (0.0, 0.3, -0.7):
        height, slope, bend = ray.look(t)
        assert height == pytest.approx(on.value(on.at(ray.at(t).theta)), rel=1e-5)
        assert ray.at(t).votes.score.tolist() == pytest.approx(on.at(ray.at(t).theta).votes.score.tolist(), abs=1e-4)
        below, above = ray.look(t - 0.01), ray.look(t + 0.01)
        assert slope == pytest.approx((above[0] - below[0]) / 0.02, rel=1e-2, abs=1e-2)
        assert bend == pytest.approx((above[1] - below[1]) / 0.02, rel=1e-2, abs=1e-2)
    uphill = on.ray(ray.start, on.slope(ray.start))
    best = uphill.best()
    heights = [uphill.look(best * share)[0] for share in np.linspace(0, 2, 41)]
    assert uphill.look(best)[0] > heights[0] + 0.9 * (max(heights) - heights[0])


def test_features_that_are_read_again_in_every_step_are_climbed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    of = data(tasks=60)
    found = []
    for kept in (1 << 27, 0):
        monkeypatch.setattr(places, "KEPT", kept)
        monkeypatch.setattr(places, "CHUNK", 7)
        monkeypatch.setattr(places, "TOGETHER", 7)
        made = channel(of)
        belief = torch.eye(3)[torch.arange(60) % 3]
        found.append(made.update(made.stats(of.votes.whole, belief), None)["workers"])
    assert torch.equal(*found)


def test_the_slope_is_eq_16_times_eq_17() -> None:
    """One vote: (p(y = L) / eta - p(y != L) / (1 - eta)) eta (1 - eta) F x, and the same times u x'."""
    of = data()
    made = channel(of, shared=False)
    theta = random(made)
    one = Votes.from_arrays([7], [2], [0], tasks=range(N), workers=range(M), classes=range(2)).whole
    _, slope = at(made, one, torch.tensor([0.8]), theta)
    u, F, x = theta["workers"][2].numpy(), theta["map"].numpy(), x_of(made)[7]
    z = np.append(F @ x, 1)
    eta = sigmoid(u @ z)
    of_eta = 0.8 / eta - 0.2 / (1 - eta)  # eq. 16
    assert slope["workers"][2].numpy() == pytest.approx(of_eta * eta * (1 - eta) * z - 0.7 * u, rel=1e-4)  # 17, 18, 19
    assert slope["map"].numpy() == pytest.approx(of_eta * eta * (1 - eta) * np.outer(u[:-1], x) - F, rel=1e-4)  # 20


# -- doubt about u ------------------------------------------------------------------------------------


def doubtful(of: Data) -> tuple[Reliability, Hill, dict[str, torch.Tensor]]:
    """A channel with doubt, its hill where all truths are as likely, and somewhere on it."""
    made = channel(of, doubt=True)
    batch = of.votes.whole
    return made, made.hill(made.stats(batch, torch.full((N, 3), 1 / 3)), 3), random(made)


def test_the_spread_of_u_is_the_curvature_of_its_own_hill() -> None:
    """Laplace: one over minus the second difference of the objective (eq. 15) in each number of u."""
    of = data()
    made, on, theta = doubtful(of)
    p: Parts = {name: t.double().numpy() for name, t in theta.items()}
    rest = (x_of(made), on.right.double().numpy(), of.votes.worker.numpy(), of.votes.task.numpy(), 3)
    spread, top = on.spread(on.at(theta)), objective(p, *rest)
    for place in product(*map(range, p["workers"].shape)):
        kept, ends = p["workers"][place], []
        for step in (1e-3, -1e-3):
            p["workers"][place] = kept + step
            ends.append(objective(p, *rest))
        p["workers"][place] = kept
        assert float(spread[place]) == pytest.approx(-1e-6 / (sum(ends) - 2 * top), rel=1e-3)


def test_with_doubt_the_value_is_the_mean_over_u() -> None:
    """To second order: draws of u around its best give the same sum of J1 where the spread is small."""
    _, on, theta = doubtful(data())
    on = replace(on, prior=Prior(60.0, True))  # little doubt
    point = on.at(theta)
    cost = on.value(point) - on.doubtful(point).value(point)
    rng, plain = torch.Generator().manual_seed(0), on.value(point) - float(on.prior.log(theta))
    noise = torch.randn(4000, *theta["workers"].shape, generator=rng) * on.spread(point).sqrt()
    drawn = [theta | {"workers": theta["workers"] + sign * part} for part in noise for sign in (1, -1)]
    mean = np.mean([on.value(on.at(of_u)) - float(on.prior.log(of_u)) for of_u in drawn])
    assert plain - mean == pytest.approx(cost, rel=0.1)
    assert cost > 0


def test_slopes_with_doubt_are_differences_of_the_value() -> None:
    _, on, theta = doubtful(data())
    on = on.doubtful(on.at(theta))
    slope = on.slope(on.at(theta))
    for name in ("map", "workers"):
        along = torch.randn(theta[name].shape, generator=torch.Generator().manual_seed(5))
        up, down = (on.value(on.at(theta | {name: theta[name] + step * along})) for step in (1e-2, -1e-2))
        assert float((slope[name] * along).sum()) == pytest.approx((up - down) / 2e-2, rel=1e-2, abs=1e-2)


def test_with_doubt_a_ray_is_as_high_as_where_it_leads() -> None:
    made, on, theta = doubtful(data())
    on = on.doubtful(on.at(theta))
    ray = on.ray(on.at(theta), random(made, seed=2))
    for t in (0.0, 0.3, -0.7):
        height, slope, bend = ray.look(t)
        assert height == pytest.approx(on.value(on.at(ray.at(t).theta)), rel=1e-5)
        below, above = ray.look(t - 0.01), ray.look(t + 0.01)
        assert slope == pytest.approx((above[0] - below[0]) / 0.02, rel=1e-2, abs=1e-2)
        assert bend == pytest.approx((above[1] - below[1]) / 0.02, rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("inner", ["lbfgs", "sgd"])
def test_doubt_keeps_topics_small_where_workers_voted_little(inner: str) -> None:
    of = data(tasks=200, workers=60, per_task=2)
    batch = of.votes.whole
    stats = channel(of).stats(batch, torch.eye(3)[torch.randint(3, (200,), generator=torch.Generator().manual_seed(0))])
    size = {}
    for doubt in (False, True):
        made = channel(of, steps=30, inner=inner, doubt=doubt)
        theta = made.update(stats, None)
        for _ in range(5 if inner == "lbfgs" else 0):
            theta = made.update(stats, theta)
        size[doubt] = float(theta["map"].norm())
    assert size[True] < 0.8 * size[False]


@pytest.mark.parametrize("K", [2, 3, 6])
def test_what_a_vote_may_be_sums_to_one(K: int) -> None:
    """Eq. 8 with 1 - eta shared by the wrong classes (as printed it does not sum to one for K > 2)."""
    other, gain = said(torch.tensor([-3.0, 0.0, 2.0]), K)
    assert ((K - 1) * other.exp() + (other + gain).exp()).tolist() == pytest.approx([1, 1, 1])
    assert (other + gain).exp().tolist() == pytest.approx(sigmoid(np.array([-3.0, 0, 2])).tolist())


# -- the E-step -------------------------------------------------------------------------------------


def expert(of: Data, K: int, **how: object) -> Expert:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, K))
    made = Expert(
        net, Flat(of.rows), of, lambda places: Reliability(places, d, Prior(0.7, True), **how), samples=7, seed=3
    )
    made.theta = random(made.channel)
    return made


@pytest.mark.parametrize("K", [2, 3])
def test_the_belief_is_eq_12_by_enumeration(K: int) -> None:
    """p(y, votes) for every truth of every task: the mean over T draws (eq. 4) times eq. 8 of each vote."""
    of = data(K=K)
    made = expert(of, K)
    x, batch = of.rows.take(of.positions), of.votes.whole
    with asking(made):
        belief = made.combine(x, batch, made.prior_of(x)).numpy()
        p = made.draws(x).exp().double().mean(0).numpy()  # N,K
    u, z = made.theta["workers"].double().numpy(), made.z.double().numpy()
    for i in range(N):
        joint = p[i].copy()
        for j, label in zip(*(c[batch.task == i].tolist() for c in (batch.worker, batch.label)), strict=True):
            eta = sigmoid(u[j] @ z[i])
            joint *= np.where(np.arange(K) == label, eta, (1 - eta) / (K - 1))
        assert belief[i] == pytest.approx(joint / joint.sum(), abs=1e-5)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("low_rank", [True, False])
@pytest.mark.parametrize("K", [2, 3])
def test_with_the_network_frozen_the_bound_never_falls(K: int, low_rank: bool, shared: bool) -> None:
    of = data(K=K, tasks=60)
    net = nn.Linear(D, K)
    made = Expert(
        net, Flat(of.rows), of, lambda places: Reliability(places, d if low_rank else None, Prior(1.0, shared), 3)
    )
    logp = net(of.rows.take(of.positions)).log_softmax(1).detach()
    bounds = [made.refresh(of, logp) for _ in range(25)]
    assert (np.diff(bounds) >= -1e-5 * abs(bounds[-1])).all()
    assert bounds[-1] > bounds[0] + 1


def test_the_bound_is_the_log_posterior() -> None:
    """Summed over all truths, with the priors of u, m and F."""
    of = data(tasks=8)
    made = expert(of, 3)
    logp = torch.full((8, 3), 1 / 3).log()
    bound = made.refresh(of, logp)
    batch, p = of.votes.whole, {name: t.double().numpy() for name, t in made.theta.items()}
    eta = sigmoid((p["workers"][batch.worker] * made.z.double().numpy()[batch.task]).sum(1))
    total = 0.0
    for i in range(8):
        at = (batch.task == i).numpy()
        each = [np.where(batch.label.numpy()[at] == k, eta[at], (1 - eta[at]) / 2).prod() / 3 for k in range(3)]
        total += np.log(sum(each))
    prior = 0.7 * ((p["workers"] - p["mean"]) ** 2).sum() + (p["mean"] ** 2).sum() + (p["map"] ** 2).sum()
    assert bound == pytest.approx(total - prior / 2, rel=1e-5)


# -- the M-step ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("low_rank", [False, True])
def test_algorithm_2_and_lbfgs_climb_the_same_hill(low_rank: bool) -> None:
    """Without F the hill has one top, and both reach it. With F both reach the same height from the same start."""
    of = data(tasks=200, workers=5, per_task=4)
    batch = of.votes.whole
    belief = torch.from_numpy(np.random.default_rng(0).dirichlet([0.3] * 3, 200)).float()
    found, value = {}, {}
    for inner, steps in (("lbfgs", 300), ("sgd", 400)):
        made = channel(of, low_rank, steps=steps, inner=inner)
        stats = made.stats(batch, belief)
        found[inner] = made.update(stats, made.start(M))
        value[inner], _ = at(made, batch, stats["right"], found[inner])
        start, _ = at(made, batch, stats["right"], made.start(M))
    climbed = value["lbfgs"] - start
    assert climbed > 5
    assert value["sgd"] == pytest.approx(value["lbfgs"], abs=0.02 * climbed)
    if not low_rank:
        assert value["lbfgs"] >= value["sgd"] - 1e-3
        assert torch.allclose(found["sgd"]["workers"], found["lbfgs"]["workers"], atol=0.1)


@pytest.mark.parametrize("inner", ["lbfgs", "sgd"])
def test_a_worker_without_votes_lies_at_the_crowds_mean(inner: str) -> None:
    of = data(tasks=60)
    votes = Votes.from_arrays(
        of.votes.task, of.votes.worker, of.votes.label, tasks=range(60), workers=range(M + 1), classes=range(3)
    )
    made = channel(of, inner=inner, steps=100)
    theta = made.update(made.stats(votes.whole, torch.eye(3)[torch.arange(60) % 3]), None)
    assert torch.allclose(theta["workers"][M], theta["mean"], atol=1e-2)
    assert float(theta["mean"].norm()) > 0.1


# -- Monte Carlo dropout ------------------------------------------------------------------------------


class Coin(nn.Module):
    """Logits (2, 0) where the draw keeps its only unit (scaled by 1/p = 2), and (0, 0) where it drops it."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.drop(torch.ones_like(x)), torch.zeros_like(x)], 1)


def test_entropy_under_dropout_by_hand() -> None:
    """Eq. 10: the entropy of the mean of the draws, each (0.881, 0.119) or (0.5, 0.5)."""
    p = draws(Coin().eval(), torch.zeros(3, 1), 400, seed=0).exp()  # T,N,K
    kept = p[:, 0, 0] > 0.6
    high = 1 / (1 + np.exp(-2))
    assert torch.allclose(p[:, 0, 0], torch.where(kept, high, 0.5).float())
    assert float(kept.float().mean()) == pytest.approx(0.5, abs=0.08)  # three standard errors
    assert bool((p == p[:, :1]).all())  # a draw of the weights is one for all rows
    share = float(kept.float().mean())
    mean = share * high + (1 - share) * 0.5
    expected = -mean * np.log(mean) - (1 - mean) * np.log(1 - mean)
    assert simplex.entropy(mean_of(p.log()).exp()).tolist() == pytest.approx([expected] * 3, rel=1e-5)


def test_draws_do_not_depend_on_the_rows_beside_nor_on_torchs_own_randomness() -> None:
    net = nn.Sequential(nn.Linear(2, 16), nn.Dropout(0.3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2)).eval()
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    whole, before = draws(net, x, 3, 0), torch.get_rng_state()
    assert torch.allclose(torch.cat([draws(net, row[None], 3, 0) for row in x], 1), whole, atol=1e-6)
    assert torch.equal(torch.get_rng_state(), before)
    assert not net.training
    assert len(draws(net[0], x, 3, 0)) == 1  # nothing to draw


def test_draws_of_a_last_layer_are_those_of_any_layer() -> None:
    first, last = nn.Sequential(nn.Linear(2, 16), nn.ReLU()), nn.Linear(16, 3)
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    quick, slow = (
        draws(nn.Sequential(first, nn.Dropout(0.4), *more, last).eval(), x, 6, 0) for more in ((), (nn.Identity(),))
    )
    assert torch.allclose(quick, slow, atol=1e-6)
    assert not torch.equal(quick[0], quick[1])


# -- STAL's topics --------------------------------------------------------------------------------------


def test_topics_are_the_components_of_the_mixture() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(60, 3)) + centre for centre in ([0, 0, 0], [6, 0, 0], [0, 6, 3])])
    rows = TensorRows(torch.from_numpy(x).float())
    made = Mixture(rows, 3, seed=0)
    made.learn(rows)
    scaled = made.scale(torch.from_numpy(x).float()).double().numpy()
    theirs = GaussianMixture(3, covariance_type="diag", reg_covar=1e-2, random_state=0).fit(scaled)
    assert made(rows.values).numpy() == pytest.approx(theirs.predict_proba(scaled), abs=1e-4)
