"""Belief propagation between tasks and workers, the worker's matrix integrated out.

Liu, Peng, Ihler (2012), Variational inference for crowdsourcing; Kim, Cho, Kim, Ok (paper 001), whose
equation 42 takes any prior on the matrix by Monte Carlo. A vote is an edge. Each pass turns the
messages from tasks to workers (V,K) into those from workers to tasks (V,K); a *factor* says how.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from voxpop.engines.em import clamp
from voxpop.engines.loop import Info, Run, iterate
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
    belief: Tensor  # B,K


def propagate(
    batch: Batch, factor: Factor, prior: Tensor, gold: Tensor | None, *, max_iter: int, tol: float, damping: float
) -> Run[State]:
    """Pass messages until no belief moves by more than ``tol``. ``prior`` is log p(truth), K or B,K."""
    before = clamp(prior.expand(batch.B, batch.K), gold)  # B,K
    task = batch.task.long()

    def step(state: State) -> tuple[State, Info]:
        total = before + segment_sum(state.outgoing, batch.offsets).float()  # B,K
        incoming = torch.softmax(total[task] - state.outgoing, 1)  # eq. 19: all but this worker's own message
        outgoing = factor.messages(incoming)
        if damping:
            outgoing = torch.log_softmax((1 - damping) * outgoing + damping * state.outgoing, 1)
        belief = torch.softmax(before + segment_sum(outgoing, batch.offsets).float(), 1)  # eq. 21
        return State(outgoing, belief), Info(torch.nan, float((belief - state.belief).abs().max()) if batch.V else 0.0)

    flat = torch.zeros(batch.V, batch.K, device=batch.device)
    start = State(flat - torch.log(torch.tensor(float(batch.K))), torch.softmax(before, 1))
    return iterate(step, start, max_iter=max_iter, tol=tol, scale=1.0, stage="messages")


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
            weight = torch.where(top == -torch.inf, 1.0, (left - top).exp())  # nothing fits: say nothing
            message = torch.einsum("vs,vsk->vk", weight, rows)
            message = torch.where(top == -torch.inf, 1.0, message)
            out[votes] = torch.log(message / message.sum(1, keepdim=True))
        return out

    def effective_size(self, incoming: Tensor) -> Tensor:
        """(sum w)^2 / sum w^2 of each worker's draws: how many really count. M."""
        score, zeros = self._scores(incoming)
        weight = torch.softmax(torch.where(zeros > 0.5, -torch.inf, score), 1)
        return 1 / weight.square().sum(1)

    def posterior_table(self, incoming: Tensor) -> Tensor:
        """The mean confusion matrix of each worker: M,K,K as [worker, truth, label]."""
        score, zeros = self._scores(incoming)
        excluded = torch.where(zeros > 0.5, -torch.inf, score)
        excluded = torch.where((excluded == -torch.inf).all(1, keepdim=True), 0.0, excluded)
        weight = torch.softmax(excluded, 1)  # M,S
        what = "mslk" if self.tables.dim() == 4 else "slk"
        return torch.einsum(f"ms,{what}->mkl", weight, self.tables)

    def _scores(self, incoming: Tensor) -> tuple[Tensor, Tensor]:
        """For each (worker, draw): the sum of logs of what fits, and how many votes do not."""
        shape = (self.batch.M, self.tables.shape[-3])
        score = self.log_weight.double().expand(shape).clone()
        zeros = torch.zeros(shape, device=incoming.device)
        for _, worker, _, fit in self._blocks(incoming):
            score.index_add_(0, worker, torch.where(fit > 0, fit.log(), 0.0).double())
            zeros.index_add_(0, worker, (fit <= 0).float())
        return score.float() - score.amax(1, keepdim=True).float(), zeros

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
