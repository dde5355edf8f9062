"""Whitehill, Ruvolo, Wu, Bergsma, Movellan (2009), Whose vote should count more; for K classes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from voxpop.channels.glad import SkillAndEase
from voxpop.engines.em import Model
from voxpop.methods.base import Ascent
from voxpop.methods.priors import class_prior_option, point_prior
from voxpop.options import above, option
from voxpop.votes import Votes


@dataclass(frozen=True)
class GLAD(Ascent):
    """Workers have a skill, tasks an ease; p(right) = sigmoid(skill * ease). A negative skill is an adversary."""

    skill_sd: float = option(1.0, above(0), "standard deviation of the skills around 1")
    ease_sd: float = option(1.0, above(0), "standard deviation of the logarithm of the eases around 0")
    class_prior: str = class_prior_option("uniform")

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        return Model(SkillAndEase(skill_sd=self.skill_sd, ease_sd=self.ease_sd), point_prior(self.class_prior), gold)
