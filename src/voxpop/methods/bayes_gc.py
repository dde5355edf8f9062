"""BayesGC: Li, Huang, Chen (paper 000), eqs. 17 to 19 without the network; by mean-field VB."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.engines.em import Model
from voxpop.methods.base import MeanFieldAscent
from voxpop.options import above, option, pair_above
from voxpop.priors import DirichletClasses
from voxpop.votes import Votes


@dataclass(frozen=True)
class BayesGC(MeanFieldAscent):
    """Dirichlet priors on class frequencies and on the rows of every confusion matrix; defaults as in the paper."""

    alpha: float = option(1.1, above(0), "Dirichlet parameter of each class")
    beta: tuple[float, float] = option(
        (5.0, 2.0), pair_above(0), "Dirichlet parameters of a row: right, and wrong shared by the wrong labels"
    )

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        return Model(DirichletConfusion(prior_rows(votes.K, *self.beta)), DirichletClasses(self.alpha), gold)
