"""Why a task got its belief: what each vote says for and against each class.

Most methods add evidence up: belief = softmax(prior + sum over votes). Their evidence is kept as the
channel's parameters, and a vote's row is computed when somebody asks. Others do not add up (shares,
samplers, averages): there a vote is left out, and the change of the log belief is its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Channel, Theta
from voxpop.channels.coin import Coin
from voxpop.channels.confusion import Confusion
from voxpop.channels.glad import SkillAndEase
from voxpop.channels.mace import Spamming
from voxpop.votes import Batch

# how the parameters of each form are read again: only ``loglik`` is asked of these channels
_READERS: Mapping[str, Callable[[int], Channel]] = {
    "table": lambda K: Confusion(),
    "coin": lambda K: Coin(K, shared=False),
    "spam": lambda K: Spamming(),
    "skill-and-ease": lambda K: SkillAndEase(),
}
_NEEDED = {
    "table": ("log",),
    "coin": ("log_right", "log_wrong"),
    "spam": ("trust", "spam"),
    "skill-and-ease": ("skill", "log_ease"),
}

ADDS_UP = "adds up"
LEFT_OUT = "left out"


@dataclass(frozen=True)
class Evidence:
    """``form`` says how to read ``theta``; ``prior`` is log p(class) before any vote (K)."""

    form: str
    theta: Theta
    prior: Tensor  # K; or N,K where a classifier of the features says it

    @classmethod
    def of_channel(cls, channel: Channel, theta: Theta, prior: Tensor) -> Evidence:
        form = {Coin: "coin", Spamming: "spam", SkillAndEase: "skill-and-ease"}.get(type(channel), "table")
        return cls(form, {name: theta[name].detach().cpu() for name in _NEEDED[form]}, prior.detach().cpu())

    def prior_of(self, task: int) -> tuple[Tensor, str]:
        """log p(class) of a task before its votes (K), and who says so."""
        return (self.prior, "(prior)") if self.prior.dim() == 1 else (self.prior[task], "(features)")

    @property
    def adds_up(self) -> bool:
        return self.form in _READERS or self.form == "messages"

    def of_votes(self, batch: Batch, first: int, belief: Tensor) -> Tensor:
        """What each vote of one task says for each class, in nats: v,K. ``first`` is where the task's votes begin."""
        if self.form == "messages":
            return self.theta["log"][first : first + batch.V]
        if self.form == "shares":
            return self._left_out_of_shares(batch, belief)
        if self.form == "average":
            return self._left_out_by_table(batch)
        return _READERS[self.form](batch.K).loglik(batch, self.theta).float()

    def _left_out_of_shares(self, batch: Batch, belief: Tensor) -> Tensor:
        """log share with all votes minus log share without this one; with one pseudo vote spread over the classes."""
        weight = self.theta["weight"][batch.worker.long()].clamp_min(0)  # v
        own = torch.nn.functional.one_hot(batch.label.long(), batch.K) * weight[:, None]  # v,K
        total = own.sum(0) + 1 / batch.K  # K
        without = total - own  # v,K
        return (total / total.sum()).log() - (without / without.sum(1, keepdim=True)).log()

    def _left_out_by_table(self, batch: Batch) -> Tensor:
        """Bayes' rule run backwards through the worker's mean confusion matrix."""
        return self.theta["log"].reshape(-1, batch.K)[batch.pair.long()]
