"""Votes that keep coming: columns that grow, with the votes of any task at hand. A vote told twice is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.errors import BadInput, unknown
from voxpop.numerics.segments import offsets_of
from voxpop.votes.axis import SINGULAR, Axis, as_text
from voxpop.votes.votes import Votes

KINDS = ("tasks", "workers", "classes")


class Column:
    """A tensor with room behind it: adding takes time in proportion to what is added, on average."""

    def __init__(self, values: Tensor) -> None:
        self._room, self.size = values.clone(), len(values)

    @property
    def values(self) -> Tensor:
        return self._room[: self.size]

    def add(self, more: Tensor) -> None:
        size = self.size + len(more)
        if size > len(self._room):
            wider = self._room.new_empty(max(size, 2 * len(self._room)), *self._room.shape[1:])
            wider[: self.size] = self.values
            self._room = wider
        self._room[self.size : size] = more
        self.size = size


class Names:
    """An axis that grows: new names come last."""

    def __init__(self, kind: str, names: Iterable[Any] = ()) -> None:
        self.kind, self.names = kind, list(names)
        self._place = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    @property
    def axis(self) -> Axis:
        return Axis(self.kind, self.names) if self.names else Axis.counting(self.kind, 0)

    def places(self, names: pl.Series) -> Tensor:
        """The position of each of these known names."""
        try:
            return torch.tensor([self._place[name] for name in self._alike(names).to_list()], dtype=torch.int64)
        except KeyError as error:
            raise unknown(SINGULAR[self.kind], error.args[0], self.names[:100_000]) from None

    def strange(self, names: pl.Series) -> pl.Series:
        """Those of these names that are not here."""
        names = self._alike(names)
        return names.filter(pl.Series([name not in self._place for name in names.to_list()], dtype=pl.Boolean))

    def _alike(self, names: pl.Series) -> pl.Series:
        """Names in the type of those that are here: integers meet text as text, and not the other way round."""
        if not self.names or not len(names):
            return names
        known = pl.Series(self.names[:1])
        if known.dtype == pl.String:
            return as_text(names)
        if known.dtype.is_integer() != names.dtype.is_integer():
            raise BadInput(f"the {self.kind} were {known.dtype}, and now there is '{names[0]}'; make them alike")
        return names

    def codes(self, names: pl.Series) -> np.ndarray[Any, Any]:
        """The position of each name; unknown ones are added, in their order."""
        names = self._alike(names)
        place, known_names = self._place, self.names
        out = np.empty(len(names), np.int64)
        for i, name in enumerate(names.to_list()):
            found = place.get(name)
            if found is None:
                found = place[name] = len(known_names)
                known_names.append(name)
            out[i] = found
        return out


class Log:
    """All votes so far, in the order in which they came, on axes that grow."""

    def __init__(self) -> None:
        self.tasks, self.workers, self.classes = (Names(kind) for kind in KINDS)
        none = torch.zeros(0, dtype=torch.int32)
        self._columns = tuple(Column(none) for _ in range(4))  # task, worker, label, the vote before on the same task
        self._last = Column(none)  # of each task: its last vote, or -1

    @property
    def V(self) -> int:
        return self._columns[0].size

    def column(self, name: str) -> Tensor:
        return self._columns[("task", "worker", "label").index(name)].values

    def tell(self, votes: Votes) -> tuple[Tensor, int]:
        """Take votes in: the tasks that have new ones, and how many were known already.

        Known is the same label of the same worker on the same task.
        """
        axes = ((votes.tasks, votes.task), (votes.workers, votes.worker), (votes.classes, votes.label))
        own = (self.tasks, self.workers, self.classes)
        columns = [_onto(names, axis, code.numpy()) for names, (axis, code) in zip(own, axes, strict=True)]
        self._last.add(torch.full((len(self.tasks) - self._last.size,), -1, dtype=torch.int32))
        columns = [c[self._new(columns)] for c in columns]
        if len(columns[0]):
            self._append([torch.from_numpy(c.astype(np.int32)) for c in columns])
        return torch.from_numpy(np.unique(columns[0])), votes.V - len(columns[0])

    def _new(self, columns: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Which of the votes are not here yet: positions, sorted by task."""
        task, worker, label = columns
        M, K = len(self.workers), len(self.classes)
        key = (task * M + worker) * K + label
        key, first = np.unique(key, return_index=True)
        had = self.of_tasks(torch.from_numpy(np.unique(task)))
        old = [self.column(name)[had].numpy().astype(np.int64) for name in ("task", "worker", "label")]
        fresh = ~np.isin(key, (old[0] * M + old[1]) * K + old[2])
        return first[fresh]

    def _append(self, columns: list[Tensor]) -> None:
        task = columns[0].long()  # ascending
        number = torch.arange(self.V, self.V + len(task), dtype=torch.int32)
        again = torch.zeros(len(task), dtype=torch.bool)
        again[1:] = task[1:] == task[:-1]
        before = torch.where(again, number - 1, self._last.values[task])
        for column, values in zip(self._columns, (*columns, before), strict=True):
            column.add(values)
        ends = torch.ones(len(task), dtype=torch.bool)
        ends[:-1] = ~again[1:]
        self._last.values[task[ends]] = number[ends]

    def of_tasks(self, tasks: Tensor) -> Tensor:
        """All votes of these tasks: their numbers, in no order."""
        before, found = self._columns[3].values, []
        vote = self._last.values[tasks]
        while len(vote := vote[vote >= 0]):
            found.append(vote.long())
            vote = before[vote.long()]
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.int64)

    def grouped(self, tasks: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Worker and label of the votes of these tasks (ascending), in order; where tasks begin; each vote's place."""
        votes = self.of_tasks(tasks)
        task = self.column("task")[votes].long()
        order = torch.argsort(task * self.V + votes)
        place = torch.searchsorted(tasks, task[order])
        offsets = offsets_of(torch.bincount(place, minlength=len(tasks))).int()
        votes = votes[order]
        return self.column("worker")[votes], self.column("label")[votes], offsets, place.int()

    def votes(self) -> Votes:
        """Everything as Votes, on the axes as they grew."""
        key = self.column("task").long() * max(len(self.workers), 1) + self.column("worker")
        order = torch.argsort(key * max(len(self.classes), 1) + self.column("label"))
        task, worker, label = (self.column(name)[order] for name in ("task", "worker", "label"))
        return Votes(task, worker, label, self.tasks.axis, self.workers.axis, self.classes.axis)

    @classmethod
    def resumed(cls, columns: Sequence[Tensor], axes: Sequence[Axis]) -> Log:
        """The log with these columns (task, worker, label) and axes, as it was."""
        log = cls()
        task, worker, label = columns
        log.tasks, log.workers, log.classes = (Names(axis.kind, axis.names.to_list()) for axis in axes)
        order = torch.argsort(task, stable=True)
        before = torch.full_like(task, -1)
        again = task[order][1:] == task[order][:-1]
        before[order[1:][again]] = order[:-1][again].int()
        log._columns = tuple(Column(values) for values in (task, worker, label, before))
        log._last = Column(torch.full((len(log.tasks),), -1, dtype=torch.int32))
        ends = torch.cat([~again, torch.ones(min(len(task), 1), dtype=torch.bool)])
        log._last.values[task[order[ends]].long()] = order[ends].int()
        return log


def _onto(names: Names, axis: Axis, code: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Positions on a growing axis; of a given axis only the names that occur are looked at. Classes all count."""
    if names.kind == "classes":
        return np.asarray(names.codes(axis.names)[code])
    used, where = np.unique(code, return_inverse=True)
    return np.asarray(names.codes(axis.names.gather(used))[where])
