"""The two sums that everything is made of: over the votes of a task, and over the votes of a worker.

Both are ``embedding_bag`` calls: a bag is a segment, the table's rows are what is summed. No Python
loop over tasks or workers, on CPU and GPU alike. A float32 sum stops growing at 2**24, so long
segments are cut into pieces of at most ``PIECE`` rows and the pieces are added in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

PIECE = 4096


def offsets_of(counts: Tensor) -> Tensor:
    """Where each of consecutive segments with these lengths begins, and the end of the last."""
    ends = counts.cumsum(0, dtype=torch.int64)
    return F.pad(ends, (1, 0))


@dataclass(frozen=True)
class Segments:
    """Rows of a table, grouped: segment g sums ``table[index[offsets[g]:offsets[g + 1]]]``."""

    index: Tensor  # V, int32 or int64
    offsets: Tensor  # G+1, the index's dtype

    @property
    def size(self) -> int:
        return self.offsets.numel() - 1

    @cached_property
    def counts(self) -> Tensor:
        return self.offsets.diff()  # G

    def sum(self, table: Tensor) -> Tensor:
        """Sum of the table's rows in each segment, in float32: for segments as short as a task's votes."""
        return F.embedding_bag(self.index, table, self.offsets, mode="sum", include_last_offset=True)  # G,C

    def sum_exact(self, table: Tensor) -> Tensor:
        """The same in float64 for segments of any length, such as all votes of a worker."""
        cuts, owner = self._pieces
        part = F.embedding_bag(self.index, table, cuts, mode="sum", include_last_offset=True)  # P,C
        if owner is None:
            return part.double()
        out = torch.zeros(self.size, table.shape[1], dtype=torch.float64, device=table.device)
        return out.index_add_(0, owner, part.double())  # G,C

    @cached_property
    def _pieces(self) -> tuple[Tensor, Tensor | None]:
        """Offsets of the pieces, and the segment that each piece belongs to (None: pieces are segments)."""
        pieces = (self.counts + PIECE - 1).div(PIECE, rounding_mode="floor")  # G
        if int(pieces.max()) <= 1 if self.size else True:
            return self.offsets, None
        owner = torch.repeat_interleave(pieces.long())  # P
        first = offsets_of(pieces)[:-1]
        start = self.offsets[:-1][owner].long() + PIECE * (
            torch.arange(owner.numel(), device=owner.device) - first[owner]
        )
        return torch.cat([start, self.offsets[-1:].long()]).to(self.offsets.dtype), owner


def segment_sum(values: Tensor, offsets: Tensor) -> Tensor:
    """Sum of consecutive rows ``values[offsets[g]:offsets[g + 1]]``, in float64."""
    rows = torch.arange(values.shape[0], dtype=offsets.dtype, device=values.device)
    flat = values if values.dim() == 2 else values[:, None]
    out = Segments(rows, offsets).sum_exact(flat)
    return out if values.dim() == 2 else out[:, 0]


def scatter_sum(values: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum of the values (or rows) that share an index, in float64; the order of the rows does not matter much."""
    out = torch.zeros(size, *values.shape[1:], dtype=torch.float64, device=values.device)
    return out.index_add_(0, index.long(), values.double())
