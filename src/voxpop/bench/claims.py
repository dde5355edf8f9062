"""Claims: a sentence, whether it holds, and the numbers that decide it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    text: str
    holds: bool | None  # None: not measured
    evidence: str

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "does not hold", None: "not measured"}[self.holds]


def at_least(text: str, numbers: Mapping[str, float], bound: float) -> Claim:
    """Holds if none of the numbers (differences of accuracies, say) is below the bound."""
    return _decided(text, numbers, bound, all(value >= bound for value in numbers.values()))


def at_most(text: str, numbers: Mapping[str, float], bound: float) -> Claim:
    """Holds if none of the numbers is above the bound."""
    return _decided(text, numbers, bound, all(value <= bound for value in numbers.values()))


def _decided(text: str, numbers: Mapping[str, float], bound: float, holds: bool) -> Claim:
    known = {name: value for name, value in numbers.items() if not math.isnan(value)}
    listed = ", ".join(f"{name} {points(value)}" for name, value in known.items())
    if len(known) < len(numbers) or not known:
        return Claim(text, None, listed or "no numbers")
    return Claim(text, holds, f"{listed} (bound {points(bound)})")


def points(value: float) -> str:
    """A share or a difference of shares in points of 100, with its sign where it may have one."""
    return f"{100 * value:+.1f}"
