"""One coin per worker, or one per worker and class (the tutorial's homogeneous Dawid-Skene and confusion vector)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from voxpop.channels.coin import Coin
from voxpop.engines.em import Model
from voxpop.methods.base import Ascent
from voxpop.methods.priors import class_prior_option, point_prior
from voxpop.options import above, option
from voxpop.votes import Votes


@dataclass(frozen=True)
class OneCoin(Ascent):
    """Each worker is right with one probability, and wrong labels are alike; by EM, maximum a posteriori."""

    smoothing: float = option(1.0, above(0), "pseudo votes, right and wrong, added to every worker")
    class_prior: str = class_prior_option("uniform")

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        channel = Coin(votes.K, shared=True, a=1 + self.smoothing, b=1 + self.smoothing)
        return Model(channel, point_prior(self.class_prior), gold)


@dataclass(frozen=True)
class ConfusionVector(Ascent):
    """Each worker is right with a probability that depends on the truth, and wrong labels are alike."""

    smoothing: float = option(1.0, above(0), "pseudo votes, right and wrong, added to every worker and class")
    class_prior: str = class_prior_option("learned")

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        channel = Coin(votes.K, shared=False, a=1 + self.smoothing, b=1 + self.smoothing)
        return Model(channel, point_prior(self.class_prior), gold)
