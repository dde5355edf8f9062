"""GLAD: slopes and curvatures against finite differences, the line search, and the optimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.crowds import crowd
from voxpop.channels.glad import SkillAndEase, _vote_terms
from voxpop.engines import em, starts
from voxpop.engines.em import Model
from voxpop.priors import Uniform

CHANNEL = SkillAndEase(skill_mean=1.0, skill_sd=1.3, ease_sd=0.7)


def setting(seed: int) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(seed)
    c = crowd(seed, N=12, M=5, K=3, per_task=3)
    batch = c.votes.whole
    right = torch.tensor(rng.uniform(0, 1, batch.V))
    skill, ease = torch.tensor(rng.normal(0.5, 1.5, 5)), torch.tensor(rng.normal(0, 1, 12))
    return right, batch.worker.long(), batch.task.long(), skill, ease


def by_hand(right: np.ndarray, worker: np.ndarray, task: np.ndarray, skill: np.ndarray, ease: np.ndarray) -> float:
    """Expected log-likelihood and Gaussian priors, as a loop."""
    total = 0.0
    for r, w, i in zip(right, worker, task, strict=True):
        x = skill[w] * np.exp(ease[i])
        total -= r * np.logaddexp(0, -x) + (1 - r) * np.logaddexp(0, x)
    return total - (((skill - 1.0) / 1.3) ** 2).sum() / 2 - ((ease / 0.7) ** 2).sum() / 2


@pytest.mark.parametrize("seed", range(5))
def test_slopes_equal_finite_differences_and_the_skills_curvature_too(seed: int) -> None:
    right, worker, task, skill, ease = setting(seed)
    _, slope_s, curve_s = CHANNEL._skill_part(skill, ease.exp()[task], right, worker)
    _, slope_e, curve_e = CHANNEL._ease_part(ease, skill[worker], right, task)
    data = right.numpy(), worker.numpy(), task.numpy()
    h = 1e-4
    for x, slope, which in ((skill, slope_s, 0), (ease, slope_e, 1)):
        for j in range(len(x)):
            values = []
            for step in (-h, 0.0, h):
                moved = [skill.numpy().copy(), ease.numpy().copy()]
                moved[which][j] += step
                values.append(by_hand(*data, *moved))
            assert slope[j].item() == pytest.approx((values[2] - values[0]) / (2 * h), rel=1e-4, abs=1e-5)
            if which == 0:
                second = -(values[2] - 2 * values[1] + values[0]) / h**2
                assert curve_s[j].item() == pytest.approx(second, rel=5e-3, abs=1e-4)
    assert (curve_e > 0).all()


def test_parts_sum_up_to_the_whole() -> None:
    """Skills' parts count each vote once, so do the eases': both differ from the whole by the other's prior."""
    right, worker, task, skill, ease = setting(1)
    whole = by_hand(right.numpy(), worker.numpy(), task.numpy(), skill.numpy(), ease.numpy())
    part_s = CHANNEL._skill_part(skill, ease.exp()[task], right, worker)[0].sum()
    part_e = CHANNEL._ease_part(ease, skill[worker], right, task)[0].sum()
    assert part_s.item() - ((ease / 0.7) ** 2).sum().item() / 2 == pytest.approx(whole)
    assert part_e.item() - (((skill - 1) / 1.3) ** 2).sum().item() / 2 == pytest.approx(whole)


def test_vote_terms_are_one_function_and_its_derivatives() -> None:
    x = torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True)
    right = torch.linspace(0, 1, 9, dtype=torch.float64)
    value, slope, curve = _vote_terms(x, right)
    (first,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(slope, first)
    torch.testing.assert_close(curve, -second)


@pytest.mark.parametrize("seed", range(20))
def test_the_line_search_never_lowers_any_part(seed: int) -> None:
    """From far away, where a full Newton step overshoots."""
    right, worker, task, skill, ease = setting(seed)
    skill, ease = 6 * skill, 2 * ease

    def part(e: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return CHANNEL._ease_part(e, skill[worker], right, task)

    ahead = CHANNEL._climb(ease, part)
    assert (part(ahead)[0] >= part(ease)[0] - 1e-12).all()
    assert part(ahead)[0].sum() > part(ease)[0].sum()


def test_at_the_end_the_gradient_of_the_likelihood_is_zero() -> None:
    """The gradient of the bound that EM climbs, with the truths summed out by autograd, not as update has it."""
    c = crowd(3, N=30, M=8, K=3, per_task=5)
    batch, channel = c.votes.whole, SkillAndEase(rounds=6)
    model = Model(channel, Uniform())
    run = em.fit(batch, model, starts.shares(c.votes), max_iter=250, tol=0, stage="test")
    skill = run.state.theta["skill"].clone().requires_grad_()
    ease = run.state.theta["log_ease"].clone().requires_grad_()
    logit = skill[batch.worker.long()] * ease.exp()[batch.task.long()]
    logs = (F.logsigmoid(-logit) - np.log(2))[:, None].repeat(1, 3)
    logs = logs.scatter(1, batch.label.long()[:, None], F.logsigmoid(logit)[:, None])
    joint = torch.full((30, 3), -np.log(3), dtype=torch.float64).index_add(0, batch.task.long(), logs)
    bound = torch.logsumexp(joint, 1).sum() - (skill - 1).square().sum() / 2 - ease.square().sum() / 2
    assert run.bound == pytest.approx(bound.item(), abs=1e-6 * batch.V)
    for slope in torch.autograd.grad(bound, (skill, ease)):
        assert slope.abs().max() < 1e-3


def test_an_adversary_gets_a_negative_skill_and_a_hard_task_little_ease() -> None:
    rng = np.random.default_rng(0)
    chance = np.array([0.9] * 7 + [0.1])
    truth = rng.integers(0, 2, 200)
    right = rng.random((200, 8)) < chance
    right[:20] = rng.random((20, 8)) < 0.5  # hard tasks
    labels = np.where(right, truth[:, None], 1 - truth[:, None])
    from voxpop.methods.glad import GLAD
    from voxpop.votes import Votes

    found = GLAD().infer(Votes.from_matrix(labels))
    assert found.evidence is not None
    skill, ease = found.evidence.theta["skill"], found.evidence.theta["log_ease"]
    assert skill[7] < -0.5 < 0.5 < skill[:7].min()
    assert ease[:20].mean() < ease[20:].mean() - 0.5
