"""A kind of crowd: a name, a line that describes it, and the function that makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from voxpop.errors import unknown
from voxpop.simulate.crowd import Crowd


@dataclass(frozen=True)
class Setting:
    """What a crowd is made for."""

    tasks: int  # N
    workers: int  # M
    classes: int  # K
    prior: Tensor  # K, the frequencies of the classes
    rng: torch.Generator


@dataclass(frozen=True)
class Kind:
    """A named crowd; ``workers`` and ``classes`` are how many it has unless told."""

    name: str
    build: Callable[..., Crowd]
    workers: int = 50
    classes: int = 4

    @property
    def about(self) -> str:
        """What it is, in one line."""
        return (self.build.__doc__ or "").partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults."""
        parameters = inspect.signature(self.build).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def crowd(self, setting: Setting, options: Mapping[str, Any]) -> Crowd:
        for name in options:
            if name not in self.options:
                raise unknown("option", name, self.options, f"(of the kind '{self.name}')")
        return self.build(setting, **options)
