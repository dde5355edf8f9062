"""Majority vote."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.engines.outcome import Status
from voxpop.engines.starts import shares
from voxpop.methods.base import Method
from voxpop.numerics.simplex import TIE, normalise
from voxpop.options import flag, option
from voxpop.results import Consensus, Evidence
from voxpop.votes import Votes


@dataclass(frozen=True)
class MajorityVote(Method):
    """The label that most votes name. The belief is that label (tied ones share it), or with ``soft`` the shares.

    Confidence is the share of the votes in both cases: a majority knows no more.
    """

    soft: bool = option(False, flag(), "keep the shares of the votes as the belief")

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        share = shares(votes, gold)  # N,K
        winners = (share >= share.amax(1, keepdim=True) - TIE).float()
        return self.consensus(
            votes,
            share if self.soft else normalise(winners),
            Status.EXACT,
            sure=None if self.soft else share,
            evidence=Evidence("shares", {"weight": torch.ones(votes.M)}, torch.zeros(votes.K)),
        )
