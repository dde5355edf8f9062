"""Belief propagation between tasks and workers, the worker's matrix integrated out.

Liu, Peng, Ihler (2012), Variational inference for crowdsourcing; Kim, Cho, Kim, Ok (paper 001), whose
equation 42 takes any prior on the matrix by Monte Carlo. A vote is an edge. Each pass turns the
messages from tasks to workers (V,K) into those from workers to tasks (V,K); a *factor* says how.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from voxpop.engines.bp_blocks import Block, blocks_of
from voxpop.engines.em import clamp
from voxpop.engines.loop import Info, Run, iterate
from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import rows_of_a_block, segment_sum
from voxpop.numerics.simplex import softmax_rows
from voxpop.votes import Batch

TINY = 1e-36  # products of fits below would lose digits


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
    incoming, belief = torch.empty_like(outgoing), before.new_empty(batch.B, batch.K)
    task = vote = 0
    for part in batch.pieces(min(rows_of_a_block(8 * batch.K, batch.device), max(batch.B, 1))):
        tasks, votes = slice(task, task + part.B), slice(vote, vote + part.V)
        incoming[votes], belief[tasks] = _gathered(part, before[tasks], outgoing[votes])
        task, vote = tasks.stop, votes.stop
    return State(outgoing, incoming, belief)


def _gathered(batch: Batch, before: Tensor, outgoing: Tensor) -> tuple[Tensor, Tensor]:
    """m[task -> worker] of each vote, and the belief: V,K and B,K."""
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
    return softmax_rows(left)[0], softmax_rows(total)[0]  # eq. 21


@dataclass(frozen=True, eq=False)
class Particles:
    """Paper 001 eq. 42: the expectation over a worker's matrix as a weighted sum of S draws.

    Sums of logs are kept for each (worker, draw); a task is left out by subtraction. A draw that
    excludes a vote (a zero in a prototype) is counted apart: -inf minus -inf is not a number.
    """

    batch: Batch
    tables: Tensor  # S,K,K or M,S,K,K as [(worker,) sample, label, truth]
    log_weight: Tensor  # S or M,S: log p / q of each draw
    block: int = 1 << 18  # numbers in flight

    @property
    def draws(self) -> int:
        return self.tables.shape[-3]

    def messages(self, incoming: Tensor) -> Tensor:
        score, zeros = self._scores(incoming)  # M,S
        weight = torch.softmax(score, 1)  # M,S: given all of a worker's votes
        out = torch.empty_like(incoming)
        for block, rows, fit in self._fits(incoming):
            if zeros is None:
                left = weight[block.worker][:, None] / fit  # P,c,S: given the worker's other votes
            else:
                left = self._left_out(score[block.worker][:, None], zeros[block.worker][:, None], fit)
            message = torch.bmm(rows.mT, left.mT).mT  # P,c,K; a product of few columns is slow, one of few rows not
            mass = message.sum(2, keepdim=True)
            out[block.votes] = torch.where(
                mass > 0, message / mass, 1 / message.shape[2]
            ).log()  # nothing fits: nothing
        return out

    @staticmethod
    def _left_out(score: Tensor, zeros: Tensor, fit: Tensor) -> Tensor:
        """Weights given a worker's other votes, where draws may exclude votes: P,c,S."""
        left = score - torch.where(fit > 0, fit.log(), 0.0)
        left = torch.where(zeros - (fit <= 0).float() > 0.5, -torch.inf, left)
        top = left.amax(2, keepdim=True)
        return torch.where(top == -torch.inf, 0.0, (left - top).exp())

    def effective_size(self, incoming: Tensor) -> Tensor:
        """(sum w)^2 / sum w^2 of each worker's draws: how many really count. M."""
        return 1 / self._posterior(incoming).square().sum(1)

    def posterior_table(self, incoming: Tensor) -> Tensor:
        """The mean confusion matrix of each worker: M,K,K as [worker, truth, label]."""
        weight, rows = self._posterior(incoming), self._rows  # M,S and (M,)K,S,K
        if rows.dim() == 3:
            return torch.einsum("ms,lsk->mkl", weight, rows)
        each = [torch.bmm(weight[:, None], rows[:, label]) for label in range(rows.shape[1])]  # M,1,K
        return torch.cat(each, 1).mT  # label by label: einsum would copy all draws

    def accuracy(self, incoming: Tensor, draws: int, seed: int) -> Tensor:
        """Draws of each worker's chance of being right: T,M.

        A matrix by its weight; given that, which of the worker's votes are right (independent of each other, as on a
        tree); given those, a Beta. So doubt about the matrix is doubt about all of a worker's tasks at once.
        """
        rng = generator(seed, "accuracy", device=incoming.device)
        which = torch.multinomial(self._posterior(incoming), draws, replacement=True, generator=rng)  # M,T
        right = torch.zeros(self.batch.M, draws, dtype=torch.float64, device=incoming.device)
        for block, rows, fit in self._fits(incoming):
            own = rows.gather(2, block.label[:, None, None].expand(-1, rows.shape[1], 1))[:, None, :, 0]  # P,1,S
            said = incoming[block.votes].gather(2, block.label[:, None, None].expand(-1, fit.shape[1], 1))  # P,c,1
            hit = said * torch.where(fit > 0, own / fit, 0.0)  # P,c,S: p(truth is the label | matrix)
            hit = hit.gather(2, which[block.worker][:, None].expand(-1, fit.shape[1], -1))  # P,c,T
            drawn = torch.rand(hit.shape, generator=rng, device=hit.device) < hit
            right.index_add_(0, block.worker, (drawn & block.valid[:, :, None]).sum(1).double())
        both = torch.stack([right, self.batch.worker_offsets.diff()[:, None] - right], -1) + 1  # M,T,2
        return dirichlet.sample(both, rng)[..., 0].t().float()

    def _posterior(self, incoming: Tensor) -> Tensor:
        """p(draw) of each worker's draws given all his votes, uniform where no draw fits: M,S."""
        score, zeros = self._scores(incoming)
        if zeros is not None:
            score = torch.where(zeros > 0.5, -torch.inf, score)
            score = torch.where(score.isneginf().all(1, keepdim=True), 0.0, score)
        return torch.softmax(score, 1)

    def _scores(self, incoming: Tensor) -> tuple[Tensor, Tensor | None]:
        """For each (worker, draw): the sum of logs of what fits, and how many votes do not (None: all of them do)."""
        shape = (self.batch.M, self.draws)
        score = self.log_weight.double().expand(shape).clone()
        zeros: Tensor | None = None
        for block, _, fit in self._fits(incoming):
            valid = block.valid[:, :, None].float()
            fit = torch.addcmul(1 - valid, fit, valid)  # what only fills the block fits: its log is zero
            product = _products(_products(fit))  # P,c/4,S: a log costs as much as several products
            if bool(product.amin() < TINY):
                shut = fit <= 0
                if bool(shut.any()):
                    zeros = torch.zeros(shape, device=incoming.device) if zeros is None else zeros
                    zeros.index_add_(0, block.worker, shut.sum(1).float())
                product = fit.masked_fill_(shut, 1.0)
            score.index_add_(0, block.worker, product.log_().sum(1).double())
        return (score - score.amax(1, keepdim=True)).float(), zeros

    def _fits(self, incoming: Tensor) -> Iterator[tuple[Block, Tensor, Tensor]]:
        """Blocks of votes, the rows P,S,K of their draws, and <theta[., label], m> as P,c,S."""
        for block in self._blocks:
            rows = self._rows[block.label] if self._rows.dim() == 3 else self._rows[block.worker, block.label]
            yield block, rows, torch.bmm(incoming[block.votes], rows.transpose(1, 2))

    @cached_property
    def _rows(self) -> Tensor:
        """What each draw says of a label: (M,)K,S,K as [(worker,) label, sample, truth]."""
        return self.tables.transpose(-3, -2).contiguous()

    @cached_property
    def _blocks(self) -> list[Block]:
        return blocks_of(self.batch, max(1, self.block // self.draws))


def _products(fit: Tensor) -> Tensor:
    """Products of two by two along the votes of P,c,S; what is left over stays: P,(c+1)/2,S."""
    half = fit.shape[1] // 2
    product = fit[:, :half] * fit[:, half : 2 * half]
    return torch.cat([product, fit[:, 2 * half :]], 1) if fit.shape[1] % 2 else product
