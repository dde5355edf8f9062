"""Tables and lines for people, on stdout: plain and unwrapped where that is not a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from voxpop.cli.errors import describe, one_line
from voxpop.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console

UNWRAPPED = 10_000  # columns


def console() -> Console:
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # the BrokenPipeError that rich has caught; it would exit with 1

    width = None if sys.stdout.isatty() else UNWRAPPED
    return Plain(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


@contextmanager
def printing() -> Iterator[None]:
    """What is printed in this block arrives on stdout, or an error says why not.

    Who reads may stop when it has read enough: no more is printed then, and files are written all the same.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise BadInput(f"standard output: {describe(error)}") from None


def show_table(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Numbers to the right and with three digits, everything else to the left."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False)
    for i, column in enumerate(columns):
        numeric = all(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(shown, row))
    if title:
        out.print(title, style="bold")
    out.print(table)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else one_line(str(value))


def show_json(document: Any) -> None:
    """One JSON object or list on stdout."""
    print(to_json(document))


def to_json(document: Any) -> str:
    """A document as JSON text; what is not a number is null."""
    return json.dumps(plain(document), indent=2, allow_nan=False)


def as_option(value: Any) -> str:
    """A value as --set takes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(as_option, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
