"""Nguyen, Ibrahim & Fu (2024), "Noisy label learning with instance-dependent outliers: identifiability via crowd
wisdom" (paper 003): COINNet.

The label of worker m on item n is p = A_m f(x_n) + e, where e is zero but for a few odd items. Here e = a (1_label - p)
with one number a from 0 to 1 a vote: the shortest way to the label along which p stays a distribution. Given p, the
best a of an item's votes follows from closed forms, so that e is not learned but minimised out at each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from voxpop.learn.crowd import Confusions
from voxpop.learn.data import Data
from voxpop.learn.fused import foretold, through
from voxpop.learn.learner import Learner, Variants
from voxpop.learn.loop import in_batches
from voxpop.learn.objective import Objective, asking, per_task
from voxpop.methods.learning.descent import Counted
from voxpop.methods.learning.geo_crowdnet import Enclosed, spread
from voxpop.numerics.segments import segment_sum
from voxpop.options import above, at_least, option, optional, share
from voxpop.votes import Batch

ZETA = 1e-10  # inside the norm, so that it has a slope at zero
PRICES = (6.0, 3.0, 20.0)  # to try
VOLUMES = (0.0, 0.01, 0.1)
ROUNDS = 8  # of the closed form; it settles in fewer


def least(p: Tensor, length: Tensor, batch: Batch, price: float, power: float) -> Tensor:
    """The a of each vote (V) with the least - log p(label) + price (sum over the item of |e|^2 + zeta)^(power / 2).

    ``p`` (V): the chance of the label, ``length`` (V): |1_label - p|^2. The penalty is concave in the sum, so it lies
    below its tangents, on which each vote's a is the root of a quadratic. From both ends; of each item the better.
    """
    ends = torch.stack([torch.zeros_like(p), torch.ones_like(p)], 1)  # V,2
    found = _descended(ends, p[:, None], length[:, None], batch, price, power)
    few, many = _cost(found, p[:, None], length[:, None], batch, price, power).unbind(1)  # B
    return torch.where((few <= many)[batch.task.long()], found[:, 0], found[:, 1])


def norm(a: Tensor, length: Tensor, batch: Batch) -> Tensor:
    """The sum over each item's votes of |e|^2: B (or B,2 of V,2)."""
    return batch.over_tasks(a.square() * length)


def _cost(a: Tensor, p: Tensor, length: Tensor, batch: Batch, price: float, power: float) -> Tensor:
    misfit = batch.over_tasks(-torch.log(p + a * (1 - p)))
    return misfit + price * (norm(a, length, batch) + ZETA) ** (power / 2)


def _descended(a: Tensor, p: Tensor, length: Tensor, batch: Batch, price: float, power: float) -> Tensor:
    rest = 1 - p
    twice, square = 2 * rest, 4 * rest.square()
    for _ in range(ROUNDS):
        slope = price * power * (norm(a, length, batch) + ZETA).pow_(power / 2 - 1)  # B: twice the tangent's
        steep = slope.index_select(0, batch.task).mul_(length)  # V
        # the root of - rest / (p + a rest) + steep a
        near = steep * p
        a = twice / (square.mul(steep).addcmul_(near, near).sqrt_().add_(near))
        a = torch.where(rest > 0, a.clamp_max_(1), 0.0)
    return a


class Outliers(Enclosed):
    """Cross-entropy with the odd votes set aside, the price of setting them aside, less the volume of F."""

    scores: Tensor

    def __init__(
        self,
        network: nn.Module,
        crowd: Confusions,
        data: Data,
        *,
        price: float,
        power: float,
        volume: float,
        **common: Any,
    ) -> None:
        super().__init__(network, crowd, data, **common)
        self.price, self.power, self.volume = price, power, volume
        self.register_buffer("scores", torch.zeros(data.votes.N))

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        p, length = self._labels(logp, batch)
        with torch.no_grad():
            a = self._odd(p, length, batch)
        price = self.price * (norm(a, length, batch) + ZETA) ** (self.power / 2)  # B
        loss = self.per_vote(-torch.log(p + a * (1 - p)), batch) + per_task(price, batch)
        if self.volume == 0:
            return loss
        return loss - self.volume * self.coming_in(batch) * spread(logp)

    def _labels(self, logp: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The chance of each vote's label, and |1_label - p|^2 with all labels' chances p = A f: V each."""
        who, place = batch.by_whom
        p = through(logp.exp(), self.crowd.of(who).softmax(0), place, batch)  # V,K
        mine = p.gather(1, batch.label.long()[:, None])[:, 0]
        return mine, (1 - 2 * mine + p.square().sum(1)).clamp_min(0)

    def _odd(self, p: Tensor, length: Tensor, batch: Batch) -> Tensor:
        return least(p, length, batch, self.price, self.power)

    def oddness(self, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """a of each vote (V), and of each item the sum over its votes of |e|^2 (B)."""
        p, length = self._labels(self.logp(x), batch)
        a = self._odd(p, length, batch)
        return a, norm(a, length, batch)

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return self._less(self.logp(x), batch)

    def _less(self, logp: Tensor, batch: Batch) -> Tensor:
        """An odd vote says less of the truth: (1 - a) A[truth, label] + a, V,K."""
        a = self._odd(*self._labels(logp, batch), batch)[:, None]
        return torch.log((1 - a) * self.crowd.given(batch).exp() + a)

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        """What is odd is judged by the same prediction that meets the votes."""
        return (prior + segment_sum(self._less(prior, batch), batch.offsets).float()).softmax(1)

    def unseen(self, x: Tensor, batch: Batch) -> Tensor:
        """An item is taken for an ordinary one before its votes are seen."""
        return self.crowd.given(batch)

    def foretell(self, x: Tensor, batch: Batch) -> Tensor:
        return foretold(self.logp(x), self.unseen(x, batch), batch)

    def log_table(self) -> Tensor | None:
        return None  # what a vote says depends on the item's other votes

    def remember(self, data: Data) -> None:
        """Keep the oddness of all of the data's tasks."""
        with asking(self):
            parts = [self.oddness(x, parcel.batch)[1] for x, parcel in in_batches(data, self.scores.device)]
        self.scores[data.positions.to(self.scores.device)] = torch.cat(parts)


@dataclass(repr=False, eq=False)
class COINNet(Counted):
    """CCEM that sets aside the votes on few odd items; ``odd_`` says which items are odd."""

    price: float | None = option(None, optional(above(0)), "of an odd item, in nats; none: held-out votes decide")
    power: float = option(0.4, share(), "of the norm of an item's odd part; near 0 all odd items cost the same")
    volume: float | None = option(
        None, optional(at_least(0)), "weight of the volume of the predictions; none: held-out votes decide"
    )

    def variants(self, data: Data) -> Variants:
        """Weights of the volume, at the price that is given or the middle one."""
        price = self.price or PRICES[0]
        volumes = VOLUMES if self.volume is None else (self.volume,)
        return {_words(price, volume): {"price": price, "volume": volume} for volume in volumes}

    def refinements(self, best: Learner) -> Variants:
        """Other prices, at the weight that was best."""
        assert isinstance(best, COINNet)
        prices = PRICES[1:] if self.price is None else ()
        return {_words(price, best.volume or 0.0): {"price": price} for price in prices}

    def objective(self, net: nn.Module, data: Data) -> Objective:
        settings: dict[str, Any] = {"price": self.price or PRICES[0], "power": self.power, "volume": self.volume or 0.0}
        return Outliers(net, self.confusions(data), data, **settings, **self.common)

    def _train(self, data: Data, epochs: int) -> tuple[Objective, list[Any]]:
        objective, history = super()._train(data, epochs)
        assert isinstance(objective, Outliers)
        objective.remember(data)
        return objective, history

    @property
    def odd_(self) -> pl.DataFrame:
        """Task and score, the oddest first: how much of the item's votes cannot be laid to its workers' matrices."""
        scores = [found.scores for found in self._objectives if isinstance(found, Outliers)]
        tasks = self.consensus_.votes.tasks.names
        score = pl.Series("score", torch.stack(scores).mean(0).numpy())
        return pl.DataFrame([tasks.alias("task"), score]).sort("score", descending=True, maintain_order=True)


def _words(price: float, volume: float) -> str:
    return f"price of an odd item {price:g}, weight of the volume {volume:g}"
