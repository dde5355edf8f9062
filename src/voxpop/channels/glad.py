"""Whitehill et al. (2009), Whose vote should count more; K classes.

p(right) = sigmoid(skill[worker] * ease[task]), ease = exp(log_ease) > 0; a wrong vote is any wrong label
alike. The skill of a worker given all eases is one concave problem of one number, so is the ease of a
task: each takes damped Newton steps, halved until its own part of the bound does not fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from voxpop.channels.base import Stats, Theta
from voxpop.channels.own_label import OwnLabelChannel, own_belief
from voxpop.numerics.segments import scatter_sum
from voxpop.votes import Batch


@dataclass(frozen=True, eq=False)
class SkillAndEase(OwnLabelChannel):
    """Gaussian priors: skill ~ N(skill_mean, skill_sd^2), log_ease ~ N(0, ease_sd^2)."""

    skill_mean: float = 1.0
    skill_sd: float = 1.0
    ease_sd: float = 1.0
    rounds: int = 2
    halvings: int = 4

    def parts(self, batch: Batch, theta: Theta) -> tuple[Tensor, Tensor]:
        logit = (theta["skill"][batch.worker.long()] * theta["log_ease"].exp()[batch.task_ids]).float()  # V
        other = F.logsigmoid(-logit) - math.log(max(batch.K - 1, 1))  # eq. 2: (1 - sigmoid) / (K - 1)
        return other, F.logsigmoid(logit) - other

    def stats(self, batch: Batch, belief: Tensor) -> Stats:
        return {
            "right": own_belief(batch, belief).double(),  # V
            "worker": batch.worker.long(),
            "task": batch.task.long(),
            "sizes": torch.tensor([batch.M, batch.B]),
        }

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        right, worker, task = stats["right"], stats["worker"], stats["task"]
        M, B = stats["sizes"].tolist()
        if theta is None:
            skill = torch.full((M,), self.skill_mean, dtype=torch.float64, device=right.device)
            ease = torch.zeros(B, dtype=torch.float64, device=right.device)
        else:
            skill, ease = theta["skill"], theta["log_ease"]
        for _ in range(self.rounds):
            spread = ease.exp()[task]  # V
            skill = self._climb(skill, lambda a, s=spread: self._skill_part(a, s, right, worker))  # type: ignore[misc]
            ability = skill[worker]  # V
            ease = self._climb(ease, lambda e, a=ability: self._ease_part(e, a, right, task))  # type: ignore[misc]
        return {"skill": skill, "log_ease": ease}

    def _skill_part(
        self, skill: Tensor, spread: Tensor, right: Tensor, worker: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Each worker's part of the bound, its slope and its curvature (negated)."""
        value, slope, curve = _vote_terms(skill[worker] * spread, right)
        away = (skill - self.skill_mean) / self.skill_sd
        sums = scatter_sum(torch.stack([value, slope * spread, curve * spread**2], 1), worker, skill.numel())
        return sums[:, 0] - away**2 / 2, sums[:, 1] - away / self.skill_sd, sums[:, 2] + self.skill_sd**-2

    def _ease_part(self, ease: Tensor, ability: Tensor, right: Tensor, task: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Each task's part of the bound in log ease; the curvature is the expected one, never negative."""
        logit = ability * ease.exp()[task]
        value, slope, curve = _vote_terms(logit, right)
        away = ease / self.ease_sd
        sums = scatter_sum(torch.stack([value, slope * logit, curve * logit**2], 1), task, ease.numel())
        return sums[:, 0] - away**2 / 2, sums[:, 1] - away / self.ease_sd, sums[:, 2] + self.ease_sd**-2

    def _climb(self, x: Tensor, part: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]) -> Tensor:
        """One Newton step for each number on its own, halved where it would lower that number's part of the bound."""
        value, slope, curve = part(x)
        step = (slope / curve).clamp(-2, 2)
        for _ in range(self.halvings):
            ahead = part(x + step)[0]
            lower = ahead < value
            if not lower.any():
                return x + step
            step = torch.where(lower, step / 2, step)
        return torch.where(part(x + step)[0] >= value, x + step, x)

    def penalty(self, theta: Theta) -> Tensor:
        skill = (theta["skill"] - self.skill_mean) / self.skill_sd
        return -(skill.square().sum() + (theta["log_ease"] / self.ease_sd).square().sum()) / 2


def _vote_terms(logit: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """right log sigmoid(x) + (1 - right) log sigmoid(-x) of each vote, its slope and minus its curvature in x."""
    chance = torch.sigmoid(logit)
    value = right * F.logsigmoid(logit) + (1 - right) * F.logsigmoid(-logit)
    return value, right - chance, chance * (1 - chance)
