"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import polars as pl

from voxpop.errors import BadInput, unknown

STDOUT = "-"
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # what a disk says when it can take no more


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes to: written aside, renamed when all went well, removed on any failure.

    "-" is standard output, which gets everything at the end; a device or a pipe is written directly.
    """
    if str(path) == STDOUT:
        buffer = io.BytesIO()
        yield buffer
        sys.stdout.flush()
        rest = buffer.getbuffer()
        while rest:  # unbuffered (PYTHONUNBUFFERED), it may take only a part and say nothing
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()
        return
    with _in_plain_words(path):
        direct = is_direct(path)
        target = Path(path if direct else os.path.realpath(path))  # a link stays a link
        part = target if direct else target.with_name(f".voxpop-{secrets.token_hex(8)}.part")
        _check_replaceable(target)
        file = part.open("wb" if direct else "xb")
    try:
        with file:
            yield file
            file.flush()
            if not direct:
                os.fsync(file.fileno())
        if not direct:
            with _in_plain_words(path):
                _replace(target, part)
    except (OSError, pl.exceptions.PolarsError) as error:
        if (number := _number(error)) in FULL:
            raise _refusal(path, OSError(number, os.strerror(number))) from None
        raise
    finally:
        if not direct:
            part.unlink(missing_ok=True)  # gone already where all went well


def is_direct(path: str | os.PathLike[str]) -> bool:
    """Standard output, a device or a pipe: it is written as it is, there is nothing to rename over."""
    place = Path(path)
    return str(path) == STDOUT or (place.exists() and not place.is_file() and not place.is_dir())


def _check_replaceable(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    if target.is_file() and not os.access(target, os.W_OK):  # renaming would not ask
        raise PermissionError(errno.EACCES, "the file is read-only")


def _replace(target: Path, part: Path) -> None:
    if target.exists():
        part.chmod(target.stat().st_mode & 0o7777)
    part.replace(target)


@contextmanager
def _in_plain_words(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _refusal(path, error) from None


def _refusal(path: str | os.PathLike[str], error: OSError | ValueError) -> BadInput:
    if isinstance(error, IsADirectoryError):
        return BadInput(f"{path} is a directory; name a file to write")
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not Path(path).parent.is_dir():
        return BadInput(f"{path} cannot be written: there is no directory {Path(path).parent}; make it first")
    if isinstance(error, PermissionError):
        return BadInput(f"{path} cannot be written: no permission; ask for it, or write elsewhere")
    if isinstance(error, OSError) and error.errno in FULL:
        return BadInput(f"{path} cannot be written: {error.strerror}; make room, or write elsewhere")
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return BadInput(f"{path} cannot be written: {reason}; write elsewhere")


def _number(error: Exception) -> int:
    """The system's number for what went wrong, which polars only gives in words."""
    said = re.search(r"\(os error (\d+)\)", str(error))
    return int(said[1]) if said else getattr(error, "errno", None) or 0


def _csv(frame: pl.DataFrame, file: BinaryIO, separator: str = ",") -> None:
    frame.write_csv(file, separator=separator)


def _tsv(frame: pl.DataFrame, file: BinaryIO) -> None:
    _csv(frame, file, "\t")


def _parquet(frame: pl.DataFrame, file: BinaryIO) -> None:
    frame.write_parquet(file)


def _jsonl(frame: pl.DataFrame, file: BinaryIO) -> None:
    frame.write_ndjson(file)


Writer = Callable[[pl.DataFrame, BinaryIO], None]
WRITERS: dict[str, Writer] = {
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
    "jsonl": _jsonl,
    "ndjson": _jsonl,
}


def format_of(path: str | os.PathLike[str], format: str | None, known: dict[str, str]) -> str:
    """The format by name, else by the path's extension; what has none, standard output or a device, gets CSV."""
    if format is not None:
        if format not in known.values():
            raise unknown("format", format, dict.fromkeys(known.values()))
        return format
    suffix = Path(path).suffix.lower()
    if suffix not in known and is_direct(path):
        return "csv"
    if suffix not in known:
        raise BadInput(f"{path} has no extension that tells its format; end it in {', '.join(known)}")
    return known[suffix]


def frame_writer(path: str | os.PathLike[str], format: str | None = None) -> Writer:
    """What writes a frame as CSV, TSV, Parquet or JSON lines, by the path's extension unless the format is given."""
    return WRITERS[format_of(path, format, {f".{name}": name for name in WRITERS})]


def write_frame(frame: pl.DataFrame, path: str | os.PathLike[str], format: str | None = None) -> None:
    """A frame as CSV, TSV, Parquet or JSON lines, by the path's extension unless the format is given."""
    write = frame_writer(path, format)
    with writing(path) as file:
        write(frame, file)
