"""A quick look at a block of delimited bytes: is every row whole and plain enough for a fast reader?

The fast reader turns short rows into empty cells and guesses at stray quotes, so it only gets blocks where
there is nothing to guess: valid UTF-8 without NUL, quotes only where fields begin and end, one line end
for each row, no empty lines, and the same number of fields everywhere. Anything else is read row by row.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

NEWLINE, RETURN, QUOTE = b"\n"[0], b"\r"[0], b'"'[0]


def last_row_end(block: bytes) -> int:
    """Where the last whole row ends, for a block that begins with a row; 0 if none does."""
    if QUOTE not in block:
        return last_line_end(block)
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(((data == NEWLINE) | (data == RETURN)) & ~_inside(data))
    ends = ends[(data[ends] == NEWLINE) | (ends < len(data) - 1)]
    return int(ends[-1]) + 1 if ends.size else 0


def last_line_end(block: bytes) -> int:
    """The same whatever the quotes say."""
    end = block.rfind(b"\n") + 1
    return end or block.rfind(b"\r", 0, -1) + 1  # a return at the very end may be half of a line end


def tidied(block: bytes, separator: bytes, fields: int) -> tuple[bytes, int] | None:
    """The block with plain line ends and no empty lines, and its number of rows; None where something is odd."""
    if 0 in block or block.count(b'"') % 2 or not _is_utf8(block):
        return None
    quoted = QUOTE in block
    block = _tidied_quoted(block, separator) if quoted else _tidied_plain(block)
    data = np.frombuffer(block, np.uint8)
    marks = (data == NEWLINE) | (data == separator[0])
    if quoted:
        if not block:
            return None
        marks &= ~_inside(data)
    ends = data[np.flatnonzero(marks)] == NEWLINE
    if ends.size % fields:
        return None
    rows = ends.reshape(-1, fields)
    whole = bool(rows[:, -1].all()) and int(rows.sum()) == len(rows)
    return (block, len(rows)) if whole else None


def count_lines(block: bytes) -> int:
    return block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _inside(data: Bytes) -> Mask:
    """Between an opening quote (included) and its closing quote (not): an odd number of quotes so far."""
    return (np.cumsum(data == QUOTE, dtype=np.uint8) & 1).astype(bool)


def _tidied_plain(block: bytes) -> bytes:
    if RETURN in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\n\n" in block or block.startswith(b"\n"):
        block = re.sub(rb"\n+", b"\n", block).removeprefix(b"\n")
    return block if not block or block.endswith(b"\n") else block + b"\n"


def _tidied_quoted(block: bytes, separator: bytes) -> bytes:
    """The same outside quotes; empty where a quote stands elsewhere than around a whole field."""
    data = np.frombuffer(block if block.endswith((b"\n", b"\r")) else block + b"\n", np.uint8)
    inside = _inside(data)
    neighbours = np.frombuffer(separator + b'\r\n"', np.uint8)
    quote = np.flatnonzero(data == QUOTE)
    opening, closing = quote[inside[quote]], quote[~inside[quote]]
    before, after = data[opening[opening > 0] - 1], data[closing + 1]
    if not (np.isin(before, neighbours).all() and np.isin(after, neighbours).all()):
        return b""
    outside = ~inside
    returns = (data == RETURN) & outside
    if returns.any():
        paired = returns & (np.append(data[1:], 0) == NEWLINE)
        data = np.where(returns, NEWLINE, data)[~paired].astype(np.uint8)
        outside = outside[~paired]
    ends = (data == NEWLINE) & outside
    empty = ends & np.append(True, ends[:-1])
    return bytes(data[~empty])
