"""What ``fit`` takes for ``y``: Votes, a matrix of tasks x workers, or the labels of a single annotator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.learn.rows import Rows
from voxpop.votes import Axis, Votes


def votes_of(y: Any, rows: Rows) -> Votes:
    """Votes whose tasks are the rows, in order. A 1-D ``y`` has no code for a missing vote: it is one annotator."""
    if isinstance(y, Votes):
        return y
    if y is None:
        raise BadInput("y is None: requires y to be passed, but the target y is None; give votes, or a matrix of them")
    values = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if values.ndim == 2 and values.shape[1] != 1:
        return Votes.from_matrix(values)
    if values.ndim > 2:
        raise BadInput(f"y has {values.ndim} axes; give Votes, a matrix of tasks x workers, or one label a row")
    return _of_one(values, rows)


def _of_one(values: np.ndarray[Any, Any], rows: Rows) -> Votes:
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    flat = column_or_1d(values, warn=True)
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        raise BadInput(
            "y holds NaN or infinity: one annotator's labels have no code for a missing vote; give a matrix of tasks "
            "x workers, or Votes. Input y contains NaN"
        )
    check_classification_targets(flat)
    if len(flat) != len(rows):
        raise BadInput(
            f"X has {len(rows):,} rows and y {len(flat):,} labels; give one for each row. "
            "Found input variables with inconsistent numbers of samples"
        )
    classes, label = np.unique(flat, return_inverse=True)
    count = torch.arange(len(flat), dtype=torch.int32)
    return Votes(
        count,
        torch.zeros_like(count),
        torch.from_numpy(label.astype(np.int32)),
        Axis.counting("tasks", len(flat)),
        Axis.counting("workers", 1),
        Axis("classes", pl.Series("label", classes)),
    )


def on_axes(y: Any, rows: Rows, workers: Axis, classes: Axis) -> Votes:
    """Votes for rows that were not trained on, on the workers and classes that were."""
    votes = y if isinstance(y, Votes) else votes_of(y, rows)
    if votes.workers == workers and votes.classes == classes:
        return votes
    worker, label = _moved(votes.workers, workers, votes.worker), _moved(votes.classes, classes, votes.label)
    order = torch.argsort(votes.task.long() * len(classes) + label)  # by task and label, then ...
    order = order[torch.argsort(votes.task.long()[order] * len(workers) + worker[order], stable=True)]  # ... worker
    return replace(
        votes, task=votes.task[order], worker=worker[order], label=label[order], workers=workers, classes=classes
    )


def _moved(here: Axis, there: Axis, position: Tensor) -> Tensor:
    """Positions on one axis as those on another: V. All names that occur must be known there."""
    code = there.codes(here.names)
    used = pl.Series(torch.bincount(position.long(), minlength=len(here)).numpy() > 0)
    strange = here.names.filter(code.is_null() & used)
    if len(strange):
        one = "worker" if here.kind == "workers" else "label"
        raise BadInput(
            *(
                f"the votes have a {one} '{name}' that nothing was learned of; learn from these votes too, or leave "
                "them out"
                for name in strange.head(1000)
            )
        )
    return torch.from_numpy(code.fill_null(0).cast(pl.Int32).to_numpy().copy())[position.long()]
