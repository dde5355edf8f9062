"""Yan et al. (2010), Modeling annotator expertise: learning when everybody knows a bit of something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from voxpop.learn.data import Data
from voxpop.learn.expertise import Expert, Reliability
from voxpop.learn.hill import Prior
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.learn.places import Flat, Places
from voxpop.options import above, anything, option, whole


class ByFeatures(Expert):
    """The network without its dropout for the prior on the truths: there is but one draw of its weights."""

    def logp(self, x: Tensor) -> Tensor:
        return Objective.logp(self, x)


@dataclass(repr=False, eq=False)
class Yan(Learner):
    """A vote is right with the chance eta = sigmoid(w x + b), by weights of its worker, else any wrong label alike.

    The weights are learned by L-BFGS in each M-step (the paper's quasi-Newton). They lie around the crowd's, w ~ N(m,
    1 / penalty), for features whose rows have length one on average: a worker with few votes is judged like the crowd.
    """

    any_classifier: ClassVar[bool] = True

    model: Any = option(
        "linear", anything(), "the classifier: linear, mlp, mlp:100 (hidden units), cnn, resnet, or a Module"
    )
    penalty: float = option(1.0, above(0), "1 / variance of the workers' weights around the crowd's")
    inner_steps: int = option(2, whole(1), "steps of L-BFGS in an M-step; the first takes 10")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        def channel(places: Places) -> Reliability:
            return Reliability(places, None, Prior(self.penalty, shared=True), self.inner_steps)

        return ByFeatures(net, Flat(data.rows), data, channel)
