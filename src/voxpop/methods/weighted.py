"""Votes weighted by how often a worker agrees with the others: Wawa, and zero-based skill.

Wawa (worker agreement with aggregate) weighs once by agreement with the majority; zero-based skill
repeats the weighing, from equal skills, until the skills stand still.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.channels.own_label import own_belief
from voxpop.engines.loop import Info, iterate
from voxpop.engines.outcome import Status
from voxpop.engines.starts import shares
from voxpop.methods.base import Iterative, Method, judged
from voxpop.numerics.segments import scatter_sum
from voxpop.numerics.simplex import first_best, normalise
from voxpop.options import fraction, option
from voxpop.results import Consensus, Evidence
from voxpop.votes import Batch, Votes


def weighted_shares(batch: Batch, weight: Tensor, gold: Tensor | None) -> Tensor:
    """Shares of the summed weights (M) of the votes for each class: N,K."""
    summed = scatter_sum(weight[batch.worker.long()], batch.cell, batch.B * batch.K).view(batch.B, batch.K)
    belief = normalise(summed).float()
    if gold is not None:
        known = gold >= 0
        belief[known] = torch.nn.functional.one_hot(gold[known], batch.K).float()
    return belief


def agreement(batch: Batch, belief: Tensor) -> Tensor:
    """How often each worker votes for the winner (who shares a tie gets a share): M."""
    label, _ = first_best(belief)
    tied = (belief >= belief.gather(1, label[:, None].long()) - 1e-5).float()
    hit = own_belief(batch, normalise(tied))
    return scatter_sum(hit, batch.worker, batch.M) / batch.worker_offsets.diff().clamp_min(1)


def _result(
    method: Method, votes: Votes, belief: Tensor, weight: Tensor, status: Status, history: tuple[Info, ...]
) -> Consensus:
    evidence = Evidence("shares", {"weight": weight.float()}, torch.zeros(votes.K))
    return method.consensus(votes, belief, judged(status, votes, belief), history=history, evidence=evidence)


@dataclass(frozen=True)
class WeightedVote(Method):
    """Wawa: each worker weighs as much as he agrees with the majority."""

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        batch = votes.whole
        weight = agreement(batch, shares(votes, gold))
        return _result(self, votes, weighted_shares(batch, weight, gold), weight, Status.EXACT, ())


@dataclass(frozen=True)
class ZeroBasedSkill(Iterative):
    """Skills follow, step by step, each worker's agreement with the vote weighted by the skills."""

    rate: float = option(1.0, fraction(), "how far a skill moves towards the agreement in one step")

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        batch = votes.whole

        def step(state: tuple[Tensor, Tensor]) -> tuple[tuple[Tensor, Tensor], Info]:
            skill, belief = state
            ahead = skill + self.rate * (agreement(batch, belief) - skill)
            change = float((ahead - skill).abs().max()) if votes.M else 0.0
            return (ahead, weighted_shares(batch, ahead, gold)), Info(torch.nan, change)

        start = (torch.full((votes.M,), 1 / votes.K, dtype=torch.float64), shares(votes, gold))
        run = iterate(step, start, max_iter=self.max_iter, tol=self.tol, scale=1.0, stage=self.name)
        return _result(self, votes, run.state[1], run.state[0], run.status, run.history)
