"""What methods share that learn in which part of the features a worker is good: paper 002 and its baselines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from voxpop.active.ask import Asked, plan, told
from voxpop.active.expertise import Expertise
from voxpop.active.items import Items
from voxpop.channels.own_label import own_belief
from voxpop.errors import BadInput, BadOption
from voxpop.learn.data import Data
from voxpop.learn.expertise import Expert, Reliability
from voxpop.learn.hill import Prior
from voxpop.learn.objective import Objective, asking
from voxpop.learn.places import Places
from voxpop.learn.rows import CHUNK, Rows
from voxpop.learn.targets import on_axes
from voxpop.methods.learning.streamed import Streamed
from voxpop.numerics.segments import scatter_sum
from voxpop.options import above, option, whole
from voxpop.votes import Axis, Votes

LOOKED_AT = 1000  # tasks that expertise is averaged over
WORTH = 100.0  # of one unit of the score, in the unit of the costs, where there are costs


@dataclass(repr=False, eq=False)
class Targeted(Streamed):
    """A worker is right on a task with the chance sigmoid(u_j' z_i); what z_i is, the method says."""

    penalty: float = option(1.0, above(0), "lambda = 1 / variance of the workers' embeddings")
    inner_steps: int = option(
        2, whole(1), "steps of L-BFGS (or passes over the votes) in an M-step of the crowd; the first takes 10"
    )

    draws = 1  # of the network's weights
    climbs = "lbfgs"
    doubts = False  # whether topics are learned on average over what the workers' embeddings may be

    @abstractmethod
    def lift(self, rows: Rows) -> Any:
        """What makes the features of paper 002's x out of rows."""

    def rank(self) -> int | None:
        """Topics d that are learned; None: z = x."""
        return None

    def prior(self) -> Prior:
        return Prior(self.penalty, shared=False)

    def objective(self, net: nn.Module, data: Data) -> Objective:
        def channel(places: Places) -> Reliability:
            return Reliability(
                places, self.rank(), self.prior(), self.inner_steps, self.climbs, seed=self.seed, doubt=self.doubts
            )

        return Expert(net, self.lift(data.rows), data, channel, samples=self.draws, seed=self.seed)

    # -- what was learned of the crowd ------------------------------------------------------------------

    @property
    def reliability_(self) -> pl.DataFrame:
        """How likely each vote is right by its worker and its task alone: task, worker, label, reliability (eq. 6)."""
        votes, expert = self.consensus_.votes, self._expert
        score = Reliability.scores(votes.whole, expert.theta, expert.z)
        return votes.to_frame().with_columns(reliability=pl.Series(torch.sigmoid(score).numpy()))

    @property
    def expertise_(self) -> pl.DataFrame:
        """worker, votes, expertise, right.

        ``expertise`` is the mean chance of being right over the tasks (over 1,000 of them where there are more), the
        same ones for everybody; ``right`` is the share of the worker's own votes that is believed to be right.
        """
        votes, expert = self.consensus_.votes, self._expert
        z = expert.z[torch.linspace(0, votes.N - 1, min(votes.N, LOOKED_AT), dtype=torch.float64).round().long()]
        parts = torch.split(expert.theta["workers"], 4096)
        mean = torch.cat([torch.sigmoid(u @ z.t()).mean(1) for u in parts])
        count = votes.whole.worker_offsets.diff()
        right = scatter_sum(own_belief(votes.whole, self.consensus_.belief), votes.worker, votes.M) / count
        return pl.DataFrame(
            {
                "worker": votes.workers.names,
                "votes": count.numpy(),
                "expertise": mean.numpy(),
                "right": pl.Series(right.numpy()).fill_nan(None),
            }
        )

    def expertise_of(self, workers: Axis, others: Tensor) -> Expertise:
        """The expertise of these workers on the tasks of ``fit``.

        Of whom it saw no vote it knows nothing: they are right with one chance everywhere, which ``others`` (M) says.
        """
        expert, votes = self._expert, self.consensus_.votes
        place = torch.from_numpy(workers.codes(votes.workers.names).cast(pl.Int64).to_numpy().copy())
        seen = votes.whole.worker_offsets.diff() > 0
        u = torch.zeros(len(workers), expert.z.shape[1])
        u[:, -1] = torch.logit(others.float(), torch.finfo(torch.float32).eps)  # the last topic is 1 for every task
        u[place[seen]] = expert.theta["workers"][seen]
        return Expertise(u, expert.z)

    # -- what to ask next -------------------------------------------------------------------------------

    def ask(
        self,
        k: int,
        X: Any = None,
        tasks: Sequence[Any] | None = None,
        workers: Any = None,
        cost: Any = None,
        **how: Any,
    ) -> pl.DataFrame:
        """The next ``k`` votes to ask for: a frame task, worker, score.

        The task by how much the network doubts it (eq. 10), the worker by his expertise on it (eq. 6), both at once.
        ``X``: rows that may be asked about, ``tasks``: their names (none: new tasks, 0, 1, ...); without X the tasks
        of ``fit``. ``workers``: who is available (names, or a frame with cost, capacity, available); ``cost`` of a
        vote, a number or worker -> number. ``how``: capacity, cap_per_task, at_once, outstanding, barred,
        score, worker_score, diversity, worth (100 where there are costs), budget, stop as ``voxpop.active.ask.ask`` has
        them; and ``votes``: all votes so far, where there are others than those of ``fit``, of the same workers.
        """
        return told(self.plan(k, X, tasks, workers, cost, **how))

    def plan(
        self,
        k: int,
        X: Any = None,
        tasks: Sequence[Any] | None = None,
        workers: Any = None,
        cost: Any = None,
        votes: Votes | None = None,
        **how: Any,
    ) -> Asked:
        """As ``ask``, with the reason in words where there are fewer pairs than were wanted."""
        expert = self._expert
        if X is None:
            if votes is not None:
                raise BadOption("votes: what they say of the tasks cannot be told without features; give X too")
            votes = self.consensus_.votes
            items, z = Items(votes.tasks, self.consensus_.belief), expert.z
        else:
            rows = self._rows_to_ask(X)
            if len(rows) == 0:
                raise BadInput("there is nothing to ask about: X has no rows")
            names = Axis.counting("tasks", len(rows)) if tasks is None else Axis("tasks", tasks)
            if len(names) != len(rows):
                raise BadInput(f"tasks names {len(names):,} and X has {len(rows):,} rows; give a name for each row")
            votes = self.consensus_.votes if votes is None else on_axes(votes, rows, *self.axes_)
            votes = others(votes) if tasks is None else votes
            items, z = self._items(rows, names, votes)
        priced = cost is not None or "cost" in getattr(workers, "columns", ())
        return plan(
            k,
            items=items,
            expertise=Expertise(expert.theta["workers"], z),
            votes=votes,
            workers=workers,
            cost=cost,
            **{"worth": WORTH if priced else 1.0, "features": z, "seed": self.seed, **how},
        )

    def _items(self, rows: Rows, names: Axis, votes: Votes) -> tuple[Items, Tensor]:
        """Beliefs about rows, with the votes that tasks of their names have; and where they lie."""
        expert, own = self._expert, moved(votes, names)
        samples, evidence, z = [], [], []
        with asking(expert):
            for part in torch.split(Data(rows, own).positions, CHUNK):
                x, batch = rows.take(part), own.batch(part)
                samples.append(expert.draws(x).exp())  # T,B,K
                evidence.append(expert.evidence_of(x, batch))  # B,K
                z.append(expert.topics_of(x))
        said, drawn = torch.cat(evidence), torch.cat(samples, 1)
        belief = (drawn.mean(0).log() + said).softmax(1)
        return Items(names, belief, drawn, said), torch.cat(z)


def others(votes: Votes) -> Votes:
    """The same votes, on tasks whose names nothing else has."""
    return replace(votes, tasks=Axis("tasks", "of fit: " + votes.tasks.names.cast(pl.String)))


def moved(votes: Votes, tasks: Axis) -> Votes:
    """The votes on these tasks only, workers and classes by their positions."""
    place = tasks.codes(votes.tasks.names).cast(pl.Int64).fill_null(-1).to_numpy()[votes.task.numpy()]  # V
    here = place >= 0
    return Votes.from_arrays(
        place[here],
        votes.worker.numpy()[here],
        votes.label.numpy()[here],
        tasks=range(len(tasks)),
        workers=range(votes.M),
        classes=range(votes.K),
    )
