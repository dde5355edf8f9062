"""Which method, with which options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from voxpop.cli.settings import settings
from voxpop.errors import BadOption
from voxpop.methods.registry import METHODS, find

if TYPE_CHECKING:
    from voxpop.methods.base import Method

DEFAULT = "default"  # the one that ``voxpop.consensus`` uses
DEFAULT_SUMMARY = "chooses and averages models by how well each foretells votes that were held out"


def method_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in (DEFAULT, *METHODS) if name.startswith(incomplete)]


def method_class(name: str) -> type[Any]:
    """The class behind a name."""
    if name == DEFAULT:
        from voxpop.methods.default import Default

        return Default
    found: type[Any] = find(name, METHODS).load()
    return found


def chosen_method(name: str, set_: Sequence[str]) -> Method:
    """The method with the options that --set gives."""
    from voxpop.options import parse_option

    kind = method_class(name)
    options = settings(set_, partial(parse_option, kind))
    check_device(options.get("device"))
    made: Method = kind(**options)
    return made


def check_device(device: str | None) -> None:
    """That torch can compute there."""
    import torch

    if device is None:
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise BadOption(f"device={device} cannot be used ({reason}); leave it out for the CPU") from None
