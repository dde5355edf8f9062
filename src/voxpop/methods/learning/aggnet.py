"""Albarqouni et al. (2016), AggNet: deep learning from crowds; the EM of Raykar et al. (2010) with any network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from voxpop.channels.confusion import Confusion
from voxpop.learn.ascent import Ascending
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.options import above, option


@dataclass(repr=False, eq=False)
class AggNet(Learner):
    """A confusion matrix per worker by EM, with the network for the prior on each task's class."""

    any_classifier: ClassVar[bool] = True

    smoothing: float = option(0.01, above(0), "pseudo votes added to every cell of a confusion matrix")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        return Ascending(net, Confusion(self.smoothing), data)
