"""JSON: one value (a list of records, or a mapping), or one record a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from voxpop.errors import BadInput
from voxpop.io.problems import Problems, shown
from voxpop.io.source import Source
from voxpop.io.table import Block
from voxpop.io.values import as_json, as_name

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Json:
    """A JSON file. ``value`` is what it says; where that is a list of records it is also a table."""

    def __init__(self, source: Source) -> None:
        self.source, self.name = source, source.name
        self.value, self._lines = _parsed(source)
        if not self.value:
            raise BadInput(f"{self.name} holds no records; it should hold one vote a record")
        self._rows = self._as_rows()
        self.columns = tuple(dict.fromkeys(key for row in self._rows for key in row))

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        """These fields of all records, in one block."""
        cells = {c: pl.Series(c, [as_name(r.get(c)) for r in self._rows], dtype=pl.String) for c in columns}
        lines = self._lines
        yield Block(pl.DataFrame(cells), 1, None if lines is None else lines.copy)

    def records(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def _as_rows(self) -> list[dict[str, Any]]:
        """The records of a list, or of columns under their names; none where the value is neither."""
        if isinstance(self.value, list):
            for row, record in enumerate(self.value, 1):
                if not isinstance(record, dict):
                    raise BadInput(
                        f"{self.name}, record {row}: {shown(record)} is not an object with a key for each column"
                    )
            return self.value
        columns = _as_columns(self.value) if isinstance(self.value, dict) else {}
        if len({len(v) for v in columns.values()}) != 1:
            return []
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _as_columns(value: dict[str, Any]) -> dict[str, list[Any]]:
    """Columns as lists, or as pandas writes them: an object with a key for each row."""
    if "label" in value and all(isinstance(v, dict) for v in value.values()):
        return {name: list(column.values()) for name, column in value.items()}
    return {name: column for name, column in value.items() if isinstance(column, list)}


def _parsed(source: Source) -> tuple[Any, list[int] | None]:
    """The value, and the line of each record where the file has one record a line."""
    text = source.text()
    if source.kind == "jsonl" or _is_lines(text):
        value, lines = _records_by_line(source.name, text)
    else:
        try:
            value, lines = json.loads(text), None
        except (ValueError, RecursionError) as error:
            raise BadInput(_broken(source.name, text, 1, error)) from None
    if SURROGATE.search(text) and not _is_text(value):
        raise BadInput(
            f"{source.name} has half of a character (an escape \\ud800 to \\udfff alone); write it again as UTF-8"
        )
    return value, lines


def _is_text(value: Any) -> bool:
    try:
        as_json(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_lines(text: str) -> bool:
    """A .json file with a complete record on its first line, and more to come."""
    first, _, more = text.strip().partition("\n")
    if not (first.startswith("{") and more):
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _records_by_line(name: str, text: str) -> tuple[Any, list[int] | None]:
    problems = Problems()
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            if not records and not problems and (value := _whole(text)) is not None:
                return value, None
            problems.add(_broken(name, line, number, error))
            continue
        if isinstance(record, dict):
            records.append(record)
            lines.append(number)
        elif isinstance(record, list) and text.strip() == line.strip():
            return record, None
        else:
            problems.add(
                f"{name}, line {number}: {shown(record)} is not a record; write an object with a key for each column"
            )
    problems.check()
    return records, lines


def _whole(text: str) -> Any:
    """One value over several lines under the name of JSONL, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _broken(name: str, text: str, line: int, error: Exception) -> str:
    """Where JSON is wrong, in one line; ``line`` is that of the text's first."""
    if isinstance(error, RecursionError):
        return f"{name}, line {line}: nested too deeply; this is not an export of votes"
    if not isinstance(error, json.JSONDecodeError):
        return f"{name}: a number has thousands of digits; write it as text"
    where = f"{name}, line {line + error.lineno - 1}"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"{where}: the JSON breaks off here; the file is incomplete, export it again"
    return f"{where}, column {error.colno}: not JSON ({error.msg}); correct it, or export it again"
