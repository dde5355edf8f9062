"""What a vote is worth, beside sums over all truths and all votes, and cases worked out by hand."""

from __future__ import annotations

from itertools import product
from math import log

import numpy as np
import pytest
import torch
from torch import Tensor

from voxpop.active import values
from voxpop.active.gains import Gain, Information, Rise, Unequal, Worth
from voxpop.numerics.simplex import normalise


def beliefs(seed: int, N: int = 6, K: int = 3) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(K), N)).float()


def channel(right: float, K: int) -> np.ndarray:
    """[truth, label]."""
    return np.full((K, K), (1 - right) / max(K - 1, 1)) * (1 - np.eye(K)) + right * np.eye(K)


def entropy_of(p: np.ndarray) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def test_by_hand() -> None:
    belief = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.9, 0.1]])
    assert values.entropy(belief).tolist() == pytest.approx([log(2), 0, -0.9 * log(0.9) - 0.1 * log(0.1)])
    assert values.margin(belief).tolist() == pytest.approx([1, 0, 0.2])
    sure_and_opposed = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])  # T,N,K: two models that contradict each other
    assert values.bald(sure_and_opposed).tolist() == pytest.approx([log(2)])
    unsure_and_agreed = torch.full((2, 1, 2), 0.5)
    assert values.bald(unsure_and_agreed).tolist() == pytest.approx([0], abs=1e-7)
    assert values.information(torch.tensor([[0.5, 0.5]]), 1.0).tolist() == pytest.approx([log(2)])
    assert values.information(torch.tensor([[0.5, 0.5]]), 0.5).tolist() == pytest.approx([0], abs=1e-7)
    # 60 : 40, a vote that is right 80% of the time: the label changes if it speaks against it
    assert values.error_reduction(torch.tensor([[0.6, 0.4]]), 0.8).tolist() == pytest.approx([0.8 - 0.6])


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("right", [0.35, 0.7, 1.0])
def test_information_is_what_the_vote_tells_about_the_truth(K: int, right: float) -> None:
    belief = beliefs(0, K=K)
    usable = max(right, 1 / K)
    for p, found in zip(belief.double().numpy(), values.information(belief, right).tolist(), strict=True):
        joint = p[:, None] * channel(usable, K)
        expected = entropy_of(p) + entropy_of(joint.sum(0)) - entropy_of(joint.ravel())
        assert found == pytest.approx(expected, abs=1e-5)


def rise(p: np.ndarray, right: float, votes: int) -> float:
    """Expected rise of the chance that the likeliest class is true, over all outcomes of some votes."""
    K = len(p)
    table = channel(right, K)
    after = sum(max(p * table[:, list(said)].prod(1)) for said in product(range(K), repeat=votes))
    return (after - p.max()) / votes


@pytest.mark.parametrize("right", [0.5, 0.6, 0.9])
@pytest.mark.parametrize("ahead", [1, 2, 3])
@pytest.mark.parametrize("K", [2, 3])
def test_error_reduction_is_exact_for_two_and_three_classes(right: float, ahead: int, K: int) -> None:
    belief = beliefs(1, N=20, K=K)
    found = values.error_reduction(belief, right, ahead)
    for p, one in zip(belief.double().numpy(), found.tolist(), strict=True):
        assert one == pytest.approx(max(rise(p, right, n) for n in range(1, ahead + 1)), abs=1e-6)


@pytest.mark.parametrize("K", [4, 5])
def test_error_reduction_is_a_lower_bound_for_more(K: int) -> None:
    belief = beliefs(2, N=20, K=K)
    found = values.error_reduction(belief, 0.7, 3)
    exact = [max(rise(p, 0.7, n) for n in (1, 2, 3)) for p in belief.double().numpy()]
    assert (found.numpy() <= np.array(exact) + 1e-6).all()
    assert found.sum() > 0.8 * sum(exact)


def test_looking_ahead_sees_what_a_single_vote_cannot_turn() -> None:
    belief = torch.tensor([[0.9, 0.1]])
    assert float(values.error_reduction(belief, 0.8, 1)) == pytest.approx(0, abs=1e-7)
    assert float(values.error_reduction(belief, 0.8, 3)) > 0.001


@pytest.mark.parametrize("seed", range(3))
def test_bald_is_the_information_between_truth_and_model(seed: int) -> None:
    samples = torch.stack([beliefs(10 * seed + t) for t in range(4)])  # T,N,K
    for i, found in enumerate(values.bald(samples).tolist()):
        joint = samples[:, i].double().numpy() / 4  # p(draw, class)
        expected = entropy_of(joint.sum(0)) + entropy_of(joint.sum(1)) - entropy_of(joint.ravel())
        assert found == pytest.approx(expected, abs=1e-6)


def label_or_relabel(samples: np.ndarray, evidence: np.ndarray, right: float) -> tuple[float, float]:
    """I(vote; draw) and I(vote; truth | draw) from the joint p(draw, truth, vote) given the votes so far."""
    K = samples.shape[1]
    joint = samples * np.exp(evidence)  # T,K
    joint = joint[:, :, None] / joint.sum() * channel(right, K)  # T,K,K as [draw, truth, vote]
    draw, vote, both = joint.sum((1, 2)), joint.sum((0, 1)), joint.sum(1)
    of_model = entropy_of(draw) + entropy_of(vote) - entropy_of(both.ravel())
    given = entropy_of(both.ravel()) - entropy_of(draw)  # H(vote | draw)
    given_truth = entropy_of(joint.ravel()) - entropy_of(joint.sum(2).ravel())  # H(vote | draw, truth)
    return of_model, given - given_truth


@pytest.mark.parametrize("right", [0.6, 0.95])
def test_label_or_relabel_is_what_a_vote_tells_of_the_model_and_of_the_task(right: float) -> None:
    samples = torch.stack([beliefs(t) for t in range(5)])
    evidence = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 3))).float()
    model = values.label_or_relabel(samples, evidence, right, own=0)
    task = values.label_or_relabel(samples, evidence, right, teach=0)
    whole = values.label_or_relabel(samples, evidence, right)
    for i in range(6):
        expected = label_or_relabel(samples[:, i].double().numpy(), evidence[i].double().numpy(), right)
        assert (float(model[i]), float(task[i])) == pytest.approx(expected, abs=1e-5)
        # both together are what the vote tells of draw and truth, and it depends on the truth only
        belief = normalise((samples[:, i] * evidence[i].exp()).sum(0))
        assert float(whole[i]) == pytest.approx(float(values.information(belief[None], right)), abs=1e-5)


def test_votes_settle_a_task_but_doubt_of_the_model_makes_a_new_one_worth_more() -> None:
    """Of two tasks that the model knows equally little, the one with many votes is asked about last."""
    samples = torch.stack([torch.tensor([[0.9, 0.1]] * 2), torch.tensor([[0.1, 0.9]] * 2)])
    evidence = torch.tensor([[0.0, 0.0], [4.0, 0.0]])
    new, old = values.label_or_relabel(samples, evidence, 0.8).tolist()
    assert new > 5 * old


GAINS: dict[str, Gain] = {
    "worth": Worth(torch.tensor([0.2, 1.0, 0.0, 3.0, 0.5, 0.7])),
    "information": Information(beliefs(0)),
    "rise": Rise(beliefs(0), 3),
    "unequal": Unequal(Information(beliefs(0)), torch.linspace(0.9, 1, 6)),
}


@pytest.mark.parametrize("name", GAINS)
def test_gains_grow_with_the_chance_of_a_right_answer(name: str) -> None:
    """The search for the best pairs rests on that."""
    right = torch.linspace(0, 1, 41).expand(6, -1)
    found = GAINS[name].of(torch.arange(6), right)
    assert (found.diff(dim=1) >= -1e-6).all()
    assert (found[:, -1] > found[:, 0]).any()


@pytest.mark.parametrize("name", GAINS)
def test_gains_of_pairs_are_those_of_the_block(name: str) -> None:
    tasks, right = torch.tensor([3, 0, 5]), torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    block = GAINS[name].of(tasks, right)
    for j in range(4):
        assert GAINS[name].of(tasks, right[:, j]).tolist() == pytest.approx(block[:, j].tolist(), abs=1e-6)
