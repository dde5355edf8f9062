"""Paths on the command line: what is wrong with one is said by those who open it, not by the parser."""

from __future__ import annotations

from functools import partial

import typer

FileArgument = partial(typer.Argument, readable=False)
FileOption = partial(typer.Option, readable=False)
