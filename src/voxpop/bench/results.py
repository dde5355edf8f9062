"""What was measured: means over seeds, with 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from voxpop.bench.store import Row


@dataclass(frozen=True)
class Mean:
    """A mean over seeds and half the width of its 95% interval (NaN for one seed); NaN where nothing was measured."""

    value: float
    half: float
    seeds: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        from scipy.stats import t  # type: ignore[import-untyped]

        found = np.array([v for v in values if not math.isnan(v)], dtype=np.float64)
        n = found.size
        if not n:
            return cls(math.nan, math.nan, 0)
        half = float(t.ppf(0.975, n - 1) * found.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
        return cls(float(found.mean()), half, n)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        return f"{self.value:.3g}" + ("" if math.isnan(self.half) else f" ±{self.half:.2g}")

    def in_points(self) -> str:
        """A share in points of 100."""
        if math.isnan(self.value):
            return "-"
        return f"{100 * self.value:.1f}" + ("" if math.isnan(self.half) else f" ±{100 * self.half:.1f}")


class Results:
    """The finished cells of one part."""

    def __init__(self, rows: Iterable[Row], part: str) -> None:
        own = (one for row in rows if row.cell.part == part for one in apart(row))
        self.rows = sorted(own, key=lambda row: row.cell.seed)

    def values(self, case: str, method: str, measure: str) -> list[float]:
        """One number a seed, in the order of seeds."""
        return [
            row.measures[measure]
            for row in self.rows
            if row.cell.case == case and row.cell.method == method and measure in row.measures
        ]

    def mean(self, case: str, method: str, measure: str = "classifier") -> Mean:
        return Mean.of(self.values(case, method, measure))

    def gap(self, case: str, method: str, other: str, measure: str = "classifier") -> Mean:
        """How much the method is ahead of another: seed by seed, as both see the same data and votes."""
        ours = {r.cell.seed: r.measures.get(measure, math.nan) for r in self._of(case, method)}
        theirs = {r.cell.seed: r.measures.get(measure, math.nan) for r in self._of(case, other)}
        return Mean.of(ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys()))

    def _of(self, case: str, method: str) -> list[Row]:
        return [row for row in self.rows if (row.cell.case, row.cell.method) == (case, method)]

    @property
    def failures(self) -> list[str]:
        """Why cells failed: a line for each method and reason."""
        found: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if row.error is not None:
                found.setdefault((row.cell.method, row.error), []).append(f"{row.cell.case} seed {row.cell.seed}")
        return [f"{method} ({_first(cells)}): {error}" for (method, error), cells in found.items()]


def apart(row: Row) -> list[Row]:
    """A row for each case of a run that measured several together."""
    found: dict[str, dict[str, float]] = {}
    for name, value in row.measures.items():
        measure, _, case = name.partition("@")
        found.setdefault(case or row.cell.case, {})[measure] = value
    return [replace(row, cell=replace(row.cell, case=case), measures=of) for case, of in found.items()] or [row]


def _first(cells: list[str], most: int = 3) -> str:
    more = len(cells) - most
    return ", ".join(cells[:most]) + (f" and {more} more" if more > 0 else "")
