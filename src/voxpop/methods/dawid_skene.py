"""Dawid, Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from voxpop.channels.confusion import Confusion
from voxpop.engines.em import Model
from voxpop.methods.base import Ascent
from voxpop.methods.error_rates import error_rates
from voxpop.methods.priors import class_prior_option, point_prior
from voxpop.options import anything, at_least, option
from voxpop.votes import Votes


@dataclass(frozen=True)
class DawidSkene(Ascent):
    """A confusion matrix per worker and class frequencies, by EM: maximum a posteriori, eqs. 2.3 to 2.5.

    ``smoothing`` pseudo votes in every cell keep a worker with few votes from being infallible.
    Known error rates (worker, truth, label, p; or M,K,K as [worker, truth, label]) are where EM starts,
    or with ``error_rate_votes`` > 0 a prior that weighs so many votes a row.
    """

    smoothing: float = option(0.01, at_least(0), "pseudo votes added to every cell of a confusion matrix")
    class_prior: str = class_prior_option("learned")
    error_rates: Any = option(
        None, anything(), "known error rates: a file or frame of worker, truth, label, p, or M,K,K numbers"
    )
    error_rate_votes: float = option(
        0.0, at_least(0), "how many votes the known error rates weigh; 0: they are only the start"
    )

    def model(self, votes: Votes, gold: Tensor | None) -> Model:
        pseudo: Tensor | float = self.smoothing
        if self.error_rates is not None and self.error_rate_votes > 0:
            known = error_rates(self.error_rates, votes).transpose(1, 2).to(self.device)  # as [worker, label, truth]
            pseudo = self.smoothing + self.error_rate_votes * known
        return Model(Confusion(pseudo), point_prior(self.class_prior), gold)

    def first_theta(self, votes: Votes) -> Any:
        if self.error_rates is None:
            return None
        known = error_rates(self.error_rates, votes)
        softened = (known + self.smoothing / votes.K) / (1 + self.smoothing)
        return {name: t.to(self.device) for name, t in Confusion.at(softened).items()}
