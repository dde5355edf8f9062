"""DeepMF: Kim, Cho, Kim, Ok (paper 001), Robust deep learning from crowds with belief propagation, section 3.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from voxpop.channels.worker_prior import WorkerPrior
from voxpop.errors import BadOption
from voxpop.learn.ascent import Ascending
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.objective import Objective
from voxpop.options import anything, option, pair_above, share, whole


@dataclass(repr=False, eq=False)
class DeepMF(Learner):
    """Truths and confusion matrices as independent, the clipped network for the prior: Algorithm 1.

    The Dirichlet of each matrix is updated in closed form (appendix B); prototypes and callables by their weights.
    """

    any_classifier: ClassVar[bool] = True

    workers_prior: Any = option(
        "dirichlet", anything(), "one-coin, two-coin, dirichlet, S,K,K prototypes, or a callable (S, seed)"
    )
    alpha: tuple[float, float] = option((2.0, 1.0), pair_above(0), "the named priors' parameters: right, wrong")
    clip: float = option(0.9, share(), "what the network may say of a class at most, when it meets the votes")
    samples: int = option(400, whole(1), "draws of a prior that is given as a callable")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        prior = WorkerPrior(self.workers_prior, data.votes.K, *self.alpha)
        channel = prior.mean_field(self.samples, self.seed)
        return Ascending(net, channel, data, most=checked_clip(self.clip, data.votes.K))


def checked_clip(clip: float, classes: int) -> float:
    if classes == 1:
        return 1.0
    if clip * classes < 1:
        raise BadOption(f"clip is {clip:g}; {classes} classes need at least 1/{classes}")
    return clip
