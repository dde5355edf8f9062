"""Delimited text read row by row: slow, exact, and able to say what is wrong and where.

A row ends at a line end (any of the three kinds) outside quotes. A field that begins with a quote ends at
the quote that no other quote follows; a quote elsewhere in a field is part of its text. Empty lines are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LINE_END = re.compile(r"\r\n|\r|\n")
QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')
UNCLOSED = "a quote opens and never closes; close it, or write it twice where it is text"
AFTER_CLOSE = "text follows a closing quote; write a quote twice where it is text"


class Record(NamedTuple):
    """One row: its line, where it stands in the text, its fields; ``wrong`` says what is wrong with the next field."""

    line: int
    start: int
    end: int
    fields: list[str]
    wrong: str = ""


def records(text: str, separator: str, line: int = 1) -> Iterator[Record]:
    """Every row that is not an empty line. After a row that cannot be read, reading goes on at the next line."""
    plain = re.compile(rf"[^{re.escape(separator)}\r\n]*+")
    start = 0
    while start < len(text):
        end = LINE_END.search(text, start)
        stop, after = end.span() if end else (len(text), len(text))
        if '"' not in text[start:stop]:
            if stop > start:
                yield Record(line, start, after, text[start:stop].split(separator))
            lines = 1
        else:
            record = _quoted(text, separator, plain, line, start)
            if record.wrong:
                record = record._replace(end=after)
            after = record.end
            yield record
            lines = len(LINE_END.findall(text, start, after))
        start, line = after, line + lines


def _quoted(text: str, separator: str, plain: re.Pattern[str], line: int, start: int) -> Record:
    """The row that begins at ``start``, where some field has a quote."""
    fields: list[str] = []
    at = start
    while True:
        if text.startswith('"', at):
            match = QUOTED.match(text, at)
            if match is None:
                return Record(line, start, len(text), fields, UNCLOSED)
            fields.append(match[1].replace('""', '"'))
        else:
            match = plain.match(text, at)
            assert match is not None  # it matches the empty text too
            fields.append(match[0])
        at = match.end()
        if text.startswith(separator, at):
            at += 1
            continue
        end = LINE_END.match(text, at)
        if end or at == len(text):
            return Record(line, start, end.end() if end else at, fields)
        return Record(line, start, len(text), fields[:-1], AFTER_CLOSE)
