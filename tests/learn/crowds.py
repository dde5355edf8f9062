"""Small data to learn from, and a network that learns nothing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from tests.crowds import Crowd
from voxpop.learn.data import Data
from voxpop.learn.loop import Settings, Training
from voxpop.learn.objective import Objective
from voxpop.learn.rows import TensorRows


class Constant(nn.Module):
    """Says the same of every row: these logits, whatever the optimiser does to its only weight."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.register_buffer("logits", logits)
        self.idle = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.logits.expand(len(x), -1) + 0 * self.idle


def alike(classes: int) -> Constant:
    """All classes alike."""
    return Constant(torch.zeros(classes))


def features(c: Crowd, seed: int = 0, far: float = 2.0, width: int = 4) -> np.ndarray:
    """A cloud of rows around each class's corner: N,D."""
    rng = np.random.default_rng(seed)
    rows = far * np.eye(c.K, max(width, c.K))[c.truth] + rng.normal(size=(c.N, max(width, c.K)))
    return rows.astype(np.float32)


def data_of(c: Crowd, gold: Tensor | None = None, **more: float) -> Data:
    return Data(TensorRows(torch.from_numpy(features(c, **more))), c.votes, gold)


def trained(objective: Objective, data: Data, epochs: int, *, lr: float = 0.01, batch_size: int = 10_000) -> Training:
    """That many epochs of the loop, each a full batch unless told otherwise."""
    training = Training(objective, data, Settings(batch_size=batch_size, lr=lr), epochs)
    for _ in range(epochs):
        training.epoch()
    return training
