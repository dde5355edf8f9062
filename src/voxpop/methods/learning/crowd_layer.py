"""Rodrigues & Pereira (2018), "Deep learning from crowds": a layer between the network and each worker's labels.

With ``simplex`` its probabilistic form, coupled cross-entropy minimisation (CCEM): Ibrahim, Nguyen & Fu (2023),
"Deep learning from crowdsourced labels: coupled cross-entropy minimization, identifiability, and regularization".
With ``log`` the bound that paper 001 derives from DeepMF (eq. 34): the mean over truths of log p(label | truth).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from voxpop.errors import BadOption
from voxpop.learn.crowd import CrowdWeights, Mixture
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective
from voxpop.methods.learning.descent import Descent
from voxpop.options import flag, one_of, option
from voxpop.votes import Batch


class Scales(CrowdWeights):
    """VW: the network's output times a weight for each class; VW+B: and a bias added. The crowd's plus the own."""

    def __init__(self, common: Tensor, workers: int, bias: bool) -> None:
        super().__init__()
        self.common = nn.Parameter(common)  # K
        self.own = nn.Parameter(torch.zeros(workers, (2 if bias else 1) * common.numel()))  # M,K or M,2K

    def of(self, worker: Tensor) -> Tensor:
        return self._maps(self.own[worker.long()])

    def _maps(self, own: Tensor) -> Tensor:
        K = self.common.numel()
        maps = torch.diag_embed(self.common + own[:, :K])  # V,K,K
        return maps if own.shape[1] == K else maps + own[:, None, K:]

    def apart(self, worker: Tensor) -> Tensor:
        return self.own[worker.long()].square().sum(1)  # V

    def all(self) -> Tensor:
        return self._maps(self.own)


class Layer(Mixture):
    """p(label | x) = softmax(W p), with p the network's softmax: its table is softmax(W e_k)."""

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        return self.per_vote(-self._labels(logp, batch), batch) + self.pulled(batch)

    def foretell(self, x: Tensor, batch: Batch) -> Tensor:
        return self._labels(self.logp(x), batch)

    def _labels(self, logp: Tensor, batch: Batch) -> Tensor:
        p = logp.exp()[batch.task.long()]  # V,K
        who, place = batch.by_whom
        said = (p[:, :, None] * self.crowd.of(who)[place]).sum(1)  # V,K
        return said.gather(1, batch.label.long()[:, None])[:, 0] - said.logsumexp(1)  # V


class Bound(Mixture):
    """E over p(truth | x) of log p(label | truth): paper 001, eq. 34."""

    def of(self, logp: Tensor, x: Tensor, batch: Batch) -> Tensor:
        expected = (logp.exp()[batch.task.long()] * self.given(x, batch)).sum(1)  # V
        return self.per_vote(-expected, batch) + self.pulled(batch)


@dataclass(repr=False, eq=False)
class CrowdLayer(Descent):
    """Maps from the network's output to each worker's labels, which learn with it and are then left away."""

    kind: str = option("MW", one_of("MW", "VW", "VW+B"), "of each worker: a matrix, a weight per class, and a bias")
    simplex: bool = option(False, flag(), "CCEM: mix the rows of confusion matrices (needs MW)")
    log: bool = option(False, flag(), "the bound with the logarithm inside the mean (paper 001, eq. 34)")

    def objective(self, net: nn.Module, data: Data) -> Objective:
        if self.simplex and (self.kind != "MW" or self.log):
            raise BadOption("CrowdLayer: simplex goes with kind MW and without log; leave out the one or the other")
        form = Bound if self.log else Mixture if self.simplex else Layer
        return form(net, self._crowd(data), data, **self.common)

    def _crowd(self, data: Data) -> CrowdWeights:
        start = self.confusions(data)
        if self.kind == "MW":
            return start
        right = start.common.detach().log_softmax(1).diagonal().exp()  # K: the crowd's accuracy in each class
        scale = torch.where(right < 1, right.logit() + math.log(max(data.votes.K - 1, 1)), 0.0)
        return Scales(scale, data.votes.M, bias=self.kind == "VW+B")
