"""Hovy, Berg-Kirkpatrick, Vaswani, Hovy (2013), Learning whom to trust with MACE."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from voxpop.channels.mace import Spamming
from voxpop.engines.em import Model
from voxpop.methods.base import Ascent
from voxpop.methods.priors import class_prior_option, point_prior
from voxpop.options import above, option
from voxpop.votes import Votes


@dataclass(frozen=True)
class MACE(Ascent):
    """A worker knows the answer, or spams from a favourite distribution; classes are alike unless told otherwise."""

    smoothing: float = option(0.5, above(0), "pseudo votes: knowing, spamming, and each label when spamming")
    class_prior: str = class_prior_option("uniform")

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        return Model(Spamming(self.smoothing, self.smoothing, self.smoothing), point_prior(self.class_prior), gold)
