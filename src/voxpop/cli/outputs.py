"""The files that a command writes: checked before the work, and written all or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from voxpop.cli.checks import checked
from voxpop.errors import BadInput, VoxError

if TYPE_CHECKING:
    import polars as pl

STDOUT = "-"


class Outputs:
    """Where each option of a command says that something goes."""

    def __init__(self, places: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
        self.places = {option: path for option, path in places.items() if path is not None}
        self.inputs = {os.path.realpath(path) for path in inputs if path is not None and str(path) != STDOUT}

    @property
    def to_stdout(self) -> bool:
        return any(str(path) == STDOUT for path in self.places.values())

    @property
    def files(self) -> dict[str, str]:
        """The paths by the option's name, as Python would spell it."""
        named = {option.lstrip("-").replace("-", "_"): str(path) for option, path in self.places.items()}
        return {name: path for name, path in named.items() if path != STDOUT}

    def check(self) -> None:
        """Every place can be written, and no two outputs, or an output and an input, are one file."""
        from voxpop.io.write import is_direct

        problems: list[str] = []
        taken: dict[str, str] = {}
        for option, path in self.places.items():
            place = _place(path)
            if place in taken:
                problems.append(f"{option} and {taken[place]} both write to {_named(path)}; they need two files")
            elif place in self.inputs:
                problems.append(f"{option} {path} would overwrite what is read; write to another file")
            elif not is_direct(path):
                problems += _refused(path)
            taken[place] = option
        if problems:
            raise BadInput(*problems)

    @contextmanager
    def writing(self) -> Iterator[dict[str, BinaryIO]]:
        """The files by option. They take their places when the block has ended well, otherwise none does."""
        from voxpop.io.write import is_direct, writing

        with ExitStack() as stack:  # the last to open is the first to close: what cannot be taken back goes first
            places = sorted(self.places.items(), key=lambda item: is_direct(item[1]))
            files = {option: stack.enter_context(writing(path)) for option, path in places}
            yield files
            for file in files.values():
                file.flush()


class Tables(Outputs):
    """Outputs that are all tables, each in the format of its extension."""

    def check(self) -> None:
        from voxpop.io import frame_writer

        checked(super().check, *(partial(frame_writer, path) for path in self.places.values()))

    def write(self, frames: Mapping[str, pl.DataFrame]) -> None:
        """Those frames that have a place."""
        from voxpop.io import frame_writer

        with self.writing() as files:
            for option, file in files.items():
                frame_writer(self.places[option])(frames[option], file)


class _OnlyAsking(Exception):
    pass


def _refused(path: Path) -> tuple[str, ...]:
    """Why a file cannot be written, found by beginning to write it."""
    from voxpop.io import writing

    try:
        with suppress(_OnlyAsking), writing(path):
            raise _OnlyAsking
    except VoxError as error:
        return error.problems
    return ()


def _place(path: Path) -> str:
    return STDOUT if str(path) == STDOUT else os.path.realpath(path)


def _named(path: Path) -> str:
    return "standard output" if str(path) == STDOUT else str(path)
