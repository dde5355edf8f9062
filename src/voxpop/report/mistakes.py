"""What the crowd takes for what: its commonest mistakes, as far as the labels found are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from voxpop.results import Consensus

SHOWN = 8


@dataclass(frozen=True)
class Mistake:
    truth: Any
    label: Any
    votes: int
    share: float  # of all votes on tasks of this class


def commonest_mistakes(found: Consensus) -> list[Mistake]:
    """Votes for one class on tasks found to be of another, the most frequent pairs first."""
    votes = found.votes
    truth = found.label[votes.task.long()].long()  # V
    wrong = truth != votes.label
    pair, counts = torch.unique((truth * votes.K + votes.label)[wrong], return_counts=True)
    on_class = torch.bincount(truth, minlength=votes.K)
    best = torch.argsort(counts, descending=True, stable=True)[:SHOWN]
    return [
        Mistake(votes.classes[p // votes.K], votes.classes[p % votes.K], n, n / int(on_class[p // votes.K]))
        for p, n in zip(pair[best].tolist(), counts[best].tolist(), strict=True)
    ]
