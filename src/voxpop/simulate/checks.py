"""Options of simulations that are out of range, said plainly."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from voxpop.errors import BadOption


def chance(name: str, value: float) -> float:
    """A number from 0 to 1."""
    if not isinstance(value, float | int) or not 0 <= value <= 1:
        raise BadOption(f"{name}={value!r} is not a share or a chance; give a number from 0 to 1")
    return float(value)


def at_least(name: str, value: float, least: float) -> float:
    """A finite number that is not below the least."""
    if not isinstance(value, float | int) or not least <= value < inf:
        raise BadOption(f"{name}={value!r} is out of range; give {least} or more")
    return value


def right_wrong(alpha: Sequence[float]) -> tuple[float, float]:
    """The two parameters of a Beta prior on being right."""
    if not isinstance(alpha, list | tuple) or len(alpha) != 2:
        raise BadOption(f"alpha={alpha!r} must be two numbers above zero: (right, wrong), such as (2, 1)")
    right, wrong = alpha
    if not (0 < right < inf and 0 < wrong < inf):
        raise BadOption(f"alpha={alpha!r}: both right and wrong must be above zero, such as (2, 1)")
    return float(right), float(wrong)
