"""Votes: the data. Three int32 columns sorted by (task, worker, label), and the three axes. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.errors import BadInput, unknown
from voxpop.numerics.segments import offsets_of
from voxpop.votes.axis import Axis, Names, as_names, as_text
from voxpop.votes.batch import Batch

Repeats = Literal["keep", "drop", "error"]
Missing = Literal["error", "drop"]
LISTED = 1000  # problems that one error lists at most


@dataclass(frozen=True, eq=False)
class Votes:
    """Who said what about which task. Make one with ``from_frame``, ``from_matrix`` or ``from_arrays``."""

    task: Tensor  # V, int32, ascending
    worker: Tensor  # V, int32
    label: Tensor  # V, int32
    tasks: Axis
    workers: Axis
    classes: Axis
    dropped: Mapping[str, int] = field(default_factory=dict)  # why votes were left out -> how many
    known: Mapping[Any, Any] = field(default_factory=dict)  # gold answers that came with the file: task -> label

    # -- making ---------------------------------------------------------------------------------

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        *,
        tasks: Names | None = None,
        workers: Names | None = None,
        classes: Names | None = None,
        ignore: Iterable[Any] = (),
        missing: Missing = "error",
        repeats: Repeats = "keep",
        source: str = "the frame",
    ) -> Votes:
        """Votes of any dataframe that narwhals reads (pandas, polars, arrow, ...), one vote a row.

        An axis that is given is that axis, in its order, and may hold names without votes; one that is
        not is found and sorted. ``ignore`` names labels that are abstentions. ``missing`` says what to
        do with a row without a task, worker or label; ``repeats`` with a second vote of a worker on a
        task ("drop" keeps the label that the worker gave most often there, the first class on a tie).
        """
        native = _eager(frame, source)
        have = native.columns
        absent = [c for c in (task, worker, label) if c not in have]
        if absent:
            raise BadInput(
                *(
                    f"{source} has no column '{c}'; it has {', '.join(map(repr, have)) or 'none'};"
                    " name the columns of task, worker and label"
                    for c in absent
                )
            )
        columns = [as_names(_to_polars(native[c]), c) for c in (task, worker, label)]
        return cls.from_columns(
            *columns,
            tasks=tasks,
            workers=workers,
            classes=classes,
            ignore=ignore,
            missing=missing,
            repeats=repeats,
            source=source,
        )

    @classmethod
    def from_columns(
        cls,
        task: pl.Series,
        worker: pl.Series,
        label: pl.Series,
        *,
        tasks: Names | None = None,
        workers: Names | None = None,
        classes: Names | None = None,
        ignore: Iterable[Any] = (),
        missing: Missing = "error",
        repeats: Repeats = "keep",
        source: str = "the votes",
    ) -> Votes:
        """Votes of three columns of names (polars Categorical takes the least time and memory)."""
        for kind, way, ways in (
            ("missing", missing, ("error", "drop")),
            ("repeats", repeats, ("keep", "drop", "error")),
        ):
            if way not in ways:
                raise unknown(f"way with {kind}", way, ways)
        dropped: dict[str, int] = {}
        gaps = pl.select(task.is_null() | worker.is_null() | label.is_null()).to_series()
        if gaps.any():
            if missing == "error":
                raise BadInput(*_gap_messages(task, worker, label, gaps, source))
            dropped["missing"] = int(gaps.sum())
        abstentions = [as_text(as_names([i], "ignore"))[0] for i in ignore]
        if abstentions:
            away = as_text(label).is_in(abstentions).fill_null(False) & ~gaps
            dropped["ignored"] = int(away.sum())
            gaps = gaps | away
        if gaps.any():
            task, worker, label = task.filter(~gaps), worker.filter(~gaps), label.filter(~gaps)

        axes: list[Axis] = []
        codes: list[np.ndarray[Any, Any]] = []
        for kind, column, given in (("tasks", task, tasks), ("workers", worker, workers), ("classes", label, classes)):
            axis = Axis.found_in(kind, column) if given is None else Axis(kind, given)
            code = axis.codes(column)
            if code.null_count():
                raise BadInput(*_off_axis(kind, column, code, axis, source, rows=(~gaps).arg_true()))
            axes.append(axis)
            codes.append(code.to_numpy())
        return cls._sorted(codes, axes, repeats, dropped, source)

    @classmethod
    def from_arrays(
        cls,
        task: Any,
        worker: Any,
        label: Any,
        *,
        tasks: Names | None = None,
        workers: Names | None = None,
        classes: Names | None = None,
        ignore: Iterable[Any] = (),
        missing: Missing = "error",
        repeats: Repeats = "keep",
    ) -> Votes:
        """Votes of three arrays of equal length. Integer arrays name tasks, workers and classes by their integers."""
        arrays = [_column(a, name) for a, name in ((task, "task"), (worker, "worker"), (label, "label"))]
        if len({len(a) for a in arrays}) != 1:
            raise BadInput(
                f"task, worker and label have {', '.join(str(len(a)) for a in arrays)} rows; give as many of each"
            )
        return cls.from_columns(
            *arrays,
            tasks=tasks,
            workers=workers,
            classes=classes,
            ignore=ignore,
            missing=missing,
            repeats=repeats,
            source="the arrays",
        )

    @classmethod
    def from_matrix(cls, matrix: Any, *, classes: Names | None = None, repeats: Repeats = "keep") -> Votes:
        """Votes of an N x M matrix (-1, NaN or None for no vote). Tasks and workers are 0..N-1, 0..M-1.

        Integer labels make the classes 0..K-1 where all of them lie there with K - 1 the largest.
        """
        values = np.asarray(matrix)
        if values.ndim != 2:
            raise BadInput(f"the matrix has {values.ndim} axes; rows are tasks and columns workers")
        if values.dtype == object or values.dtype.kind in "US":
            text = pl.Series("label", values.ravel().tolist(), strict=False)
            label = as_names(text, "label")
            voted = (label.is_not_null() & (as_text(label) != "-1")).fill_null(False)
        else:
            flat = values.ravel()
            is_vote = (
                ~np.isnan(flat) & (flat != -1)
                if flat.dtype.kind == "f"
                else (flat != -1 if flat.dtype.kind == "i" else np.ones(flat.shape, bool))
            )
            label, voted = as_names(pl.Series("label", flat), "label"), pl.Series(is_vote)
        place = np.flatnonzero(voted.to_numpy())
        columns = values.shape[1]
        label = label.filter(voted)
        if classes is None and label.dtype.is_integer() and len(label) and int(label.to_numpy().min()) >= 0:
            classes = Axis.counting("classes", int(label.to_numpy().max()) + 1).names
        return cls.from_columns(
            pl.Series(place // max(columns, 1)),
            pl.Series(place % max(columns, 1)),
            label,
            tasks=pl.int_range(0, values.shape[0], eager=True),
            workers=pl.int_range(0, columns, eager=True),
            classes=classes,
            repeats=repeats,
            source="the matrix",
        )

    @classmethod
    def _sorted(
        cls, codes: list[np.ndarray[Any, Any]], axes: list[Axis], repeats: Repeats, dropped: dict[str, int], source: str
    ) -> Votes:
        """Sort by (task, worker, label) through one combined key, which then says the columns themselves."""
        N, M, K = (max(len(a), 1) for a in axes)
        if N * M * K < 1 << 62:
            key = codes[0].astype(np.int64)
            key *= M
            key += codes[1]
            key *= K
            key += codes[2]
            if key.size and np.any(key[1:] < key[:-1]):
                key.sort()
            label = (key % K).astype(np.int32)
            key //= K
            task = (key // M).astype(np.int32)
            key %= M
            worker = key.astype(np.int32)
        else:
            order = np.lexsort(codes[::-1])
            task, worker, label = (c[order].astype(np.int32) for c in codes)
        tasks, workers, classes = axes
        made = cls(
            torch.from_numpy(task),
            torch.from_numpy(worker),
            torch.from_numpy(label),
            tasks=tasks,
            workers=workers,
            classes=classes,
            dropped=dropped,
        )
        return made if repeats == "keep" else made._without_repeats(repeats, source)

    def _without_repeats(self, repeats: Repeats, source: str) -> Votes:
        frame = pl.DataFrame({"task": self.task.numpy(), "worker": self.worker.numpy(), "label": self.label.numpy()})
        twice = frame.select("task", "worker").is_duplicated()
        if not twice.any():
            return self
        if repeats == "error":
            found = frame.filter(twice).select("task", "worker").unique(maintain_order=True)
            raise BadInput(
                *(
                    f"{source}: worker '{self.workers[w]}' voted twice or more on task '{self.tasks[t]}'; keep or drop"
                    " repeats"
                    for t, w in found.head(1000).iter_rows()
                )
            )
        kept = (
            frame.group_by("task", "worker", "label")
            .len()
            .sort(["task", "worker", "len", "label"], descending=[False, False, True, False])
            .unique(["task", "worker"], keep="first", maintain_order=True)
        )
        task, worker, label = (torch.from_numpy(kept[c].to_numpy().copy()) for c in ("task", "worker", "label"))
        dropped = {**self.dropped, "repeated": len(frame) - len(kept)}
        return replace(self, task=task, worker=worker, label=label, dropped=dropped)

    # -- asking ---------------------------------------------------------------------------------

    @property
    def N(self) -> int:
        return len(self.tasks)

    @property
    def M(self) -> int:
        return len(self.workers)

    @property
    def K(self) -> int:
        return len(self.classes)

    @property
    def V(self) -> int:
        return self.task.numel()

    def __len__(self) -> int:
        return self.V

    def __repr__(self) -> str:
        return f"<Votes: {self.V} votes of {self.M} workers on {self.N} tasks, {self.K} classes>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Votes)
            and (self.tasks, self.workers, self.classes) == (other.tasks, other.workers, other.classes)
            and all(torch.equal(getattr(self, c), getattr(other, c)) for c in ("task", "worker", "label"))
        )

    __hash__ = object.__hash__

    @cached_property
    def offsets(self) -> Tensor:
        """The votes of task i are ``offsets[i]:offsets[i + 1]``."""
        return offsets_of(torch.bincount(self.task, minlength=self.N)).int()  # N+1

    @cached_property
    def whole(self) -> Batch:
        """All tasks as one batch."""
        return Batch(self.task, self.worker, self.label, self.offsets, self.M, self.K, self.N, self.V)

    def batch(self, rows: Tensor) -> Batch:
        """Some tasks with their votes, in the order of ``rows``."""
        first = self.offsets[rows].long()  # B
        counts = self.offsets[rows + 1].long() - first  # B
        task = torch.repeat_interleave(torch.arange(rows.numel()), counts)  # V of the batch
        local = offsets_of(counts)
        place = torch.arange(task.numel()) - local[:-1][task] + first[task]
        return Batch(
            task.int(), self.worker[place], self.label[place], local.int(), self.M, self.K, self.N, self.V, rows
        )

    @cached_property
    def repeated(self) -> int:
        """How many votes repeat a (task, worker) that already voted."""
        same = (self.task[1:] == self.task[:-1]) & (self.worker[1:] == self.worker[:-1])
        return int(same.sum())

    def select(self, keep: Tensor) -> Votes:
        """The votes where ``keep`` (V, bool) is true, on the same axes."""
        return Votes(
            self.task[keep],
            self.worker[keep],
            self.label[keep],
            self.tasks,
            self.workers,
            self.classes,
            self.dropped,
            self.known,
        )

    def to_frame(self) -> pl.DataFrame:
        """One row a vote, with names."""
        return pl.DataFrame(
            {
                "task": self.tasks.names.gather(self.task.numpy()),
                "worker": self.workers.names.gather(self.worker.numpy()),
                "label": self.classes.names.gather(self.label.numpy()),
            }
        )

    def gold(self, gold: Any) -> Tensor | None:
        """Known truths as class positions (N, -1 where unknown) from a mapping task -> label or a frame of both."""
        if gold is None:
            return None
        names, labels = _gold_columns(gold)
        task, label = self.tasks.codes(names), self.classes.codes(labels)
        problems = [
            f"gold for an unknown task '{n}'; no such task in the votes"
            for n in names.filter(task.is_null()).head(1000)
        ]
        problems += [
            f"gold label '{n}' is not one of the classes {', '.join(map(str, self.classes.names.head(20)))}"
            for n in labels.filter(label.is_null()).unique(maintain_order=True).head(1000)
        ]
        if problems:
            raise BadInput(*problems)
        return self._placed(task, label, "gold")

    def truth(self, truth: Any) -> Tensor | None:
        """As ``gold``, to evaluate only: other tasks are left out, a label that is no class here is K, a miss."""
        if truth is None:
            return None
        names, labels = _gold_columns(truth)
        task = self.tasks.codes(names)
        label = self.classes.codes(labels).fill_null(self.K)
        if len(task) and task.null_count() == len(task):
            raise BadInput(f"none of the {len(task):,} tasks of known truth is among the votes; do the names match?")
        here = task.is_not_null() & labels.is_not_null()
        return self._placed(task.filter(here), label.filter(here), "the truth")

    def _placed(self, task: pl.Series, label: pl.Series, what: str) -> Tensor:
        """Class positions in the order of the tasks, -1 elsewhere: N."""
        known = pl.DataFrame({"task": task, "label": label}).unique()
        if known["task"].n_unique() != len(known):
            twice = known.filter(known["task"].is_duplicated())["task"][0]
            raise BadInput(f"{what} gives task '{self.tasks[twice]}' two different labels")
        out = torch.full((self.N,), -1, dtype=torch.int64)
        place = torch.from_numpy(known["task"].to_numpy().astype(np.int64))
        out[place] = torch.from_numpy(known["label"].to_numpy().astype(np.int64))
        return out


def _gold_columns(gold: Any) -> tuple[pl.Series, pl.Series]:
    if isinstance(gold, Mapping):
        return as_names(list(gold.keys()), "task"), as_names(list(gold.values()), "label")
    frame = _eager(gold, "gold")
    absent = [c for c in ("task", "label") if c not in frame.columns]
    if absent:
        raise BadInput(f"gold has no column '{absent[0]}'; it has {', '.join(frame.columns)}")
    return as_names(_to_polars(frame["task"]), "task"), as_names(_to_polars(frame["label"]), "label")


def _eager(frame: Any, what: str) -> nw.DataFrame[Any]:
    try:
        native = nw.from_native(frame)
    except TypeError:
        raise BadInput(f"{what} is a {type(frame).__name__}, not a dataframe") from None
    return native.collect() if isinstance(native, nw.LazyFrame) else native


def _to_polars(series: Any) -> pl.Series:
    return series.to_polars()  # type: ignore[no-any-return]


def _column(values: Any, name: str) -> pl.Series:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.ndim != 1:
        raise BadInput(f"{name} has {array.ndim} axes; give one value a vote")
    return as_names(pl.Series(name, array.tolist() if array.dtype == object else array), name)


def _gap_messages(task: pl.Series, worker: pl.Series, label: pl.Series, gaps: pl.Series, source: str) -> list[str]:
    out = []
    for row in gaps.arg_true().head(LISTED):
        lacking = [n for n, c in (("task", task), ("worker", worker), ("label", label)) if c[row] is None]
        out.append(
            f"{source}, row {row + 1}: no {' and no '.join(lacking)}; fill it in, or drop such rows with missing='drop'"
        )
    return out


def _off_axis(kind: str, column: pl.Series, code: pl.Series, axis: Axis, source: str, rows: pl.Series) -> list[str]:
    """``rows`` says which row of the source each entry of the column was."""
    shown = ", ".join(map(str, axis.names.head(8))) + (", ..." if len(axis) > 8 else "")
    places = code.is_null().arg_true().head(LISTED)
    return [f"{source}, row {rows[i] + 1}: '{column[i]}' is not one of the given {kind} ({shown})" for i in places]
