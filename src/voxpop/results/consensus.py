"""Consensus: the immutable result of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

import polars as pl
from torch import Tensor

from voxpop.channels.base import table_fits
from voxpop.engines.loop import Info
from voxpop.engines.outcome import Status
from voxpop.errors import TooLarge
from voxpop.numerics.simplex import first_best
from voxpop.results.evidence import Evidence
from voxpop.results.explain import class_columns, explain
from voxpop.results.workers import counted_table, worker_frame
from voxpop.votes import Votes


@dataclass(frozen=True, eq=False)
class Consensus:
    """What is true, how sure that is, and who can be trusted. Frames carry names, tensors the votes' order."""

    votes: Votes
    belief: Tensor  # N,K; rows sum to one
    method: str
    status: Status
    history: tuple[Info, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    sure: Tensor | None = None  # N,K: what confidence is read from, where it is not the belief itself
    fitted_table: Tensor | None = None  # M,K,K as [worker, truth, label]
    accuracy_samples: Tensor | None = None  # T,M
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()  # in words: what was chosen and why, what to beware of
    gold: Tensor | None = None  # N, the class that was given as certain, or -1

    # -- truth ----------------------------------------------------------------------------------

    @cached_property
    def _best(self) -> tuple[Tensor, Tensor]:
        return first_best(self.belief)

    @property
    def label(self) -> Tensor:
        """Class position of each task (N, int32); among beliefs within 1e-5 the first class."""
        return self._best[0]

    @property
    def ties(self) -> int:
        """How many tasks were ties."""
        return int(self._best[1].sum())

    @cached_property
    def certainty(self) -> Tensor:
        """Confidence in each task's label: N."""
        sure = self.belief if self.sure is None else self.sure
        return sure.gather(1, self.label[:, None].long())[:, 0]

    @property
    def labels(self) -> pl.DataFrame:
        """task, label."""
        return self.to_frame().select("task", "label")

    @property
    def confidence(self) -> pl.DataFrame:
        """task, confidence: the probability that the label is right."""
        return self.to_frame().select("task", "confidence")

    def to_frame(self, beliefs: bool = False) -> pl.DataFrame:
        """task, label, confidence, votes, tie; with ``beliefs`` a column for each class as well."""
        frame = pl.DataFrame(
            {
                "task": self.votes.tasks.names,
                "label": self.votes.classes.names.gather(self.label.numpy()),
                "confidence": self.certainty.numpy(),
                "votes": self.votes.whole.votes_per_task.numpy(),
                "tie": self._best[1].numpy(),
            }
        )
        if beliefs:
            columns = zip(self.votes.classes, self.belief.unbind(1), strict=True)
            frame = frame.with_columns(**{f"p({name})": pl.Series(column.numpy()) for name, column in columns})
        return frame

    def doubtful(self, count: int = 10) -> pl.DataFrame:
        """The tasks with the least confidence."""
        return self.to_frame().sort("confidence", "task").head(count)

    # -- workers --------------------------------------------------------------------------------

    @cached_property
    def table(self) -> Tensor | None:
        """Confusion matrices M,K,K as [worker, truth, label]; None where they would not fit in memory."""
        if self.fitted_table is not None:
            return self.fitted_table
        return counted_table(self.votes.whole, self.belief) if table_fits(self.votes.M, self.votes.K) else None

    @cached_property
    def workers(self) -> pl.DataFrame:
        """worker, votes, accuracy with its 90% credible interval, information (bits a vote), better than chance."""
        sure = self.belief if self.sure is None else self.sure
        return worker_frame(self.votes, self.belief, sure, self.table, self.accuracy_samples)

    def confusion(self, worker: Any) -> pl.DataFrame:
        """The confusion matrix of one worker: a row for each truth, a column for each label."""
        if self.table is None:
            raise TooLarge("the confusion matrices of so many workers and classes do not fit in memory")
        matrix = self.table[self.votes.workers.position(worker)]  # K,K
        frame = pl.DataFrame({"truth": self.votes.classes.names})
        names = class_columns(self.votes.classes, frame.columns)
        return frame.with_columns([pl.Series(n, c.numpy()) for n, c in zip(names, matrix.unbind(1), strict=True)])

    # -- why ------------------------------------------------------------------------------------

    def explain(self, task: Any) -> pl.DataFrame:
        """Why this label: for each vote, and for the prior, the log-odds of every class against the label found.

        Columns: worker, vote, how, then one a class: how many nats the vote speaks for that class
        rather than for the label found. Where the method adds evidence up ("adds up"), the column sums are
        the log-odds of the belief. Where it does not ("left out"), a number is the change of the log-odds
        when this vote is left out and the workers are judged as before; the last row is what remains.
        """
        return explain(self, self.votes.tasks.position(task))

    # -- writing and showing --------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file (safetensors with a JSON header, no pickle); ``vp.load`` reads it back."""
        from voxpop.results.store import save

        save(self, path)

    def evaluate(self, truth: Any) -> dict[str, float]:
        """Accuracy, macro F1, log loss and calibration against known truths (task -> label, or a frame)."""
        from voxpop.results.scores import evaluate

        return evaluate(self, truth)

    def __repr__(self) -> str:
        return f"<Consensus of {self.method}: {self.votes.N} tasks, {self.votes.M} workers, {self.status.value}>"

    def _repr_html_(self) -> str:
        from voxpop.results.html import card

        return card(self)
