"""Rodrigues & Pereira (2018), "Deep learning from crowds": a layer between the network and each worker's labels.

With ``simplex`` its probabilistic form, coupled cross-entropy minimisation (CCEM): Ibrahim, Nguyen & Fu (2023),
"Deep learning from crowdsourced labels: coupled cross-entropy minimization, identifiability, and regularization".
With ``log`` the bound that paper 001 derives from DeepMF (eq. 34): the mean over truths of log p(label | truth).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.errors import BadOption
from voxpop.learn.crowd import Confusions, CrowdWeights, Mixture
from voxpop.learn.data import Data
from voxpop.learn.fused import through
from voxpop.learn.objective import Objective
from voxpop.methods.learning.descent import Counted
from voxpop.options import at_least, flag, one_of, option, optional
from voxpop.votes import Batch


class Scales(CrowdWeights):
    """VW: the network's output times a weight for each class; VW+B: and a bias added. The crowd's plus the own."""

    def __init__(self, workers: int, classes: int, bias: bool) -> None:
        super().__init__()
        self.common = nn.Parameter(torch.ones(classes))  # K
        self.own = nn.Parameter(torch.zeros(workers, (2 if bias else 1) * classes))  # M,K or M,2K

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

    Maps begin as the identity, as in the paper; confusion matrices (``simplex``, ``log``) as the votes count them.
    """

    pull: float | None = option(  # type: ignore[assignment]
        None,
        optional(at_least(0)),
        "how strongly a worker's weights are held to the crowd's; none: maps 0.3, tables 1",
    )
    kind: str = option("MW", one_of("MW", "VW", "VW+B"), "of each worker: a matrix, a weight per class, and a bias")
    simplex: bool = option(False, flag(), "CCEM: mix the rows of confusion matrices (needs MW)")
    log: bool = option(False, flag(), "the bound with the logarithm inside the mean (paper 001, eq. 34)")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        if self.simplex and (self.kind != "MW" or self.log):
            raise BadOption("CrowdLayer: simplex goes with kind MW and without log; leave out the one or the other")
        form = Bound if self.log else Mixture if self.simplex else Layer
        pull = (0.3 if form is Layer else 1.0) if self.pull is None else self.pull
        return form(net, self._crowd(data), data, **{**self.common, "pull": pull})

    def _crowd(self, data: Data) -> CrowdWeights:
        if self.kind != "MW":
            return Scales(data.votes.M, data.votes.K, bias=self.kind == "VW+B")
        return self.confusions(data) if self.simplex or self.log else Confusions.alike(data)
