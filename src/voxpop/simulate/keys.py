"""A vote's place as one integer, task * workers + worker, so that one sort brings votes in order."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def sort(keys: Tensor) -> Tensor:
    """Ascending. The stable sort merges runs, and our keys are nearly in order: seven times faster than the other."""
    return torch.from_numpy(np.sort(keys.numpy(), kind="stable"))


def distinct(keys: Tensor) -> Tensor:
    """Ascending, each key once."""
    keys = sort(keys)
    first = torch.ones(keys.numel(), dtype=torch.bool)
    torch.ne(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def split(keys: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """(key // size, key % size); NumPy divides by a constant ten times faster than torch."""
    high = torch.from_numpy(keys.numpy() // size)
    return high, keys - high * size


def owners(counts: Tensor) -> Tensor:
    """0 repeated counts[0] times, 1 repeated counts[1] times, ...; torch's own waits for all threads even for five."""
    return torch.from_numpy(np.repeat(np.arange(counts.numel()), counts.numpy()))
