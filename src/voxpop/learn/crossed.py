"""What networks say of tasks whose votes they have not seen: cross-fitting.

Chernozhukov et al. (2018), "Double/debiased machine learning", section 1. A network that has learned the votes of a
task by heart says them again where it meets them, as if somebody independent had confirmed them: the votes would count
twice, and a sure network would outvote the crowd. So the truth of each task is inferred by a network that learned from
other tasks only. What held-out votes were foretold with is such a network already; else two halves teach each other's.
"""

from __future__ import annotations

import torch

from voxpop.engines.events import emit
from voxpop.learn.data import Data
from voxpop.learn.held_out import LEAST, Held, Maker, said, temperature, without
from voxpop.learn.loop import Settings
from voxpop.numerics.seeds import generator

HALVES = 2


def fit(make: Maker, data: Data, settings: Settings, epochs: int, held: Held | None) -> Held | None:
    """Of all tasks with votes; None where there are too few to learn from others."""
    if held is not None and _covers(held, data):
        return held
    tasks = data.voted
    if tasks.numel() < LEAST:
        return None
    order = tasks[torch.randperm(tasks.numel(), generator=generator(settings.seed, "halves"))]
    halves = [without(make, data, half, settings, epochs) for half in torch.tensor_split(order, HALVES)]
    for number, (training, _) in enumerate(halves):
        while training.done < epochs:
            training.epoch()
            emit("inferring each half by the other", number * epochs + training.done, HALVES * epochs)
    positions = torch.cat([hidden.positions for _, hidden in halves])
    logp, given = (torch.cat(each) for each in zip(*(said(*half) for half in halves), strict=True))
    return Held(positions, logp, temperature(logp, given))


def _covers(held: Held, data: Data) -> bool:
    """Whether every task with votes was held out; known truths are certain whatever a network says."""
    left = torch.zeros(data.votes.N, dtype=torch.bool)
    left[data.voted] = True
    left[held.tasks] = False
    if data.gold is not None:
        left &= data.gold < 0
    return not bool(left.any())
