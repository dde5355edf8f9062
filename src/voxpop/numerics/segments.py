"""The two sums that everything is made of: over the votes of a task, and over the votes of a worker.

Both are ``embedding_bag`` calls: a bag is a segment, the table's rows are what is summed. No Python
loop over tasks or workers, on CPU and GPU alike. A float32 sum stops growing at 2**24, so long
segments are cut into pieces of at most ``PIECE`` rows and the pieces are added in float64.

What is read or written out of order should fit in a core's cache: so the first sum can be had in blocks
of segments, and the second reads its table in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

PIECE = 4096
BLOCK = 1 << 18  # numbers in a block, 1 MiB of float32: a common second-level cache, or two halves of two


def rows_of_a_block(width: int, device: torch.device) -> int:
    """How many rows of so many numbers make a block; on a GPU all of them."""
    return max(1, BLOCK // max(width, 1)) if device.type == "cpu" else 1 << 62


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

    def sums(self, table: Tensor) -> Iterator[Tensor]:
        """``sum``, block by block: so that the next step finds it in cache, and the whole is never made."""
        step = rows_of_a_block(table.shape[1], table.device)
        for start in range(0, self.size, step):
            ends = self.offsets[start : start + step + 1]
            first, last = int(ends[0]), int(ends[-1])
            yield Segments(self.index[first:last], ends - first).sum(table)

    def sum_exact(self, table: Tensor) -> Tensor:
        """The same in float64 for segments of any length, such as all votes of a worker."""
        return self._pieces.sum_exact(table)  # G,C

    @cached_property
    def _pieces(self) -> Pieces:
        owner = torch.arange(self.size, device=self.offsets.device)
        return Pieces(self.index, *cut(self.offsets, owner), self.size)


@dataclass(frozen=True)
class Pieces:
    """Segments in pieces, in any order: piece p is ``index[offsets[p]:offsets[p + 1]]``, of segment ``owner[p]``."""

    index: Tensor  # V, int32 or int64
    offsets: Tensor  # P+1, the index's dtype
    owner: Tensor  # P, int64
    size: int  # G

    @cached_property
    def counts(self) -> Tensor:
        """How long each segment is."""
        out = torch.zeros(self.size, dtype=torch.int64, device=self.owner.device)
        return out.index_add_(0, self.owner, self.offsets.diff().long())  # G

    def sum_exact(self, table: Tensor) -> Tensor:
        """Sum of the table's rows in each segment, in float64."""
        part = Segments(self.index, self.offsets).sum(table)  # P,C
        out = torch.zeros(self.size, table.shape[1], dtype=torch.float64, device=table.device)
        return out.index_add_(0, self.owner, part.double())  # G,C


def cut(offsets: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
    """Offsets and owners of the same rows in pieces of at most ``PIECE``."""
    pieces = (offsets.diff() + PIECE - 1).div(PIECE, rounding_mode="floor").clamp_min_(1).long()  # P
    if pieces.numel() == 0 or int(pieces.max()) == 1:
        return offsets, owner
    whole = torch.repeat_interleave(pieces)  # which piece each new piece is cut from
    place = torch.arange(whole.numel(), device=whole.device) - offsets_of(pieces)[whole]  # and which part of it
    start = offsets[whole].long() + PIECE * place
    return torch.cat([start, offsets[-1:].long()]).to(offsets.dtype), owner[whole]


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


def column_sums(table: Tensor) -> Tensor:
    """Sum of all rows, in float64: blocks in float32 (torch adds them pairwise), then the blocks."""
    blocks = torch.split(table, rows_of_a_block(table.shape[1], table.device)) if len(table) else (table,)
    return torch.stack([block.sum(0) for block in blocks]).sum(0, dtype=torch.float64)  # C
