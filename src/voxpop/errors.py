"""The tree of errors and warnings. Every message says what is wrong, where, and what to do."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

_PACKAGE = os.path.dirname(__file__)


class VoxError(Exception):
    """Base of all our errors; ``problems`` lists everything that was found, the message shows the first."""

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(problems)
        more = len(problems) - 1
        super().__init__(problems[0] + (f" (and {more} more)" if more else "") if problems else "")


class BadInput(VoxError, ValueError):
    """The data cannot be read as what it claims to be."""


class BadOption(VoxError, ValueError):
    """An option has a value that it cannot have."""


class UnknownName(VoxError, KeyError):
    """A method, option, task, worker or class that does not exist."""

    __str__ = Exception.__str__  # KeyError would quote the message


class TooLarge(VoxError, MemoryError):
    """What was asked for would not fit in memory; the message names what does."""


class RunFailed(VoxError, RuntimeError):
    """A run that failed on good input."""


class VoxWarning(UserWarning):
    """Something the user should know about the data or the answer."""


class DataWarning(VoxWarning):
    """The votes leave something unknowable (one class, one worker, ...)."""


def warn(message: str, category: type[VoxWarning] = DataWarning) -> None:
    """Warn at the first line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level - 1)


def unknown(kind: str, name: object, known: Iterable[object], remedy: str = "") -> UnknownName:
    """An error for a name that is not among the known ones, with the nearest of them."""
    names = [str(k) for k in known]
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean '{near[0]}'?"
    elif names:
        hint = "known: " + ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    else:
        hint = "there are none"
    return UnknownName(f"unknown {kind} '{name}': {hint}{' ' + remedy if remedy else ''}")
