"""Mean field of Liu, Peng, Ihler (2012), Variational inference for crowdsourcing; MF in paper 001."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from voxpop.channels.worker_prior import WorkerPrior
from voxpop.engines.em import Model
from voxpop.methods.base import MeanFieldAscent
from voxpop.methods.priors import class_prior_option, variational_prior
from voxpop.options import anything, option, pair_above, whole
from voxpop.votes import Votes


@dataclass(frozen=True)
class MeanField(MeanFieldAscent):
    """Truths and confusion matrices taken as independent; classes alike before the votes unless told otherwise."""

    workers_prior: Any = option(
        "dirichlet", anything(), "one-coin, two-coin, dirichlet, S,K,K prototypes, or a callable (S, seed)"
    )
    alpha: tuple[float, float] = option((2.0, 1.0), pair_above(0), "the named priors' parameters: right, wrong")
    class_prior: str = class_prior_option("uniform")
    samples: int = option(400, whole(1), "draws of a prior that is given as a callable")

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        prior = WorkerPrior(self.workers_prior, votes.K, *self.alpha)
        return Model(prior.mean_field(self.samples, self.seed), variational_prior(self.class_prior), gold)
