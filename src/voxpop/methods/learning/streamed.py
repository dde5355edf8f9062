"""Learners of expertise that take votes which come later, without a fit of everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import torch

from voxpop.engines.online import Pace
from voxpop.errors import BadInput
from voxpop.learn.data import Data
from voxpop.learn.expertise import Expert
from voxpop.learn.learner import Learner
from voxpop.learn.rows import Rows
from voxpop.learn.streaming import Stream
from voxpop.learn.targets import votes_of
from voxpop.results import Consensus
from voxpop.votes import Axis, Votes


class Streamed(Learner):
    """What it has learned is an ``Expert``."""

    averages: ClassVar[bool] = False  # it asks and streams by one network, whose draws are averaged already

    _found: Consensus
    _stream: Stream | None
    _behind: bool  # whether there are votes that the consensus does not know yet

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn on from new votes, in time proportional to them (and those that their tasks have already).

        The expertise of their workers is learned, by stepwise EM; the network and the topics stay as ``fit`` left them,
        and learn from all votes when ``fit`` is called again. ``X``: a row for each task of the votes, in their order;
        None, where all of these tasks are known. New tasks and workers may appear, new classes not. Votes without names
        (a matrix) are on new tasks. The first call is ``fit``; ``classes`` is what scikit-learn passes along.
        """
        if not hasattr(self, "objective_"):
            return self.fit(X, y)
        rows = None if X is None else self._rows_to_ask(X)
        votes = y if isinstance(y, Votes) else self._on_new_tasks(rows, y)
        if rows is not None:
            Data(rows, votes)  # as many rows as tasks
        with torch.no_grad():
            self._streaming.tell(votes, rows)
        if len(self._streaming.log.workers) > len(self.axes_[0]):
            self.axes_ = (self._streaming.log.workers.axis, self.axes_[1])
        self._behind = True
        return self

    def _on_new_tasks(self, rows: Rows | None, y: Any) -> Votes:
        """What has no names counts its tasks on."""
        names = self._streaming.log.tasks.axis.names
        if rows is None or not names.dtype.is_integer():
            raise BadInput("give Votes: their names tell which tasks are known already")
        votes, first = votes_of(y, rows), int(names.max()) + 1  # type: ignore[arg-type]
        return replace(votes, tasks=Axis("tasks", range(first, first + votes.N)))

    def refine(self, passes: int = 1) -> Self:
        """Go through all votes again, in time proportional to them; it nears a full fit with this network."""
        with torch.no_grad():
            for _ in range(passes):
                self._streaming.go_through(torch.arange(len(self._streaming.log.tasks)))
        self._behind = True
        return self

    @property
    def _streaming(self) -> Stream:
        if self._stream is None:
            self._stream = Stream(self._expert, self.consensus_, Pace())
        return self._stream

    @property
    def consensus_(self) -> Consensus:
        """Of ``fit``; with votes that came later, by one E-step over all votes when it is asked for."""
        if "_found" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit(X, votes) first")
        if self._behind and self._stream is not None:
            self._found = self._stream.consensus(self._found)
            self._behind = False
        return self._found

    @consensus_.setter
    def consensus_(self, found: Consensus) -> None:
        self._found, self._stream, self._behind = found, None, False

    @property
    def _expert(self) -> Expert:
        found = self._objectives[0]
        assert isinstance(found, Expert)
        return found
