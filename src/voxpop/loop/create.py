"""Making a loop: its directory is made aside and renamed, so that there is a whole one or none."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from voxpop.errors import BadInput
from voxpop.loop.schema import FILE, create, in_plain_words
from voxpop.loop.store import Store


@contextmanager
def made_whole(directory: Path) -> Iterator[Path]:
    """A directory to fill, which takes its place once the block has ended well; otherwise nothing is left of it."""
    check_free(directory)
    part = directory.resolve().with_name(f".voxpop-{secrets.token_hex(8)}.part")
    try:
        part.mkdir()
        yield part
        _to_disk(part)
        part.rename(directory.resolve())
        _to_disk(directory.resolve().parent)
    except OSError as error:
        raise _refusal(directory, error) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)  # gone already where all went well


def check_free(directory: Path) -> None:
    """Nothing is there yet, or an empty directory."""
    if (directory / FILE).exists():
        raise BadInput(f"{directory} is a loop already; tell it more with 'voxpop loop tell', or choose another place")
    if directory.is_dir():
        if any(directory.iterdir()):
            raise BadInput(f"{directory} is not empty; choose a directory that is, or that is not there yet")
    elif directory.exists():
        raise BadInput(f"{directory} is a file; choose a directory that is not there yet")
    elif not directory.resolve().parent.is_dir():
        raise BadInput(f"{directory} cannot be made: there is no directory {directory.parent}; make it first")


def fill(directory: Path, tasks: pl.Series, classes: pl.Series, settings: Mapping[str, Any]) -> Store:
    """The database of a new loop, without votes and workers."""
    connection = create(directory / FILE)
    with in_plain_words(directory):
        connection.execute("BEGIN")
        for table, names in (("task", tasks), ("class", classes)):
            connection.executemany(f"INSERT INTO {table} (number, name) VALUES (?, ?)", enumerate(names))
        connection.executemany("INSERT INTO setting VALUES (?, ?)", _texts(settings.items()))
        connection.execute("COMMIT")
    return Store(directory, connection)


def _texts(settings: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in settings if value is not None]


def _to_disk(path: Path) -> None:
    """The files of a directory, and their names."""
    files = [file for file in path.iterdir() if file.is_file()] if path.suffix == ".part" else []
    for file in (*files, path):
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _refusal(directory: Path, error: OSError) -> BadInput:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return BadInput(f"{directory} cannot be made: no permission; ask for it, or choose another place")
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return BadInput(f"{directory} was made by somebody else meanwhile; choose another place")
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return BadInput(f"{directory} cannot be made: {error.strerror}; make room, or choose another place")
    return BadInput(f"{directory} cannot be made: {error.strerror or error}; choose another place")
