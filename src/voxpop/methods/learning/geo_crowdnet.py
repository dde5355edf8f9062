"""Ibrahim, Nguyen & Fu (2023), "Deep learning from crowdsourced labels: coupled cross-entropy minimization,
identifiability, and regularization" (paper 003): GeoCrowdNet (F) and (W)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from voxpop.learn.crowd import Confusions, Mixture
from voxpop.learn.data import Data
from voxpop.learn.fused import volume
from voxpop.learn.learner import Variants
from voxpop.learn.objective import Objective
from voxpop.methods.learning.descent import Counted, weights_to_try
from voxpop.options import at_least, one_of, option, optional
from voxpop.votes import Batch

STABLE = 1e-3  # of the identity, added where a determinant is taken
PASSES = 5  # over the data, in which the volume comes in


class Enclosed(Mixture):
    """A mixture that a volume of one of its factors is to be large of: the other's simplex is then the smallest.

    The volume comes in slowly. Predictions that are all alike have next to none, and a slope that is steep and knows
    no names: it would part the classes, any from any, before the votes have said which is which.
    """

    def __init__(self, network: nn.Module, crowd: Confusions, data: Data, **common: Any) -> None:
        super().__init__(network, crowd, data, **common)
        self.passes = 0.0  # over the data, so far

    def coming_in(self, batch: Batch) -> float:
        """How much of the volume's weight counts by now, from 0 to 1; a batch that is trained on brings it nearer."""
        if self.training:
            self.passes += self.devices * batch.B / max(batch.total_tasks, 1)
        return min(self.passes, PASSES) / PASSES

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "passes": torch.tensor(self.passes, dtype=torch.float64)}

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: t for name, t in state.items() if name != "passes"})
        self.passes = float(state["passes"])


def spread(logp: Tensor) -> Tensor:
    """log det (F F' / B), with F the predictions of the batch, which may be of lower rank."""
    return volume(logp.exp() / math.sqrt(max(len(logp), 1)), STABLE)


class Volume(Enclosed):
    """The loss of CCEM, less ``weight`` times the volume of the one factor."""

    def __init__(
        self, network: nn.Module, crowd: Confusions, data: Data, *, regularize: str, weight: float, **common: Any
    ) -> None:
        super().__init__(network, crowd, data, **common)
        self.regularize, self.weight = regularize, weight

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        loss = super().of(logp, x, batch)
        if self.weight == 0:
            return loss
        wide = spread(logp) if self.regularize == "F" else self._w(batch)
        return loss - self.weight * self.coming_in(batch) * wide

    def _w(self, batch: Batch) -> Tensor:
        """log det (W' W / M), with W the workers' matrices over each other, from the workers of the batch."""
        who, place = batch.by_whom
        share = self.workers.share(batch)
        share = share.new_zeros(len(who)).index_add_(0, place, share)  # U
        side = (self.crowd.of(who).softmax(0) * share.sqrt()[:, None]).flatten(0, 1)  # KU,K as [label worker, truth]
        return volume(side, STABLE)


@dataclass(repr=False, eq=False)
class GeoCrowdNet(Counted):
    """CCEM that is identified without class experts (F: predictions spread out) or without anchor points (W)."""

    regularize: str = option("F", one_of("F", "W"), "whose volume is to be large: the predictions', or the workers'")
    weight: float | None = option(None, optional(at_least(0)), "of the volume; none: held-out votes decide")

    def variants(self, data: Data) -> Variants:
        return weights_to_try("weight", self.weight, (0.0, 0.01, 0.1), f"weight of the volume of {self.regularize}")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        settings: dict[str, Any] = {"regularize": self.regularize, "weight": self.weight or 0.0}
        return Volume(net, self.confusions(data), data, **settings, **self.common)
