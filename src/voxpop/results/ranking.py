"""How good a ranking of two classes is.

Li, Huang and Chen, "Crowdsourcing Aggregation with Deep Bayesian Learning", section 4: classes may be so unequal that
no threshold means anything, so the k tasks that rank highest are called positive, k the number of true positives.
"""

from __future__ import annotations

import torch
from torch import Tensor

from voxpop.errors import BadInput


def rank_scores(score: Tensor, truth: Tensor) -> dict[str, float]:
    """accuracy, f1 and auc of the k highest scores (N) against a truth of 0 and 1 (N), k the number of ones.

    Equal scores are in no order: what is reported is the mean over all orders of them.
    """
    if score.shape != truth.shape or score.dim() != 1 or bool(((truth != 0) & (truth != 1)).any()):
        raise BadInput("give one score, and one truth of 0 or 1, for each task")
    positive = truth == 1
    k, size = int(positive.sum()), truth.numel()
    if not 0 < k < size:
        raise BadInput("all tasks are of one class: there is nothing to rank")
    cut = score.topk(k).values[-1]
    above, tied = score > cut, score == cut
    chance = (k - int(above.sum())) / int(tied.sum())  # of a task at the cut to be called positive
    hits = int((above & positive).sum()) + chance * int((tied & positive).sum())
    return {"accuracy": (size - 2 * (k - hits)) / size, "f1": hits / k, "auc": _auc(score, positive)}


def _auc(score: Tensor, positive: Tensor) -> float:
    """The chance that a positive outranks a negative, a tie being half."""
    _, place, counts = torch.unique(score, return_inverse=True, return_counts=True)
    below = counts.cumsum(0) - counts  # of each value
    middle = below.double() + (counts.double() + 1) / 2  # mean rank
    k = int(positive.sum())
    return float((middle[place[positive]].sum() - k * (k + 1) / 2) / (k * (score.numel() - k)))
