"""Draws from many discrete distributions at once."""

from __future__ import annotations

import torch
from torch import Tensor


class Sampler:
    """Inverse cumulative sums of the rows of a table, by bisection: O(log C) a draw, and no array of draws x C."""

    def __init__(self, rows: Tensor) -> None:
        sums = rows.double().cumsum(1)  # R,C
        sums = (sums / sums[:, -1:]).float()  # ends in exactly 1, which no uniform draw reaches
        size, columns = sums.shape
        self.width = 1 << (columns - 1).bit_length()
        self.least = torch.full((size, self.width), torch.inf)  # column c: the least draw that gives c or more
        self.least[:, 0] = 0
        self.least[:, 1:columns] = sums[:, :-1]

    def draw(self, row: Tensor, generator: torch.Generator) -> Tensor:
        """One column for each of ``row``, which says from which distribution."""
        uniform = torch.rand(row.shape, generator=generator)  # V
        least, place = self.least.view(-1), row.long() * self.width
        start, step = place, self.width >> 1
        while step:
            place = place + step * (uniform >= least[place + step])
            step >>= 1
        return place - start  # V, int64
