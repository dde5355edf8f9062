"""How good a classifier is on tasks whose truth is known: it only evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import torch

from voxpop.errors import BadInput
from voxpop.results.ranking import rank_scores
from voxpop.results.scores import scored
from voxpop.votes import Axis

if TYPE_CHECKING:
    from voxpop.learn.learner import Learner


def evaluate(learner: Learner, X: Any, tasks: pl.Series, labels: pl.DataFrame) -> dict[str, float]:
    """tasks, accuracy, f1 (macro), log_loss, confidence, calibration_error; of two classes the auc as well.

    ``labels``: columns task and label. Tasks that either side does not have are left out; a label that is no class
    of the learner is a miss.
    """
    classes = learner.axes_[1]
    place = Axis("tasks", tasks).codes(labels["task"])
    here = labels.with_columns(place=place, truth=classes.codes(labels["label"]).fill_null(len(classes)))
    here = here.drop_nulls("place").sort("place")
    if here.is_empty():
        raise BadInput("no task has a known truth: nothing to evaluate")
    p = torch.from_numpy(learner.predict_proba(X))[
        torch.from_numpy(here["place"].cast(pl.Int64).to_numpy().copy())
    ]  # T,K
    right = torch.from_numpy(here["truth"].cast(pl.Int64).to_numpy().copy())
    scores = scored(p, p.argmax(1), right)
    if len(classes) == 2 and bool((right == 0).any() and (right == 1).any() and (right < 2).all()):
        scores["auc"] = rank_scores(p[:, 1], right)["auc"]
    return scores
