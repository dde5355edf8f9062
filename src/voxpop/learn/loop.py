"""The training loop: epochs of mini-batches of tasks with their votes, on any device, in any precision.

Devices, processes and precision are Lightning Fabric's: of the libraries for this it is the one that leaves
the loop to us and needs little else. Of several devices each takes its part of every batch, in a process of its own
that Fabric starts; slopes are averaged, and everything else is the same in all of them. Random numbers (shuffles,
dropout) are drawn afresh for each epoch from the seed and the epoch's number, so a run that is resumed after an epoch
goes on exactly as it would have.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from voxpop.errors import BadOption, RunFailed
from voxpop.learn import checkpoint
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective, Parcel, Parcels, asking
from voxpop.numerics.seeds import generator

TOGETHER = 1 << 14  # tasks whose votes are looked up at a time
IN_CACHE = 1 << 18  # numbers in rows that are predicted at a time, at most 4096 rows


@dataclass(frozen=True)
class Settings:
    """How to train, the same for every method."""

    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    schedule: str = "constant"
    device: str = "cpu"
    devices: int = 1
    precision: Any = "32-true"
    seed: int = 0


@dataclass(frozen=True)
class Epoch:
    """What an epoch has to say."""

    loss: float
    bound: float | None = None  # of the E-step before it, where there is one
    held_out: float | None = None  # mean log probability of a vote of tasks that were held out
    seconds: float = 0.0


class Training:
    """An objective, data, and how far the training is. ``epoch`` changes the objective and the optimiser."""

    def __init__(self, objective: Objective, data: Data, settings: Settings, epochs: int) -> None:
        from lightning_fabric import Fabric

        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # it would announce every process
        self.objective, self.data, self.settings, self.epochs = objective, data, settings, epochs
        self.done = 0
        self.history: list[Epoch] = []
        self.by_gradient = any(p.requires_grad for p in objective.parameters())
        if settings.devices > 1 and not (self.by_gradient and objective.divides):
            raise BadOption(f"devices={settings.devices}: what is to be trained here takes whole batches; give 1")
        self.fabric = Fabric(**placement(settings.device, settings.devices), precision=settings.precision)
        self.fabric.launch()
        objective.devices = self.fabric.world_size
        if self.by_gradient:
            groups = objective.groups(settings.lr)
            optimiser = torch.optim.Adam(groups, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
            self.rates = [group["lr"] for group in optimiser.param_groups]
            self.wrapped, self.optimiser = self.fabric.setup(objective, optimiser)

    def epoch(self) -> Epoch:
        """One pass over the tasks, after one E-step where the method has one."""
        began = time.perf_counter()
        with seeded(self.settings.seed, self.done, self.fabric.device):
            bound = self.refresh()
            loss = (
                self._descend()
                if self.by_gradient
                else self.objective.refit(self.data, self.objective.learned(self.data, self.done))
            )
        self.done += 1
        told = Epoch(loss, bound, seconds=time.perf_counter() - began)
        self.history.append(told)
        return told

    def _descend(self) -> float:
        """Mini-batches down the gradient; the mean loss."""
        self._set_rates()
        self.objective.train()
        losses = [self._step(parcel) for parcel in self._parcels()]
        loss = self._mean_of(losses)
        self._refuse_nan(len(losses))
        return loss

    def refresh(self) -> float | None:
        """The E-step, with what the network predicts now (nothing before the first epoch)."""
        if not self.objective.refreshes:
            return None
        with torch.no_grad():
            logp = predictions(self.objective, self.data, self.fabric.device) if self.done else None
            return self.objective.refresh(self.data, logp)

    def _parcels(self) -> Iterator[Parcel]:
        learned = self.objective.learned(self.data, self.done)
        order = torch.randperm(learned.numel(), generator=generator(self.settings.seed, "order", self.done))
        parts = self.fabric.world_size
        share = -(-self.settings.batch_size // parts)
        mine = part_of(learned[order], self.fabric.global_rank, parts)
        return parcels(self.data, mine, share, self.fabric.device)

    def _step(self, parcel: Parcel) -> Tensor:
        x = self.data.rows.take(parcel.rows).to(self.fabric.device)
        self.optimiser.zero_grad()
        loss: Tensor = self.wrapped(x, parcel)
        self.fabric.backward(loss)
        self.optimiser.step()
        self.objective.after_step()
        return loss.detach()

    def _set_rates(self) -> None:
        if self.settings.schedule == "cosine":
            share = (1 + math.cos(math.pi * min(self.done / max(self.epochs, 1), 1))) / 2
            for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
                group["lr"] = rate * share

    def _mean_of(self, losses: list[Tensor]) -> float:
        if not losses:
            return 0.0
        each = torch.stack(losses)
        bad = (~torch.isfinite(each)).nonzero()
        if bad.numel():
            raise self._failed(f"the loss became {float(each[bad[0, 0]])}", int(bad[0]) + 1)
        return float(each.mean())

    def _refuse_nan(self, steps: int) -> None:
        """The last step's loss may be fine, and what the step made of the weights not."""
        if not all(bool(torch.isfinite(p).all()) for p in self.objective.parameters()):
            raise self._failed("a weight became NaN or infinite", steps)

    def _failed(self, what: str, step: int) -> RunFailed:
        return RunFailed(
            f"{what} in step {step} of epoch {self.done + 1}: lower lr (now {self.settings.lr:g}), or look for "
            "extreme features; with checkpoint=FILE the epoch before is kept there"
        )

    # -- after a kill -----------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        if self.fabric.global_rank == 0:
            self._save(path)
        self.fabric.barrier()

    def _save(self, path: Path) -> None:
        checkpoint.save(path, self.objective.state(), self.optimiser.state_dict(), self.done, self.history)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint of the same training."""
        state, optimiser, self.done, history = checkpoint.load(path, self.optimiser.state_dict())
        self.objective.restore(state)
        self.optimiser.load_state_dict(optimiser)
        self.history = [Epoch(*row) for row in history]


def placement(device: str, devices: int) -> dict[str, Any]:
    """What Fabric is told of where to compute: one device, by its number if it has one, or several of a kind."""
    where = torch.device(device)
    if devices > 1:
        from lightning_fabric.strategies.ddp import DDPStrategy

        return {"accelerator": where.type, "devices": devices, "strategy": DDPStrategy()}
    return {"accelerator": where.type, "devices": [where.index] if where.type != "cpu" and where.index else 1}


def part_of(order: Tensor, rank: int, parts: int) -> Tensor:
    """Every so many-th task. Each part is as long: the first tasks fill up the last."""
    rounds = torch.arange(-(-len(order) // parts))
    return order[(rounds * parts + rank) % max(len(order), 1)]


def first_process() -> bool:
    """Whether this is the process that was started by hand; of several devices the others are copies of it."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def parcels(data: Data, order: Tensor, size: int, device: torch.device) -> Iterator[Parcel]:
    """The tasks at these positions in order, ``size`` at a time; votes are looked up for some batches together."""
    for some in torch.split(order, size * max(1, TOGETHER // size)):
        yield from Parcels(data, some, size, device)


def in_batches(data: Data, device: torch.device, size: int = 4096) -> Iterator[tuple[Tensor, Parcel]]:
    """All of the data's tasks in order, some at a time: rows and votes."""
    for parcel in parcels(data, data.positions, size, device):
        yield data.rows.take(parcel.rows).to(device), parcel


def predictions(objective: Objective, data: Data, device: torch.device) -> Tensor:
    """log p(truth | x) of all of the data's tasks, by the classifier as it stands: n,K."""
    with asking(objective):
        size = max(1, min(4096, IN_CACHE // math.prod(data.rows.shape)))
        parts = [objective.logp(data.rows.take(i).to(device)) for i in torch.split(data.positions, size)]
        return torch.cat(parts) if parts else torch.zeros(0, data.votes.K, device=device)


@contextmanager
def seeded(seed: int, number: int, device: torch.device) -> Iterator[None]:
    """Dropout and initial weights draw from torch's own generator: it is set for this block, and put back."""
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(generator(seed, "torch", number).initial_seed() % (1 << 63))
        yield
