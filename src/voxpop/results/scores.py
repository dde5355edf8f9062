"""How good an answer is when the truth is known: it only evaluates, it never reaches inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from sklearn.metrics import f1_score
from torch import Tensor

from voxpop.errors import BadInput

if TYPE_CHECKING:
    from voxpop.results.consensus import Consensus

BINS = 10


def evaluate(found: Consensus, truth: Any) -> dict[str, float]:
    """tasks, accuracy, f1 (macro), log_loss, confidence (mean), calibration_error.

    Truths of other tasks are left out; a truth that no vote and no class names is a miss.
    """
    known = found.votes.truth(truth)
    if known is None or not bool((known >= 0).any()):
        raise BadInput("no task has a known truth: nothing to evaluate")
    rows = torch.nonzero(known >= 0)[:, 0]
    return scored((found.belief if found.sure is None else found.sure)[rows], found.label[rows].long(), known[rows])


def scored(sure_of: Tensor, label: Tensor, right: Tensor) -> dict[str, float]:
    """The scores of ``evaluate`` from p(class) (T,K), labels (T) and truths (T; K for one that is no class)."""
    sure = sure_of.gather(1, label[:, None])[:, 0].double()
    padded = torch.nn.functional.pad(sure_of.double(), (0, 1))  # T,K+1: no belief in what is no class
    at_truth = padded.gather(1, right[:, None])[:, 0]
    hit = (label == right).double()
    return {
        "tasks": float(right.numel()),
        "accuracy": float(hit.mean()),
        "f1": float(f1_score(right.numpy(), label.numpy(), average="macro", zero_division=0)),
        "log_loss": float(-at_truth.clamp_min(1e-12).log().mean()),
        "confidence": float(sure.mean()),
        "calibration_error": calibration_error(sure, hit),
    }


def calibration_bins(sure: Tensor, hit: Tensor, bins: int = BINS) -> list[tuple[float, float, int]]:
    """(mean confidence, share right, tasks) of bins with equally many tasks."""
    order = torch.argsort(sure)
    pieces = [p for p in torch.tensor_split(order, min(bins, order.numel())) if p.numel()]
    return [(float(sure[p].mean()), float(hit[p].mean()), p.numel()) for p in pieces]


def calibration_error(sure: Tensor, hit: Tensor, bins: int = BINS) -> float:
    """Mean distance between confidence and share right over the bins, weighted by their tasks."""
    found = calibration_bins(sure, hit, bins)
    total = sum(n for _, _, n in found)
    return sum(abs(c - a) * n for c, a, n in found) / max(total, 1)
