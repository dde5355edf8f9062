"""What --set NAME=VALUE says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from voxpop.cli.checks import checked
from voxpop.errors import BadOption


def settings(texts: Sequence[str], parse: Callable[[str, str], Any]) -> dict[str, Any]:
    """Values by name (a dash in a name is an underscore)."""
    pairs = checked(*(partial(_pair, text, parse) for text in texts))
    names = [name for name, _ in pairs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadOption(*(f"--set gives {name} more than once; give it once" for name in sorted(twice)))
    return dict(pairs)


def _pair(text: str, parse: Callable[[str, str], Any]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not name:
        raise BadOption(f"--set {text} is not of the form NAME=VALUE, such as --set seed=1")
    return name, parse(name, value)
