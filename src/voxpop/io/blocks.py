"""A source's bytes in blocks that end where a row ends, as far as quotes can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from voxpop.io.source import BOM, Source
from voxpop.io.tidy import last_line_end, last_row_end


class RowBlocks(Iterator[bytes]):
    """Blocks of about ``size`` bytes, from byte ``start`` on (at least after the byte order mark)."""

    def __init__(self, source: Source, size: int, start: int = 0) -> None:
        self._pieces = source.pieces(size)
        self._size = self._wanted = size
        self.start = max(start, len(BOM) if source.head.startswith(BOM) else 0)
        self.end = self.start  # of the last block, in the file
        self._given = 0  # bytes in the last block
        self._least = 0  # the next block must be longer than that
        self._pending = b""
        while len(self._pending) < self.start and (piece := next(self._pieces, b"")):
            self._pending += piece
        self._pending = self._pending[self.start :]

    def __next__(self) -> bytes:
        end = self._fill()
        while not end:  # a line longer than that
            self._wanted *= 2
            end = self._fill()
        if not self._pending:
            raise StopIteration
        block, self._pending = self._pending[:end], self._pending[end:]
        self.end += end
        self._given, self._wanted, self._least = end, self._size, 0
        return block

    def _fill(self) -> int:
        """Read as much as is wanted, and say where to cut it; where quotes are odd, at any line end."""
        while len(self._pending) < self._wanted:
            piece = next(self._pieces, b"")
            if not piece:
                return max(len(self._pending), 1)
            self._pending += piece
        start = self._pending[: self._wanted]
        end = last_row_end(start) or last_line_end(start)
        return end if end > self._least else 0

    def more(self) -> bool:
        """Whether anything comes after the last block."""
        self._pending = self._pending or next(self._pieces, b"")
        return bool(self._pending)

    def put_back(self, tail: bytes) -> None:
        """The end of the last block belongs to the next, which is longer if that was all of it."""
        if len(tail) == self._given:
            self._least, self._wanted = len(tail), 2 * len(tail)
        self._pending = tail + self._pending
        self.end -= len(tail)
