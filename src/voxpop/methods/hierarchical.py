"""Dawid-Skene with workers drawn around the crowd (as in Paun et al. 2018, Comparing Bayesian models of annotation)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from voxpop.channels.dirichlet import prior_rows
from voxpop.channels.hierarchical import HierarchicalConfusion
from voxpop.engines.em import Model
from voxpop.methods.base import MeanFieldAscent
from voxpop.methods.priors import class_prior_option, variational_prior
from voxpop.options import above, option, pair_above
from voxpop.votes import Votes


@dataclass(frozen=True)
class HierarchicalDawidSkene(MeanFieldAscent):
    """Confusion matrices pooled towards the crowd's own, with a strength that is learned from the votes."""

    alpha: tuple[float, float] = option(
        (2.0, 1.0), pair_above(0), "where the crowd's parameters start: right, and wrong shared by the wrong labels"
    )
    weight: float = option(0.1, above(0), "how much that start weighs as a prior")
    class_prior: str = class_prior_option("learned")

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        start = prior_rows(votes.K, *self.alpha)
        return Model(HierarchicalConfusion(start, self.weight), variational_prior(self.class_prior), gold)
