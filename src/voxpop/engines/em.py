"""EM, and mean-field variational Bayes: the same two steps.

Dempster, Laird, Rubin (1977); Beal (2003), variational Bayesian EM. A channel that keeps points makes
this EM, one that keeps Dirichlets (and answers expected logs) makes it mean-field VB. The bound is

    sum_i log sum_k exp(log p(k) + sum_v log p(l_v | k)) + penalty(channel) + penalty(prior)

taken right after the E-step, where it equals the log posterior (EM) or the evidence bound (VB).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.base import Channel, Theta
from voxpop.engines.loop import Info, Run, iterate
from voxpop.numerics.segments import rows_of_a_block
from voxpop.numerics.simplex import softmax_of_blocks
from voxpop.priors.classes import ClassPrior, Pi
from voxpop.votes import Batch


@dataclass(frozen=True)
class State:
    belief: Tensor  # B,K
    theta: Theta
    pi: Pi


@dataclass(frozen=True)
class Model:
    """A channel, a prior and the known truths: what the steps are about."""

    channel: Channel
    prior: ClassPrior
    gold: Tensor | None = None  # B, class or -1

    def maximise(self, batch: Batch, belief: Tensor, theta: Theta | None, pi: Pi | None) -> tuple[Theta, Pi]:
        """M-step: the best parameters for a belief."""
        return (
            self.channel.update(self.channel.stats(batch, belief), theta),
            self.prior.update(self.prior.stats(belief), pi),
        )

    def expect(self, batch: Batch, theta: Theta, pi: Pi) -> tuple[Tensor, float]:
        """E-step: the belief for these parameters, and the bound there."""
        belief, total = self.believe(batch, theta, pi)
        bound = total + self.channel.penalty(theta) + self.prior.penalty(pi)
        return belief, float(bound)

    def believe(self, batch: Batch, theta: Theta, pi: Pi) -> tuple[Tensor, Tensor]:
        """The belief B,K for these parameters, and the votes' log-likelihood: the sum of the log normalisers."""
        logits = self.channel.evidence_in_blocks(batch, theta)
        if self.gold is not None:
            logits = _clamped(logits, self.gold)
        return softmax_of_blocks(logits, self.prior.logp(pi), torch.empty(batch.B, batch.K, device=batch.device))

    def step(self, batch: Batch, state: State) -> tuple[State, Info]:
        theta, pi = self.maximise(batch, state.belief, state.theta or None, state.pi or None)
        belief, bound = self.expect(batch, theta, pi)
        return State(belief, theta, pi), Info(bound, moved(belief, state.belief))


def clamp(logits: Tensor, gold: Tensor | None) -> Tensor:
    """Where the truth is known, exclude every other class."""
    if gold is None:
        return logits
    known = gold >= 0
    other = torch.ones_like(logits, dtype=torch.bool)
    other[known, gold[known]] = False
    return torch.where(known[:, None] & other, -torch.inf, logits)


def _clamped(blocks: Iterable[Tensor], gold: Tensor) -> Iterator[Tensor]:
    start = 0
    for logits in blocks:
        yield clamp(logits, gold[start : start + len(logits)])
        start += len(logits)


def moved(new: Tensor, old: Tensor) -> float:
    """The largest change of any belief; in blocks, so that the difference is never made as a whole."""
    if not new.numel():
        return 0.0
    step = rows_of_a_block(new.shape[1], new.device)
    return max(
        float((a - b).abs_().amax()) for a, b in zip(torch.split(new, step), torch.split(old, step), strict=True)
    )


def settle(batch: Batch, model: Model, belief: Tensor, rounds: int = 200) -> Theta:
    """The parameters that a belief leads to, also where one update of the channel only moves towards them."""
    stats = model.channel.stats(batch, belief)
    theta = model.channel.update(stats, None)
    for _ in range(rounds):
        before, theta = theta, model.channel.update(stats, theta)
        if all(torch.allclose(theta[name], before[name]) for name in theta):
            break
    return theta


def fit(
    batch: Batch, model: Model, belief: Tensor, *, max_iter: int, tol: float, stage: str, theta: Theta | None = None
) -> Run[State]:
    """Alternate the two steps from a belief (or from given parameters of the channel)."""
    pi = model.prior.update(model.prior.stats(belief), None)
    if theta is not None:
        belief, _ = model.expect(batch, theta, pi)
    return iterate(
        lambda state: model.step(batch, state),
        State(belief, theta or {}, {} if theta is None else pi),
        max_iter=max_iter,
        tol=tol,
        scale=max(batch.V, 1),
        stage=stage,
    )
