"""Hovy, Berg-Kirkpatrick, Vaswani, Hovy (2013), Learning whom to trust with MACE.

A worker either knows (with probability theta) and gives the truth, or spams from a favourite
distribution xi. Whether a vote was spam is a second latent variable; it is summed out here.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Stats, Theta, table_fits
from voxpop.channels.own_label import OwnLabelChannel, own_belief
from voxpop.channels.tabulated import TabulatedChannel
from voxpop.numerics import dirichlet
from voxpop.numerics.segments import scatter_sum
from voxpop.numerics.simplex import normalise
from voxpop.votes import Batch


@dataclass(frozen=True, eq=False)
class Spamming(OwnLabelChannel, TabulatedChannel):
    """p(label | truth) = theta[worker] 1{label = truth} + (1 - theta[worker]) xi[worker, label].

    Priors: theta ~ Beta(1 + pseudo_trust, 1 + pseudo_spam), xi ~ Dir(1 + pseudo_label).
    """

    pseudo_trust: float = 0.5
    pseudo_spam: float = 0.5
    pseudo_label: float = 0.5
    rounds: int = 5  # of the inner EM over "was this vote spam"

    def parts(self, batch: Batch, theta: Theta) -> tuple[Tensor, Tensor]:
        log_spam, log_known = _logs(theta)
        pair = batch.pair.long()
        return log_spam.view(-1)[pair], (log_known - log_spam).view(-1)[pair]

    def log_table(self, theta: Theta) -> Tensor:
        log_spam, log_known = _logs(theta)
        return log_spam[:, :, None].repeat(1, 1, log_spam.shape[1]).diagonal_scatter(log_known, dim1=1, dim2=2)

    def stats_of_counts(self, batch: Batch, counts: Tensor) -> Stats:
        right = counts.diagonal(dim1=1, dim2=2)
        return {"right": right, "votes": batch.by_pair.counts.double().view_as(right)}  # M,K as [worker, label]

    def stats_by_vote(self, batch: Batch, belief: Tensor) -> Stats:
        right = scatter_sum(own_belief(batch, belief), batch.pair, batch.M * batch.K).view(batch.M, batch.K)
        return {"right": right, "votes": batch.by_pair.counts.double().view_as(right)}

    def update(self, stats: Stats, theta: Theta | None) -> Theta:
        right, votes = stats["right"], stats["votes"]
        if theta is None:
            trust = torch.full_like(right[:, 0], 0.5)
            spam = normalise(votes + 1)
        else:
            trust, spam = theta["trust"], theta["spam"]
        for _ in range(self.rounds):
            known = trust[:, None] / (trust[:, None] + (1 - trust[:, None]) * spam)  # M,K: p(knew | right)
            honest = (right * known).sum(1) + self.pseudo_trust  # M
            lazy = (votes - right * known).clamp_min(0)  # M,K
            trust = honest / (honest + lazy.sum(1) + self.pseudo_spam)
            spam = normalise(lazy + self.pseudo_label)
        return {"trust": trust, "spam": spam}

    def draw(self, stats: Stats, theta: Theta, rng: torch.Generator) -> Theta:
        """Which right votes were lucky spam, then trust and favourite labels given that."""
        right, votes = stats["right"], stats["votes"]
        spam = (1 - theta["trust"])[:, None] * theta["spam"]  # M,K
        lucky = torch.binomial(right.round(), spam / (theta["trust"][:, None] + spam), generator=rng)
        honest = (right - lucky).sum(1)
        lazy = (votes - right).clamp_min(0) + lucky
        counts = torch.stack([honest + 1 + self.pseudo_trust, lazy.sum(1) + 1 + self.pseudo_spam], -1)
        trust = dirichlet.sample(counts, rng)[:, 0]
        return {"trust": trust, "spam": dirichlet.sample(lazy + 1 + self.pseudo_label, rng)}

    def penalty(self, theta: Theta) -> Tensor:
        trust, spam = theta["trust"], theta["spam"]
        beta = self.pseudo_trust * trust.log() + self.pseudo_spam * torch.log1p(-trust)
        return beta.sum() + self.pseudo_label * spam.log().sum()

    def table(self, theta: Theta) -> Tensor | None:
        M, K = theta["spam"].shape
        if not table_fits(M, K):
            return None
        spam = ((1 - theta["trust"][:, None]) * theta["spam"]).float()[:, None, :].repeat(1, K, 1)  # M,K,K
        return spam + theta["trust"].float()[:, None, None] * torch.eye(K, device=spam.device)


def _logs(theta: Theta) -> tuple[Tensor, Tensor]:
    """log p(label) where the truth is another class, and where it is the label: M,K each."""
    spam = (1 - theta["trust"])[:, None] * theta["spam"]  # M,K
    return spam.log().float(), (theta["trust"][:, None] + spam).log().float()
