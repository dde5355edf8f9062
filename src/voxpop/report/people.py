"""Which workers a report shows, and how many of each sort there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from voxpop.results import Consensus

SHOWN = 40  # rows of the table
RANK: Mapping[str, int] = {"worse": 0, "unclear": 1, "yes": 2}  # what should be seen first


def verdicts(found: Consensus) -> dict[str, int]:
    """How many of those who voted are better than chance (yes), worse, or neither for sure (unclear)."""
    counts = _voted(found)["better_than_chance"].value_counts()
    return dict.fromkeys(RANK, 0) | dict(counts.rows())


def most_interesting(found: Consensus) -> pl.DataFrame:
    """Those not better than chance (half of the room), the least accurate of the others, the busiest; worst on top."""
    ranked = _voted(found).with_columns(rank=pl.col("better_than_chance").replace_strict(RANK, return_dtype=pl.Int32))
    busiest = ranked.sort("votes", "worker", descending=[True, False])
    doubtful = busiest.filter(pl.col("rank") < RANK["yes"])
    good = busiest.filter(pl.col("rank") == RANK["yes"])
    kept = doubtful.head(max(SHOWN // 2, SHOWN - len(good)))
    room = SHOWN - len(kept)
    weakest = good.sort("accuracy", "worker").head(room // 2)
    others = good.join(weakest.select("worker"), on="worker", how="anti", maintain_order="left")
    return pl.concat([kept, weakest, others.head(room - len(weakest))]).sort("rank", "accuracy", "worker")


def telling(found: Consensus) -> list[tuple[str, Any]]:
    """The best, the worst and the busiest worker, each with the words for it; nobody twice."""
    frame = _voted(found)
    picked: list[tuple[str, Any]] = []
    for words, column, down in (
        ("the busiest", "votes", True),
        ("the best", "low", True),
        ("the worst", "high", False),
    ):
        rest = frame.filter(~pl.col("worker").is_in([worker for _, worker in picked]))
        if len(rest):
            picked.append((words, rest.sort(column, "worker", descending=[down, False])["worker"][0]))
    return picked


def _voted(found: Consensus) -> pl.DataFrame:
    return found.workers.filter(pl.col("votes") > 0)
