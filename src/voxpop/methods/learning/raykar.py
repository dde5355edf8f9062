"""Raykar et al. (2010), Learning from crowds: logistic regression and what each worker confuses, by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from voxpop.channels.confusion import Confusion
from voxpop.channels.dirichlet import prior_rows
from voxpop.learn.ascent import Ascending
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.options import anything, option, pair_at_least


@dataclass(repr=False, eq=False)
class Raykar(Learner):
    """Two coins a worker, which for K classes are the rows of a confusion matrix, with Dirichlet priors (section 2.5);
    the classifier is logistic regression unless another is named."""

    any_classifier: ClassVar[bool] = True

    model: Any = option(
        "linear", anything(), "the classifier: linear, mlp, mlp:100 (hidden units), cnn, resnet, or a Module"
    )
    beta: tuple[float, float] = option(
        (2.0, 1.1),
        pair_at_least(1),
        "Dirichlet parameters of a row: the right label, each wrong one; (1, 1) is maximum likelihood",
    )

    def objective(self, net: nn.Module, data: Data) -> Objective:
        K, (right, wrong) = data.votes.K, self.beta
        return Ascending(net, Confusion(prior_rows(K, right - 1, (wrong - 1) * (K - 1))), data)
