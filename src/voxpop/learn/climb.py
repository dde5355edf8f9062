"""Some steps of L-BFGS up a hill: Nocedal and Wright (2006), Numerical Optimization, algorithm 7.4.

The mean of the embeddings is not searched for: it is always the likeliest for where they are, which is linear in them.
"""

from __future__ import annotations

import torch

from voxpop.channels.base import Theta
from voxpop.learn.hill import Hill, Prior

KEPT = 5  # pairs of a step and what it changed in the slope


def climb(hill: Hill, theta: Theta, steps: int) -> Theta:
    """Where so many steps lead; never lower than ``theta``."""
    point = hill.at({**theta, "mean": hill.prior.centre(theta["workers"])})
    slope, memory = hill.slope(point), Memory(hill.stiffness(theta))
    for number in range(steps):
        along = _with_centre(memory.direction(slope), hill.prior)
        ray = hill.ray(point, along)
        step = ray.best()
        if step == 0:
            break
        point = ray.at(step)
        if number + 1 < steps:
            before, slope = slope, hill.slope(point)
            memory.add({name: step * along[name] for name in slope}, {n: before[n] - slope[n] for n in slope})
    return point.theta


def _with_centre(along: Theta, prior: Prior) -> Theta:
    return {**along, "mean": prior.centre(along["workers"])}


class Memory:
    """The last steps, and with them what is known of the curvature; before the first, the stiffness."""

    def __init__(self, stiffness: Theta) -> None:
        self.stiffness = stiffness
        self.pairs: list[tuple[Theta, Theta, float]] = []  # step, minus the change of the slope, one over their product

    def add(self, step: Theta, change: Theta) -> None:
        product = _dot(step, change)
        if product > 0:
            self.pairs = [*self.pairs[1 - KEPT :], (step, change, 1 / product)]

    def direction(self, slope: Theta) -> Theta:
        """The slope times what is known of the inverse curvature."""
        out, used = {name: part.clone() for name, part in slope.items()}, []
        for step, change, share in reversed(self.pairs):
            used.append(share * _dot(step, out))
            _add(out, change, -used[-1])
        scale = self._scale()
        out = {name: part.mul_(scale).div_(self.stiffness[name]) for name, part in out.items()}
        for (step, change, share), weight in zip(self.pairs, reversed(used), strict=True):
            _add(out, step, weight - share * _dot(change, out))
        return out

    def _scale(self) -> float:
        """How much softer the last step found it."""
        if not self.pairs:
            return 1.0
        _, change, share = self.pairs[-1]
        return 1 / (share * _dot(change, {name: part / self.stiffness[name] for name, part in change.items()}))


def _dot(a: Theta, b: Theta) -> float:
    return float(sum(torch.dot(a[name].reshape(-1), b[name].reshape(-1)) for name in a))


def _add(out: Theta, other: Theta, weight: float) -> None:
    for name, part in out.items():
        part.add_(other[name], alpha=weight)
