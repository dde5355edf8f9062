"""The table behind ``Consensus.explain``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from torch import Tensor

from voxpop.errors import TooLarge
from voxpop.results.evidence import ADDS_UP, LEFT_OUT

if TYPE_CHECKING:
    from voxpop.results.consensus import Consensus


CERTAIN = 1000.0  # nats: what a vote says at most; a probability of zero would say more than can be added up


def explain(found: Consensus, task: int) -> pl.DataFrame:
    """One row a vote, and one for the prior or the rest."""
    votes = found.votes
    batch = votes.batch(torch.tensor([task]))
    own = int(found.label[task])
    belief = found.belief[task]  # K
    total = against(belief.double().log()[None], own)[0]  # K
    if found.evidence is None:
        raise TooLarge(
            "so many workers and classes that their confusion matrices were not kept: nothing to explain with"
        )
    said = found.evidence.of_votes(batch, int(votes.offsets[task]), belief)
    how = ADDS_UP if found.evidence.adds_up else LEFT_OUT
    rows = against(said.double(), own).clamp(-CERTAIN, CERTAIN)  # v,K
    known = found.gold is not None and int(found.gold[task]) >= 0
    if how == ADDS_UP and not known:
        prior, name = found.evidence.prior_of(task)
        last = against(prior[None].double(), own)[0]
    else:
        last, name = total - rows.sum(0), "(gold)" if known else "(rest)"
    frame = pl.DataFrame(
        {
            "worker": [str(votes.workers[w]) for w in batch.worker] + [name],
            "vote": [str(votes.classes[c]) for c in batch.label] + [None],
            "how": [how] * (batch.V + 1),
        }
    )
    columns = torch.cat([rows, last[None]]).unbind(1)
    names = class_columns(votes.classes, frame.columns)
    return frame.with_columns([pl.Series(n, c.numpy()) for n, c in zip(names, columns, strict=True)])


def class_columns(classes: Iterable[Any], taken: Sequence[str]) -> list[str]:
    """A column name for each class: its own, unless a column of that name is there already."""
    return [f"class {name}" if str(name) in taken else str(name) for name in classes]


def against(logs: Tensor, own: int) -> Tensor:
    """Log-odds of every class against the class found; the same -inf on both sides is no odds at all."""
    odds = logs - logs[:, own : own + 1]
    return torch.where(torch.isnan(odds), 0.0, odds)
