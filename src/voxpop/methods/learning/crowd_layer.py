"""Rodrigues & Pereira (2018), "Deep learning from crowds": a layer between the network and each worker's labels.

With ``simplex`` its probabilistic form, coupled cross-entropy minimisation (CCEM): Ibrahim, Nguyen & Fu (2023),
"Deep learning from crowdsourced labels: coupled cross-entropy minimization, identifiability, and regularization".
With ``log`` the bound that paper 001 derives from DeepMF (eq. 34): the mean over truths of log p(label | truth).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.errors import BadOption
from voxpop.learn.crowd import Confusions, CrowdWeights, Mixture
from voxpop.learn.data import Data
from voxpop.learn.fused import through
from voxpop.learn.learner import Variants
from voxpop.learn.objective import Objective
from voxpop.methods.learning.descent import Counted
from voxpop.options import at_least, flag, one_of, option, optional
from voxpop.votes import Batch

IDENTITY, HELD_OUT = "identity", "held-out"
STARTS = ("counts", IDENTITY)


class Scales(CrowdWeights):
    """VW: the network's output times a weight for each class; VW+B: and a bias added. The crowd's plus the own."""

    def __init__(self, common: Tensor, workers: int, bias: bool) -> None:
        super().__init__()
        self.common = nn.Parameter(common)  # K
        self.own = nn.Parameter(torch.zeros(workers, (2 if bias else 1) * common.numel()))  # M,K or M,2K

    @property
    def workers(self) -> int:
        return len(self.own)

    def own_of(self, who: Tensor) -> Tensor:
        return self.own.index_select(0, who)

    def made(self, own: Tensor) -> Tensor:
        K = self.common.numel()
        maps = torch.diag_embed(self.common + own[:, :K]).transpose(0, 1)  # K,U,K
        return maps if own.shape[1] == K else maps + own[:, K:].t()[:, :, None]


class Layer(Mixture):
    """p(label | x) = softmax(W p), with p the network's softmax: its table is softmax(W e_k)."""

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        return self.per_vote(self._errors(logp, batch), batch)

    def foretell(self, x: Tensor, batch: Batch) -> Tensor:
        return -self._errors(self.logp(x), batch)

    def _errors(self, logp: Tensor, batch: Batch) -> Tensor:
        """-log p(label | x) of each vote: V."""
        who, place = batch.by_whom
        said = through(logp.exp(), self.crowd.of(who), place, batch)  # V,K
        return F.cross_entropy(said, batch.label.long(), reduction="none")


class Bound(Mixture):
    """E over p(truth | x) of log p(label | truth): paper 001, eq. 34."""

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        expected = (logp.exp()[batch.task.long()] * self.given(x, batch)).sum(1)  # V
        return self.per_vote(-expected, batch)


@dataclass(repr=False, eq=False)
class CrowdLayer(Counted):
    """Maps from the network's output to each worker's labels, which learn with it and are then left away.

    The paper's maps begin as the identity, and tell little of a worker before they have grown; those that begin with
    counts (and ``pseudo`` votes) tell much at once. Which is better held-out votes say, unless ``start`` does; where
    ``epochs`` are given it is counts. Tables (``simplex``, ``log``) begin with counts unless ``start`` says otherwise.
    """

    pull: float | None = option(  # type: ignore[assignment]
        None,
        optional(at_least(0)),
        "how strongly a worker's weights are held to the crowd's; none: 0.3 from the identity, 1 from counts",
    )
    kind: str = option("MW", one_of("MW", "VW", "VW+B"), "of each worker: a matrix, a weight per class, and a bias")
    start: str = option(
        HELD_OUT,
        one_of(HELD_OUT, *STARTS),
        "weights at first: counts or identity; held-out votes tell, if no epochs are given",
    )
    simplex: bool = option(False, flag(), "CCEM: mix the rows of confusion matrices (needs MW)")
    log: bool = option(False, flag(), "the bound with the logarithm inside the mean (paper 001, eq. 34)")

    def variants(self, data: Data) -> Variants:
        """The starts of maps, unless it is given; where epochs are, counts, without a search."""
        if self.start != HELD_OUT or self.epochs is not None or self.simplex or self.log:
            return {}
        return {f"started from {start}": {"start": start} for start in STARTS}

    def objective(self, net: nn.Module, data: Data) -> Objective:
        if self.simplex and (self.kind != "MW" or self.log):
            raise BadOption("CrowdLayer: simplex goes with kind MW and without log; leave out the one or the other")
        form = Bound if self.log else Mixture if self.simplex else Layer
        pull = (0.3 if self.start == IDENTITY else 1.0) if self.pull is None else self.pull
        return form(net, self._crowd(data), data, **{**self.common, "pull": pull})

    def _crowd(self, data: Data) -> CrowdWeights:
        weights = Confusions.alike(data) if self.start == IDENTITY else self.confusions(data)
        if self.kind == "MW":
            return weights
        scale = torch.ones(data.votes.K) if self.start == IDENTITY else _scale(weights)
        return Scales(scale, data.votes.M, bias=self.kind == "VW+B")


def _scale(counted: Confusions) -> Tensor:
    """Of each class, that at which the softmax of its weight is the crowd's accuracy: K."""
    common = counted.common.detach()[:, 0]  # K,K as [label, truth]
    right = common.softmax(0).diagonal()
    return torch.where(right < 1, right.logit() + math.log(max(len(right) - 1, 1)), 0.0)
