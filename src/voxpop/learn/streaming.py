"""Expertise learned from votes as they come: paper 002's channel by the stepwise EM of ``engines.online``.

The network and the topics stay. What the M-step of a worker's u needs are not sums that suffice, as a confusion
matrix has them; but near u its curvature and slope are all that counts: running means of these, and Newton's step
as far as the fresh votes weigh. Where all votes are gone through again, u rests where a full M-step has it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.channels.base import require_table
from voxpop.engines.em import clamp
from voxpop.engines.online import Pace, Running
from voxpop.errors import BadInput
from voxpop.learn.expertise import Expert, Reliability, said
from voxpop.learn.objective import asking
from voxpop.learn.rows import CHUNK, Rows
from voxpop.numerics.segments import scatter_sum, segment_sum
from voxpop.results import Consensus
from voxpop.votes import Votes
from voxpop.votes.log import Column, Log

TOGETHER = 200  # tasks in a step
BLOCK = 1 << 15  # tasks whose votes are looked at together


class Stream:
    """An Expert, and all votes so far. Changes the expert's embeddings in place."""

    def __init__(self, expert: Expert, found: Consensus, pace: Pace) -> None:
        assert isinstance(expert.channel, Reliability)
        votes, u = found.votes, expert.theta["workers"]
        require_table(votes.M, u.shape[1], "the curvature of each worker's expertise")
        self.expert, self.pace = expert, pace
        self.penalty, self.centre = expert.channel.prior.penalty, expert.theta["mean"]
        self.log = Log.resumed([votes.task, votes.worker, votes.label], [votes.tasks, votes.workers, votes.classes])
        self.u, self.z = Column(u), Column(expert.z)
        self.votes = Column(votes.whole.worker_offsets.diff().double())  # M
        self.gold = Column(torch.full((votes.N,), -1) if found.gold is None else found.gold)
        self.prior = Column(torch.zeros(votes.N, votes.K))  # N,K: log p(truth | x), up to a constant a row
        self.seen = Column(self.votes.values)
        self.curvature = Column(torch.zeros(votes.M, u.shape[1], u.shape[1], dtype=torch.float64))
        for tasks in torch.split(torch.arange(votes.N), BLOCK):
            own = _Votes(self, tasks)
            seen = found.belief[tasks].clamp_min(torch.finfo(torch.float32).tiny).log()
            self.prior.values[tasks] = seen - own.evidence  # eq. 12, backwards
            _, curvature = own.slopes(found.belief[tasks])
            self.curvature.values[own.who] += curvature
        self.curvature.values.div_(self.votes.values.clamp_min(1)[:, None, None])

    def tell(self, votes: Votes, rows: Rows | None) -> None:
        """New votes, with a row for each task of theirs (none: all are known)."""
        strange = self.log.classes.strange(votes.classes.names)
        if len(strange):
            raise BadInput(f"the votes have a label '{strange[0]}' that the network does not know; fit again")
        new = self.log.tasks.strange(votes.tasks.names.gather(votes.whole.votes_per_task.nonzero()[:, 0].numpy()))
        if len(new) and rows is None:
            raise BadInput(f"task '{new[0]}' is new: give X, a row for each task of the votes, in their order")
        before = self.log.V
        touched, _ = self.log.tell(votes)
        if len(new) and rows is not None:
            place = votes.tasks.codes(pl.Series(self.log.tasks.names[self.z.size :]))
            self._add_tasks(rows, torch.from_numpy(place.to_numpy().astype(np.int64)))
        self._add_workers(len(self.log.workers) - self.u.size)
        who = self.log.column("worker")[before:].long()
        self.votes.values.index_add_(0, who, torch.ones(len(who), dtype=torch.float64))
        self.go_through(touched)

    def go_through(self, tasks: Tensor) -> None:
        """Steps over these tasks, some at a time, with all their votes."""
        for some in torch.split(tasks, TOGETHER):
            self._step(some)
        self.expert.theta = {**self.expert.theta, "workers": self.u.values}
        self.expert.learned_online(self.z.values)

    def _step(self, tasks: Tensor) -> None:
        own = _Votes(self, tasks)
        fresh, who = torch.bincount(own.worker, minlength=len(own.who)), own.who
        slope, curvature = own.slopes(own.belief())
        state = Running(self.curvature.values[who], self.seen.values[who])
        share = 1 - self.pace.keep(state.seen, fresh)  # lambda
        state = state.blended(curvature, fresh, self.pace)
        pull = (self.penalty / self.votes.values[who])[:, None]  # of the prior, a vote
        u = self.u.values[who].double()
        uphill = slope / fresh[:, None] - pull * (u - self.centre)
        bent = state.mean + pull[:, :, None] * torch.eye(u.shape[1], dtype=torch.float64)
        self.u.values[who] = (u + share[:, None] * torch.linalg.solve(bent, uphill)).float()
        self.curvature.values[who], self.seen.values[who] = state.mean, state.seen

    def _add_tasks(self, rows: Rows, place: Tensor) -> None:
        with asking(self.expert):
            for part in torch.split(place, CHUNK):
                x = rows.take(part)
                self.z.add(self.expert.topics_of(x))
                self.prior.add(self.expert.prior_of(x))
        self.gold.add(torch.full((len(place),), -1))

    def _add_workers(self, count: int) -> None:
        """Of whom nothing is known but the crowd they come from."""
        d = len(self.centre)
        require_table(self.u.size + count, d, "the curvature of each worker's expertise")
        self.u.add(self.centre.expand(count, -1))
        self.curvature.add(torch.zeros(count, d, d, dtype=torch.float64))
        for column in (self.seen, self.votes):
            column.add(torch.zeros(count, dtype=torch.float64))

    def consensus(self, before: Consensus) -> Consensus:
        """Everything as things stand, by one E-step over all votes."""
        votes, tasks = self.log.votes(), torch.arange(self.z.size)
        belief = torch.cat([_Votes(self, part).belief() for part in torch.split(tasks, BLOCK)])
        self.expert.learned_online(self.z.values, votes.whole, belief)
        prior = self.prior.values.log_softmax(1)
        gold = None if before.gold is None else self.gold.values.clone()
        return replace(before, votes=votes, belief=belief, evidence=self.expert.evidence(prior), gold=gold)


class _Votes:
    """The votes of some tasks (ascending), and what they say under the expertise as it stands."""

    def __init__(self, stream: Stream, tasks: Tensor) -> None:
        worker, self.label, self.offsets, place = stream.log.grouped(tasks)
        self.stream, self.tasks, self.place = stream, tasks, place.long()
        self.who, self.worker = torch.unique(worker.long(), return_inverse=True)  # R, V
        self.at = stream.z.values[tasks][self.place]  # V,d+1
        self.score = (stream.u.values[worker.long()] * self.at).sum(1)  # V

    @property
    def cell(self) -> Tensor:
        return self.place * self.stream.prior.values.shape[1] + self.label  # V, of a belief

    @property
    def evidence(self) -> Tensor:
        """log p(votes | truth): B,K."""
        K = self.stream.prior.values.shape[1]
        other, gain = said(self.score, K)
        base = segment_sum(other, self.offsets).float()[:, None].repeat(1, K)
        return base.view(-1).index_add_(0, self.cell, gain).view(-1, K)

    def belief(self) -> Tensor:
        """Eq. 12: B,K."""
        logits = self.stream.prior.values[self.tasks] + self.evidence
        return clamp(logits, self.stream.gold.values[self.tasks]).softmax(1)

    def slopes(self, belief: Tensor) -> tuple[Tensor, Tensor]:
        """Sums over each worker's votes: the slope in u (eqs. 16, 17), R,d+1; minus its second derivative R,d+1,d+1."""
        eta, at = torch.sigmoid(self.score), self.at.double()
        error = (belief.reshape(-1)[self.cell] - eta).double()
        slope = scatter_sum(error[:, None] * at, self.worker, len(self.who))
        curvature = at.new_zeros(len(self.who), at.shape[1], at.shape[1])
        for some in torch.split(torch.arange(len(at)), BLOCK):
            weight = (eta * (1 - eta))[some].double()[:, None, None]
            curvature.index_add_(0, self.worker[some], weight * at[some, :, None] * at[some, None, :])
        return slope, curvature
