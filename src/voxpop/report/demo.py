"""The demonstration: a crowd whose secrets we know, and what voxpop finds out from its votes alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from voxpop.audit.copies import copies
from voxpop.methods.default import consensus
from voxpop.methods.registry import make
from voxpop.report.beside import Beside, Gain, beside, gain
from voxpop.report.digits import Digits, vote_on_digits
from voxpop.report.html import html_report
from voxpop.results import Consensus

if TYPE_CHECKING:
    from rich.console import Group

BESIDE = ("majority-vote", "mace", "dawid-skene")  # the least, one made for spammers, and the classic
TITLE = "What does this digit show? 50 simulated workers, judged by their votes"


@dataclass(frozen=True)
class Judged:
    """What voxpop says of all planted workers of one kind."""

    kind: str
    workers: int
    votes: int
    accuracy: float  # mean, as simulated
    judged: float  # mean, as found
    better: int  # how many are judged better than chance
    unclear: int
    worse: int

    @property
    def flagged(self) -> int:
        return self.unclear + self.worse


@dataclass(frozen=True)
class Pair:
    """Two workers who were found to vote as one; ``planted`` says whether they do."""

    worker: str
    other: str
    shared: int
    agreed: int
    expected: float
    planted: bool


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration found; rich draws it (``console.print(result)``)."""

    found: Consensus
    methods: tuple[Beside, ...]
    gain: Gain
    judged: tuple[Judged, ...]
    pairs: tuple[Pair, ...]
    copies_caught: int  # planted copies that are in a pair with one they share their votes with
    report: Path | None

    def of_kind(self, kind: str) -> Judged:
        return next(row for row in self.judged if row.kind == kind)

    @property
    def accused(self) -> int:
        """Workers flagged who are no spammers."""
        return sum(row.flagged for row in self.judged if row.kind != "spammer")

    @property
    def precision(self) -> float:
        """Share of the flagged who are spammers; 1 if nobody is flagged."""
        caught = self.of_kind("spammer").flagged
        return caught / (caught + self.accused) if caught + self.accused else 1.0

    @property
    def recall(self) -> float:
        """Share of the spammers who are flagged."""
        return self.of_kind("spammer").flagged / self.of_kind("spammer").workers

    def __rich__(self) -> Group:
        from voxpop.report.terminal import shown

        return shown(self)


def run_demo(report: Path | None = None, seed: int = 0) -> DemoResult:
    """Simulate a crowd on scikit-learn's digits, find the truth, and see who was found out; write a report if asked."""
    digits = vote_on_digits(seed)
    found = consensus(digits.votes)
    others = [make(name).infer(digits.votes) for name in BESIDE]
    pairs = tuple(_pairs(found, digits))
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
        html_report(found, report, digits.truth, others, TITLE, digits.picture)
    return DemoResult(
        found,
        tuple(beside(found, others, digits.truth)),
        gain(found, others[0], digits.truth),
        tuple(_judged(found, digits)),
        pairs,
        len({w for p in pairs if p.planted for w in (p.worker, p.other) if digits.kinds[w] == "copy"}),
        report,
    )


def _judged(found: Consensus, digits: Digits) -> list[Judged]:
    planted = pl.DataFrame(
        {"worker": digits.kinds.keys(), "kind": digits.kinds.values(), "simulated": digits.accuracy.values()}
    )
    verdict = pl.col("better_than_chance")
    rows = (
        found.workers.join(planted, on="worker")
        .group_by("kind", maintain_order=True)
        .agg(
            workers=pl.len(),
            votes=pl.col("votes").sum(),
            accuracy=pl.col("simulated").mean(),
            judged=pl.col("accuracy").mean(),
            better=(verdict == "yes").sum(),
            unclear=(verdict == "unclear").sum(),
            worse=(verdict == "worse").sum(),
        )
    )
    return [Judged(**row) for row in rows.to_dicts()]


def _pairs(found: Consensus, digits: Digits) -> list[Pair]:
    def pair(row: dict[str, Any]) -> Pair:
        planted = digits.original[row["worker"]] == digits.original[row["other"]]
        return Pair(row["worker"], row["other"], row["shared"], row["agreed"], row["expected"], planted)

    return [pair(row) for row in copies(found).to_dicts()]
