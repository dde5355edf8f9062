"""The losses of the methods by descent: equal to their formulas worked out by hand, and their gradients to differences.

Everything here is a full batch in float64 with a network without dropout.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import voxpop as vp
from tests.crowds import crowd
from voxpop.channels.confusion import Confusion
from voxpop.learn.crowd import Confusions, CrowdObjective, OverWorkers, certain
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.loop import parcels
from voxpop.learn.objective import own_rows
from voxpop.learn.rows import TensorRows
from voxpop.methods.learning.annot_mix import Mixed
from voxpop.methods.learning.coinnet import Outliers
from voxpop.methods.learning.conal import TwoLayers
from voxpop.methods.learning.doctor_net import Doctors
from voxpop.methods.learning.geo_crowdnet import PASSES, STABLE, Enclosed, Volume
from voxpop.methods.learning.trace_reg import Traced

CPU = torch.device("cpu")
METHODS = {
    "CrowdLayer MW": vp.CrowdLayer(),
    "CrowdLayer, identity": vp.CrowdLayer(start="identity"),
    "CrowdLayer VW": vp.CrowdLayer(kind="VW"),
    "CrowdLayer VW+B": vp.CrowdLayer(kind="VW+B"),
    "CrowdLayer, log": vp.CrowdLayer(log=True),
    "CCEM": vp.CrowdLayer(simplex=True),
    "DoctorNet": vp.DoctorNet(),
    "TraceReg": vp.TraceReg(weight=0.3),
    "TraceReg, log": vp.TraceReg(weight=0.3, log=True),
    "TraceReg, by item": vp.TraceReg(weight=0.3, rank=2),
    "GeoCrowdNet F": vp.GeoCrowdNet(weight=0.2),
    "GeoCrowdNet W": vp.GeoCrowdNet(weight=0.2, regularize="W"),
    "COINNet": vp.COINNet(price=1.0, volume=0.1),
    "CoNAL": vp.CoNAL(apart=0.1),
    "UnionNet": vp.UnionNet(),
    "AnnotMix": vp.AnnotMix(),
}
PARTIAL = {  # what a second part of the loss uses and does not train
    "DoctorNet": ("network.", "crowd.own"),
    "TraceReg, by item": ("network.",),
    "CoNAL": ("network.",),
}


@cache
def small(seed: int = 3) -> Data:
    votes = crowd(seed, N=12, M=5, K=3, per_task=3).votes
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(votes.N, 4))).float()
    return Data(TensorRows(x), votes)


def made(learner: Learner, data: Data | None = None) -> tuple[CrowdObjective, Tensor]:
    """The method's objective with everything moved a little away from where it starts, and the rows; float64."""
    data = data or small()
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, data.votes.K))
        objective = learner.objective(net, data).double()
        for weights in objective.parameters():
            weights.data += 0.3 * torch.randn(weights.shape, dtype=torch.float64)
    if isinstance(objective, Enclosed):
        objective.passes = float(PASSES)  # the volume counts in full
    assert isinstance(objective, CrowdObjective)
    return objective, data.rows.take(data.positions).double()


def loss_of(objective: CrowdObjective, x: Tensor, data: Data | None = None) -> Tensor:
    data = data or small()
    with torch.random.fork_rng([]):
        torch.manual_seed(2)  # for those that mix at random
        loss: Tensor = objective(x, next(parcels(data, data.positions, data.votes.N, CPU)))
    return loss


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("gold", [False, True])
def test_gradients_equal_finite_differences(name: str, gold: bool) -> None:
    data = small()
    if gold:
        known = torch.full((data.votes.N,), -1)
        known[[0, 3]] = torch.tensor([1, 2])
        data = Data(data.rows, data.votes, known)
    objective, x = made(METHODS[name], data)
    loss_of(objective, x, data).backward()
    rng = np.random.default_rng(0)
    for place_of, weights in objective.named_parameters():
        if any(place_of.startswith(part) for part in PARTIAL.get(name, ())):
            continue
        flat, grad = weights.data.view(-1), weights.grad.reshape(-1)
        for place in rng.choice(flat.numel(), min(flat.numel(), 6), replace=False):
            kept = float(flat[place])
            ends = []
            for step in (1e-5, -1e-5):
                flat[place] = kept + step
                ends.append(float(loss_of(objective, x, data).detach()))
            flat[place] = kept
            assert float(grad[place]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-7)


# -- what is learned from the votes ---------------------------------------------------------------


def log_p(objective: CrowdObjective, x: Tensor) -> np.ndarray:
    return objective.logp(x).detach().numpy()


def softmax(w: np.ndarray) -> np.ndarray:
    e = np.exp(w - w.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def each_vote(data: Data):
    return zip(data.votes.task.tolist(), data.votes.worker.tolist(), data.votes.label.tolist(), strict=True)


def test_what_is_a_workers_own_has_its_prior_in_the_optimiser() -> None:
    """Weight decay adds decay times the weights to the slope: that of pull / 2 |own|^2, over all votes."""
    data = small()
    objective, _ = made(vp.CrowdLayer(pull=0.7))
    prior = objective.pull / 2 * objective.crowd.own.square().sum() / data.votes.V
    (slope,) = torch.autograd.grad(prior, objective.crowd.own)
    groups = objective.groups(0.01)
    decay = {id(weights): group.get("weight_decay", 0.0) for group in groups for weights in group["params"]}
    assert torch.allclose(slope, decay.pop(id(objective.crowd.own)) * objective.crowd.own)
    assert set(decay.values()) == {0.0}
    assert sum(len(group["params"]) for group in groups) == len(list(objective.parameters()))


def test_ccem_is_the_mixture_of_rows_of_confusion_matrices() -> None:
    data = small()
    objective, x = made(METHODS["CCEM"])
    p, table = np.exp(log_p(objective, x)), objective.table().numpy()
    expected = -np.mean([np.log(sum(p[n, k] * table[m, k, y] for k in range(3))) for n, m, y in each_vote(data)])
    assert float(loss_of(objective, x).detach()) == pytest.approx(expected)
    assert np.allclose(table.sum(2), 1)


@pytest.mark.parametrize("kind", ["MW", "VW", "VW+B"])
def test_crowd_layer_is_a_softmax_of_a_map_of_the_prediction(kind: str) -> None:
    data = small()
    objective, x = made(METHODS[f"CrowdLayer {kind}"])
    p = np.exp(log_p(objective, x))
    common, own = (w.detach().numpy() for w in (objective.crowd.common, objective.crowd.own))

    def map_of(m: int, p: np.ndarray) -> np.ndarray:
        if kind == "MW":
            return (common[:, 0] + own[:, m]) @ p
        return (common + own[m, :3]) * p + (own[m, 3:] if kind == "VW+B" else 0)

    expected = -np.mean([np.log(softmax(map_of(m, p[n]))[y]) for n, m, y in each_vote(data)])
    assert float(loss_of(objective, x).detach()) == pytest.approx(expected)
    for m in range(5):
        for k in range(3):
            assert np.allclose(objective.table()[m, k], softmax(map_of(m, np.eye(3)[k])))


def test_the_crowds_weights_start_from_counts() -> None:
    data = small()
    start = Confusions.counted(data, 0.5)
    share = np.zeros((12, 3))
    for n, _, y in each_vote(data):
        share[n, y] += 1 / 3
    counts = np.zeros((5, 3, 3))
    for n, m, y in each_vote(data):
        counts[m, :, y] += share[n]
    common = counts.sum(0) + 0.5 * (np.eye(3) + 1 / 3)
    common /= common.sum(1, keepdims=True)
    each = counts + 0.5 * common
    assert np.allclose(start.log().exp().detach(), each / each.sum(2, keepdims=True), atol=1e-6)


def test_means_over_workers_from_batches_are_right_on_average() -> None:
    data = small()
    over, terms = OverWorkers(data), torch.tensor([1.0, 4.0, -2.0, 8.0, 3.0])
    parts = torch.split(torch.randperm(12, generator=torch.Generator().manual_seed(0)), 4)
    found = [over.mean(terms[batch.worker.long()], batch) for batch in map(data.votes.batch, parts)]
    assert float(torch.stack(found).mean()) == pytest.approx(float(terms.mean()), rel=1e-5)


# -- paper 001, table 1: what comes out of DeepMF ---------------------------------------------------


def bound_of_deep_mf(data: Data, p: Tensor, table: Tensor, alpha: Tensor) -> Tensor:
    """Eq. 31 less its constant, with q(z) = p(z | x) and q(theta) a point: eqs. 32 and 33."""
    batch = data.votes.whole
    said = own_rows(table.log().transpose(1, 2).contiguous(), batch)  # V,K
    return (p[batch.task.long()] * said).sum() + ((alpha - 1) * table.log()).sum()


@pytest.mark.parametrize(
    ("learner", "right"), [(vp.CrowdLayer(log=True, pull=0.0), 1.0), (vp.TraceReg(log=True, weight=0.2, pull=0.0), 0.8)]
)
def test_the_log_forms_come_out_of_deep_mf(learner: Learner, right: float) -> None:
    """CrowdLayer with alpha = 1, TraceReg with 1 - alpha_kk = weight: the same loss and the same gradients."""
    data = small()
    objective, x = made(learner)
    alpha = torch.where(torch.eye(3, dtype=torch.bool), right, 1.0).double()
    loss = loss_of(objective, x)
    bound = bound_of_deep_mf(data, objective.logp(x).exp(), objective.crowd.log().exp(), alpha)
    assert float(loss.detach()) == pytest.approx(-float(bound.detach()) / data.votes.V)
    weights = list(objective.parameters())
    for a, b in zip(torch.autograd.grad(loss, weights), torch.autograd.grad(bound, weights), strict=True):
        assert torch.allclose(a, -b / data.votes.V, atol=1e-9)


@pytest.mark.parametrize(
    ("learner", "more"),
    [(vp.CrowdLayer(log=True, pull=0.0), 0.0), (vp.TraceReg(log=True, weight=0.2, pull=0.0), -0.2)],
)
def test_where_the_matrices_rest_is_deep_mfs_update(learner: Learner, more: float) -> None:
    """With the network frozen the best matrices are DeepMF's counts, plus alpha - 1: the gradient there is zero."""
    votes = crowd(0, N=60, M=5, K=3, per_task=4).votes  # everyone uses every label
    data = Data(TensorRows(torch.randn(60, 4, generator=torch.Generator().manual_seed(0))), votes)
    objective, x = made(learner, data)
    channel = Confusion(more * torch.eye(3, dtype=torch.float64).expand(5, 3, 3))
    theta = channel.update(channel.stats(data.votes.whole, objective.logp(x).exp().detach().float()), None)
    objective.crowd.common.data.zero_()
    objective.crowd.own.data.copy_(theta["log"].transpose(0, 1))
    loss_of(objective, x, data).backward()
    assert float(objective.crowd.own.grad.abs().max()) < 1e-6


# -- what else is asked of them -------------------------------------------------------------------


def test_trace_is_the_average_workers() -> None:
    learner = vp.TraceReg(weight=0.7)
    objective, x = made(learner)
    without = Traced.of(objective, objective.logp(x), x, small().votes.whole)
    objective.weight = 0.0
    plain = Traced.of(objective, objective.logp(x), x, small().votes.whole)
    trace = np.mean([np.trace(a) for a in objective.table().numpy()])
    assert float((without - plain).detach()) == pytest.approx(0.7 * trace, rel=1e-6)


def test_the_log_of_a_trace_bears_that_nobody_is_ever_right() -> None:
    objective, x = made(vp.TraceReg(weight=3.0, log=True))
    objective.float()
    with torch.no_grad():
        objective.crowd.common -= 200 * torch.eye(3)[:, None]
    loss = loss_of(objective, x.float())
    loss.backward()
    assert torch.isfinite(loss)
    assert all(bool(torch.isfinite(w.grad).all()) for w in objective.crowd.parameters())


def test_confusion_by_item_starts_alike_and_then_differs() -> None:
    data = small()
    learner = vp.TraceReg(weight=0.0, rank=2)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    fresh = learner.objective(net, data)
    x, batch = data.rows.take(data.positions), data.votes.whole
    assert torch.allclose(fresh.given(x, batch), fresh.crowd.given(batch))
    moved, x = made(learner)
    assert not torch.allclose(moved.given(x, batch), moved.crowd.given(batch), atol=0.01)


@pytest.mark.parametrize("factor", ["F", "W"])
def test_geo_crowdnet_adds_the_volume(factor: str) -> None:
    objective, x = made(vp.GeoCrowdNet(regularize=factor, weight=0.4))
    assert isinstance(objective, Volume)
    with_volume = float(loss_of(objective, x).detach())
    objective.weight = 0.0
    plain = float(loss_of(objective, x).detach())
    if factor == "F":
        f = np.exp(log_p(objective, x))
        gram = f.T @ f / 12
    else:
        w = objective.table().numpy().transpose(0, 2, 1).reshape(-1, 3)  # matrices over each other, a column per truth
        gram = w.T @ w / 5
    expected = np.linalg.slogdet(gram + STABLE * np.eye(3))[1]
    assert with_volume == pytest.approx(plain - 0.4 * expected, rel=1e-6)


def test_union_net_is_one_distribution_over_workers_and_labels() -> None:
    data = small()
    objective, x = made(METHODS["UnionNet"])
    p, table = np.exp(log_p(objective, x)), objective.table().numpy()
    n = np.bincount(data.votes.worker.numpy(), minlength=5)
    who = n[:, None] * np.exp(objective.voting.detach().numpy())  # M,K
    union = (who / who.sum(0))[:, :, None] * table  # M,K,L: T[k, (m, l)]
    assert np.allclose(union.sum((0, 2)), 1)
    expected = -np.mean([np.log((p[i] * union[m, :, y]).sum() / n[m] * data.votes.V) for i, m, y in each_vote(data)])
    assert float(loss_of(objective, x).detach()) == pytest.approx(expected)
    said = [np.log((p[i] * union[m, :, y]).sum() / (p[i] @ union[m]).sum()) for i, m, y in each_vote(data)]
    assert np.allclose(objective.foretell(x, data.votes.whole).detach(), said)


def test_conal_mixes_common_and_own_noise() -> None:
    data = small()
    objective, x = made(METHODS["CoNAL"])
    assert isinstance(objective, TwoLayers)
    v = objective.item(objective.parts.body(x)).detach().numpy()
    u = objective.person.detach().numpy()
    own, shared = objective.crowd.log().exp().detach().numpy(), objective.shared.softmax(0)[:, 0].t().detach().numpy()
    given = objective.given(x, data.votes.whole).exp().detach().numpy()
    for vote, (i, m, y) in enumerate(each_vote(data)):
        w = 1 / (1 + np.exp(-(v[i] / np.linalg.norm(v[i])) @ (u[m] / np.linalg.norm(u[m]))))
        assert np.allclose(given[vote], w * shared[:, y] + (1 - w) * own[m, :, y])


def test_annot_mix_mixes_rows_workers_and_labels() -> None:
    data = small()
    objective, x = made(METHODS["AnnotMix"])
    assert isinstance(objective, Mixed)
    rng = np.random.default_rng(4)
    partner, share = rng.integers(data.votes.V, size=12), rng.random(12)
    found = objective.mixed(x, data.votes.whole, torch.from_numpy(partner), torch.from_numpy(share))
    votes = list(each_vote(data))
    weights = objective.crowd.made(objective.crowd.own).detach().numpy().transpose(1, 2, 0)  # M,K,K
    losses = []
    for i, m, y in votes:
        j, m2, y2 = votes[partner[i]]
        t = share[i]
        p = np.exp(log_p(objective, (t * x[i] + (1 - t) * x[j])[None]))[0]
        said = p @ softmax(t * weights[m] + (1 - t) * weights[m2])
        losses.append(-t * np.log(said[y]) - (1 - t) * np.log(said[y2]))
    assert float(found.detach()) == pytest.approx(np.mean(losses))


def test_without_mixing_annot_mix_is_ccem() -> None:
    (mixed, x), (plain, _) = made(vp.AnnotMix(alpha=0.0)), made(METHODS["CCEM"])
    assert float(loss_of(mixed, x).detach()) == pytest.approx(float(loss_of(plain, x).detach()))


def test_doctor_net_is_the_weighted_average_of_heads() -> None:
    objective, x = made(METHODS["DoctorNet"])
    assert isinstance(objective, Doctors)
    h = objective.parts.body(x).detach().numpy()
    weight, bias = (w.detach().numpy() for w in objective.parts.head.parameters())
    own, say = objective.crowd.own.detach().numpy(), softmax(objective.crowd.say.detach().numpy())
    heads = np.stack([softmax(h @ (weight + o[:, :-1]).T + bias + o[:, -1]) for o in own], 1)  # N,M,K
    assert np.allclose(log_p(objective, x), np.log(say @ heads))
    said = objective.foretell(x, small().votes.whole).detach().numpy()
    assert np.allclose(said, [np.log(heads[i, m, y]) for i, m, y in each_vote(small())])


def test_doctor_nets_body_and_heads_learn_from_each_workers_labels_alone() -> None:
    data = small()
    objective, x = made(METHODS["DoctorNet"])
    alone = -objective.foretell(x, data.votes.whole).mean()
    weights = [objective.crowd.own, *objective.network.parameters()]
    found = torch.autograd.grad(loss_of(objective, x), weights)
    for a, b in zip(found, torch.autograd.grad(alone, weights), strict=True):
        assert torch.allclose(a, b, atol=1e-8)


def test_averages_of_many_workers_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, x = made(METHODS["DoctorNet"])
    at_once = log_p(objective, x)
    monkeypatch.setattr("voxpop.methods.learning.doctor_net.TOGETHER", 2)
    assert np.allclose(log_p(objective, x), at_once)


def test_coinnet_sets_votes_aside_at_the_least_cost() -> None:
    """Beside the best of many points of a grid, and of Newton-like steps from them."""
    data = small()
    objective, x = made(vp.COINNet(price=0.8, power=0.5, volume=0.0))
    assert isinstance(objective, Outliers)
    batch = data.votes.whole
    p, length = (t.detach() for t in objective._labels(objective.logp(x), batch))
    a, norm = objective.oddness(x, batch)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 3, indexing="ij"), -1).reshape(-1, 3)  # three votes a task
    for i in range(12):
        votes = slice(3 * i, 3 * i + 3)
        q, c = p[votes].numpy(), length[votes].numpy()

        def cost(a: np.ndarray, q: np.ndarray = q, c: np.ndarray = c) -> np.ndarray:
            return -np.log(q + a * (1 - q)).sum(-1) + 0.8 * ((a**2 * c).sum(-1) + 1e-10) ** 0.25

        mine = a[votes].detach().numpy()
        assert cost(mine) <= cost(grid).min() + 1e-9
        assert float(norm[i].detach()) == pytest.approx((mine**2 * c).sum(), rel=1e-6)


def test_known_truths_stand_in_for_the_prediction() -> None:
    logp = torch.full((3, 2), 0.5).log()
    assert torch.equal(certain(logp, torch.tensor([1, -1, 0])).exp(), torch.tensor([[0.0, 1], [0.5, 0.5], [1, 0]]))
