"""Belief propagation between tasks and workers, the worker's matrix integrated out.

Liu, Peng, Ihler (2012), Variational inference for crowdsourcing; Kim, Cho, Kim, Ok (paper 001), whose
equation 42 takes any prior on the matrix by Monte Carlo. A vote is an edge. Each pass turns the
messages from tasks to workers (V,K) into those from workers to tasks (V,K); a *factor* says how.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from voxpop.engines.em import clamp
from voxpop.engines.loop import Info, Run, iterate
from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import segment_sum
from voxpop.votes import Batch


class Factor(Protocol):
    """What a worker tells each of his tasks, given what the others say of them."""

    def messages(self, incoming: Tensor) -> Tensor:
        """log m[worker -> task] (V,K, rows summing to one) from m[task -> worker] (V,K), in the votes' order."""
        ...


@dataclass(frozen=True)
class State:
    outgoing: Tensor  # V,K: log m[worker -> task]
    incoming: Tensor  # V,K: m[task -> worker]
    belief: Tensor  # B,K


def propagate(
    batch: Batch,
    factor: Factor,
    prior: Tensor,
    gold: Tensor | None,
    *,
    max_iter: int,
    tol: float,
    damping: float,
    start: Tensor | None = None,
) -> Run[State]:
    """Pass messages until no belief moves by more than ``tol``. ``prior`` is log p(truth), K or B,K.

    The workers' first messages are ``start`` (V,K), or say nothing.
    """
    before = clamp(prior.expand(batch.B, batch.K), gold)  # B,K

    def step(state: State) -> tuple[State, Info]:
        outgoing = factor.messages(state.incoming)
        if damping:
            outgoing = torch.logaddexp(outgoing + math.log1p(-damping), state.outgoing + math.log(damping))
        after = gather(batch, before, outgoing)
        change = float((after.belief - state.belief).abs().max()) if batch.V else 0.0
        return after, Info(torch.nan, change)

    if start is None:
        start = torch.full((batch.V, batch.K), -math.log(batch.K), device=batch.device)
    return iterate(step, gather(batch, before, start), max_iter=max_iter, tol=tol, scale=1.0, stage="messages")


def gather(batch: Batch, before: Tensor, outgoing: Tensor) -> State:
    """What the messages of the workers make of each task, with all of them and without each of them.

    A message that excludes a class (a zero in a prototype) is counted apart: -inf minus -inf is not a
    number. Where the messages exclude every class, what was believed before them stands.
    """
    task, shut = batch.task.long(), outgoing == -torch.inf
    said = outgoing.masked_fill(shut, 0.0)  # V,K
    total = before + segment_sum(said, batch.offsets).float()  # B,K
    left = total[task] - said  # V,K; eq. 20: all but this worker's own message
    if bool(shut.any()):
        excluded = segment_sum(shut.float(), batch.offsets).float()  # B,K
        left = left.masked_fill(excluded[task] - shut.float() > 0.5, -torch.inf)
        total = total.masked_fill(excluded > 0.5, -torch.inf)
        left = torch.where(left.isneginf().all(1, keepdim=True), before[task], left)
        total = torch.where(total.isneginf().all(1, keepdim=True), before, total)
    return State(outgoing, torch.softmax(left, 1), torch.softmax(total, 1))  # eq. 21


@dataclass(frozen=True, eq=False)
class Particles:
    """Paper 001 eq. 42: the expectation over a worker's matrix as a weighted sum of S draws.

    Sums of logs are kept for each (worker, draw); a task is left out by subtraction. A draw that
    excludes a vote (a zero in a prototype) is counted apart: -inf minus -inf is not a number.
    """

    batch: Batch
    tables: Tensor  # S,K,K or M,S,K,K as [(worker,) sample, label, truth]
    log_weight: Tensor  # S or M,S: log p / q of each draw
    block: int = 1 << 23  # numbers in flight

    def messages(self, incoming: Tensor) -> Tensor:
        score, zeros = self._scores(incoming)  # M,S
        out = torch.empty_like(incoming)
        for votes, worker, rows, fit in self._blocks(incoming):
            log_fit = torch.where(fit > 0, fit.log(), 0.0)
            left = score[worker] - log_fit  # the worker's other votes
            left = torch.where(zeros[worker] - (fit <= 0).float() > 0.5, -torch.inf, left)  # v,S
            top = left.amax(1, keepdim=True)
            weight = torch.where(top == -torch.inf, 0.0, (left - top).exp())
            message = torch.einsum("vs,vsk->vk", weight, rows)
            mass = message.sum(1, keepdim=True)
            out[votes] = torch.where(mass > 0, message / mass, 1 / message.shape[1]).log()  # nothing fits: say nothing
        return out

    def effective_size(self, incoming: Tensor) -> Tensor:
        """(sum w)^2 / sum w^2 of each worker's draws: how many really count. M."""
        return 1 / self._posterior(incoming).square().sum(1)

    def posterior_table(self, incoming: Tensor) -> Tensor:
        """The mean confusion matrix of each worker: M,K,K as [worker, truth, label]."""
        what = "mslk" if self.tables.dim() == 4 else "slk"
        return torch.einsum(f"ms,{what}->mkl", self._posterior(incoming), self.tables)

    def accuracy(self, incoming: Tensor, draws: int, seed: int) -> Tensor:
        """Draws of each worker's chance of being right: T,M.

        A matrix by its weight; given that, which of the worker's votes are right (independent of each other, as on a
        tree); given those, a Beta. So doubt about the matrix is doubt about all of a worker's tasks at once.
        """
        rng = generator(seed, "accuracy", device=incoming.device)
        which = torch.multinomial(self._posterior(incoming), draws, replacement=True, generator=rng)  # M,T
        right = torch.zeros(self.batch.M, draws, dtype=torch.float64, device=incoming.device)
        for votes, worker, rows, fit in self._blocks(incoming):
            label = self.batch.label[votes].long()
            own = incoming[votes].gather(1, label[:, None]) * rows[torch.arange(len(rows)), :, label]  # v,S
            hit = torch.where(fit > 0, own / fit, own).gather(1, which[worker])  # v,T: p(truth is the label | matrix)
            right.index_add_(0, worker, (torch.rand(hit.shape, generator=rng, device=hit.device) < hit).double())
        both = torch.stack([right, self.batch.worker_offsets.diff()[:, None] - right], -1) + 1  # M,T,2
        return dirichlet.sample(both, rng)[..., 0].t().float()

    def _posterior(self, incoming: Tensor) -> Tensor:
        """p(draw) of each worker's draws given all his votes, uniform where no draw fits: M,S."""
        score, zeros = self._scores(incoming)
        score = torch.where(zeros > 0.5, -torch.inf, score)
        return torch.softmax(torch.where(score.isneginf().all(1, keepdim=True), 0.0, score), 1)

    def _scores(self, incoming: Tensor) -> tuple[Tensor, Tensor]:
        """For each (worker, draw): the sum of logs of what fits, and how many votes do not."""
        shape = (self.batch.M, self.tables.shape[-3])
        score = self.log_weight.double().expand(shape).clone()
        zeros = torch.zeros(shape, device=incoming.device)
        for _, worker, _, fit in self._blocks(incoming):
            score.index_add_(0, worker, torch.where(fit > 0, fit.log(), 0.0).double())
            zeros.index_add_(0, worker, (fit <= 0).float())
        return (score - score.amax(1, keepdim=True)).float(), zeros

    def _blocks(self, incoming: Tensor):  # type: ignore[no-untyped-def]
        """(which votes, their workers, their rows v,S,K of the draws, and <theta[., label], m> as v,S)."""
        S, K = self.tables.shape[-3], self.tables.shape[-1]
        by_label = self.tables.transpose(-3, -2)  # (M,)K,S,K as [(worker,) label, sample, truth]
        size = max(1, self.block // (S * K))
        for start in range(0, self.batch.V, size):
            votes = slice(start, start + size)
            worker, label = self.batch.worker[votes].long(), self.batch.label[votes].long()
            rows = by_label[label] if by_label.dim() == 3 else by_label[worker, label]  # v,S,K
            yield votes, worker, rows, torch.einsum("vsk,vk->vs", rows, incoming[votes])
