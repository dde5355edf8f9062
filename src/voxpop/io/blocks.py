"""A source's bytes in blocks that end where a row ends, as far as quotes can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from voxpop.io.source import BOM, Source
from voxpop.io.tidy import last_row_end


class RowBlocks(Iterator[bytes]):
    """Blocks of about ``size`` bytes, from byte ``start`` on (at least after the byte order mark)."""

    def __init__(self, source: Source, size: int, start: int = 0) -> None:
        self._pieces = source.pieces(size)
        self.start = max(start, len(BOM) if source.head.startswith(BOM) else 0)
        self.end = self.start  # of the last block, in the file
        self._pending = b""
        while len(self._pending) < self.start and (piece := next(self._pieces, b"")):
            self._pending += piece
        self._pending = self._pending[self.start :]

    def __next__(self) -> bytes:
        end = last_row_end(self._pending)
        seen = len(self._pending)
        while not end and (piece := next(self._pieces, b"")):
            self._pending += piece
            if len(self._pending) >= 2 * seen:  # look again only when there is much more to see
                end, seen = last_row_end(self._pending), len(self._pending)
        end = end or len(self._pending)
        if not end:
            raise StopIteration
        block, self._pending = self._pending[:end], self._pending[end:]
        self.end += end
        return block

    def more(self) -> bool:
        """Whether anything comes after the last block."""
        self._pending = self._pending or next(self._pieces, b"")
        return bool(self._pending)

    def put_back(self, tail: bytes) -> None:
        """The end of the last block belongs to the next."""
        self._pending = tail + self._pending
        self.end -= len(tail)
