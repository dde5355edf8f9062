"""CSV, TSV and their relatives: all text, in blocks, through a fast reader where nothing is odd."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.blocks import RowBlocks
from voxpop.io.problems import Problems, shown
from voxpop.io.records import UNCLOSED, Record, records
from voxpop.io.source import Source
from voxpop.io.table import Block, records_of
from voxpop.io.tidy import count_lines, tidied

BLOCK = 1 << 24  # bytes that are read at a time
SEPARATORS = (",", "\t", ";")
NOT_TEXT = re.compile("[\0\udc80-\udcff]")  # a NUL, or a byte that is not UTF-8


class Delimited:
    """A file of separated values with a header. Cells are text; an empty one is missing."""

    def __init__(self, source: Source, block: int = BLOCK) -> None:
        self.source, self.name, self._size = source, source.name, block
        rows = RowBlocks(source, block)
        text = next(rows, b"").decode("utf-8", "surrogateescape")
        self.separator = _separator(text, source.suffixes)
        header = next(records(text, self.separator), None)
        if header is None:
            raise BadInput(f"{self.name} has only empty lines; it should begin with the names of its columns")
        wrong = _not_text(text[: header.end], rows.start) or header.wrong
        if wrong:
            raise BadInput(f"{self.name}, line {header.line} (the header): {wrong}")
        self.header = tuple(header.fields)
        self._names = [name.strip() for name in header.fields]
        self.columns = tuple(dict.fromkeys(self._names))
        self._start = rows.start
        consumed = text[: header.end].encode()
        self._skip = rows.start + len(consumed)
        self._line = 1 + count_lines(consumed)

    def without_header(self) -> Delimited:
        """The same file where the first row is data too; columns are named 0, 1, 2, ..."""
        other = copy(self)
        other._names = [str(i) for i in range(len(self._names))]
        other.columns = other.header = tuple(other._names)
        other._skip, other._line = self._start, 1
        return other

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        """These columns, block by block; the last one is out only when nothing is wrong with the file."""
        chosen = self._positions(columns)
        problems = Problems()
        rows = RowBlocks(self.source, self._size, self._skip)
        row, line = 1, self._line
        for raw in rows:
            sound = tidied(raw, self.separator.encode(), len(self._names))
            frame = self._quickly(*sound, chosen) if sound else None
            if frame is not None:
                block = Block(frame, row, partial(self._lines, raw, line))
                count = len(frame)
            else:
                cells, lines, tail = self._carefully(raw, row, line, rows.end - len(raw), problems, rows.more())
                rows.put_back(raw[len(raw) - tail :])
                raw = raw[: len(raw) - tail]
                block = Block(
                    _frame([[fields[i] for i in chosen.values()] for fields in cells], chosen), row, lines.copy
                )
                count = len(lines)
            if count and not problems:
                yield block
            row += count
            line += count_lines(raw)
        problems.check()
        if row == 1:
            raise BadInput(f"{self.name} has a header but no rows; it should hold one vote a row")

    def records(self) -> Iterator[dict[str, Any]]:
        return records_of(self)

    def _positions(self, columns: Sequence[str]) -> dict[str, int]:
        for column in columns:
            if column and self._names.count(column) > 1:
                raise BadInput(f"{self.name} has more than one column {shown(column)}; rename all but one")
        return {column: self._names.index(column) for column in columns}

    def _quickly(self, data: bytes, rows: int, chosen: dict[str, int]) -> pl.DataFrame | None:
        """A tidy block through polars; None if polars does not see the same rows."""
        if not rows:
            return _frame([], chosen)
        lazy = pl.scan_csv(
            data,
            has_header=False,
            schema={str(i): pl.String for i in range(len(self._names))},
            separator=self.separator,
            quote_char='"' if b'"' in data else None,
        )
        try:
            frame = lazy.select(_filled(str(i)).alias(column) for column, i in chosen.items()).collect()
        except pl.exceptions.PolarsError:
            return None
        return frame if len(frame) == rows else None

    def _carefully(
        self, raw: bytes, row: int, line: int, offset: int, problems: Problems, more: bool
    ) -> tuple[list[list[str]], list[int], int]:
        """One block row by row: the fields and the line of each row, and how many bytes at the end are not read yet."""
        fields: list[list[str]] = []
        lines: list[int] = []
        text = raw.decode("utf-8", "surrogateescape")
        read = seen = 0
        for record in records(text, self.separator, line):
            offset += len(text[seen : record.start].encode("utf-8", "surrogateescape"))
            read = seen = record.start
            unclosed = record.wrong == UNCLOSED
            if unclosed and more:  # it may close in the next block
                break
            wrong = _not_text(text[record.start : record.end], offset) or self._misfit(record)
            if wrong:
                problems.add(f"{self.name}, row {row + len(lines)} (line {record.line}): {wrong}")
                if problems.enough:
                    problems.check()
            elif not problems:
                fields.append(record.fields)
            lines.append(record.line)
            read = record.end
            if unclosed:
                break  # what follows is read as if this line had been right
        else:
            read = len(text)
        return fields, lines, len(text[read:].encode("utf-8", "surrogateescape"))

    def _misfit(self, record: Record) -> str:
        """Why a row does not fit under the header, if it does not."""
        if record.wrong:
            column = self._names[len(record.fields) : len(record.fields) + 1]
            return f"column {shown(column[0])}: {record.wrong}" if column else record.wrong
        have, want = len(record.fields), len(self._names)
        if have == want:
            return ""
        remedy = "add what is missing" if have < want else f"quote a field that contains {shown(self.separator)}"
        return f"{have} field{'s' * (have != 1)} where the header has {want}; {remedy}"

    def _lines(self, raw: bytes, line: int) -> list[int]:
        return [record.line for record in records(raw.decode(), self.separator, line)]


def _not_text(raw: str, offset: int) -> str:
    """Where a row is not text, if it is not; ``offset`` is where it begins in the file."""
    odd = None if raw.isascii() and "\0" not in raw else NOT_TEXT.search(raw)
    if not odd:
        return ""
    byte = f"byte {offset + len(raw[: odd.start()].encode())}"
    if odd[0] == "\0":
        return f"{byte} is a NUL, so this is not a text file, or it is damaged; give CSV, TSV, JSON or Parquet"
    return f"{byte} is not UTF-8; save the file as UTF-8"


def _separator(text: str, suffixes: list[str]) -> str:
    """What separates the fields: what the extension promises if the first line has it, else what the line has."""
    line = next(iter(text.lstrip("\r\n")[: 1 << 16].splitlines()), "")
    promised = "\t" if {".tsv", ".tab", ".txt"} & set(suffixes) else ","
    return next((s for s in (promised, *SEPARATORS) if s in line), promised)


def _frame(cells: list[list[str]], chosen: dict[str, int]) -> pl.DataFrame:
    frame = pl.DataFrame(cells, schema=dict.fromkeys(chosen, pl.String), orient="row")
    return frame.select(_filled(column) for column in frame.columns)


def _filled(column: str) -> pl.Expr:
    """A cell of nothing but two quotes is empty too."""
    return pl.when(pl.col(column) != "").then(pl.col(column))
