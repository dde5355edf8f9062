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
    """A named crowd; ``workers`` and ``classes`` are how many it has unless told.

    ``crew`` says how many workers it has where that depends on (tasks, votes per task, options); ``workers`` is
    then what it says for 1,000 tasks.
    """

    name: str
    build: Callable[..., Crowd]
    workers: int = 50
    classes: int = 4
    crew: Callable[[int, float | None, Mapping[str, Any]], int] | None = None

    @property
    def about(self) -> str:
        """What it is, in one line."""
        return (self.build.__doc__ or "").partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults."""
        parameters = inspect.signature(self.build).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def check(self, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in self.options:
                raise unknown("option", name, self.options, f"(of the kind '{self.name}')")

    def size(self, tasks: int, votes_per_task: float | None, options: Mapping[str, Any]) -> int:
        """How many workers it has unless told."""
        return self.workers if self.crew is None else self.crew(tasks, votes_per_task, options)

    def crowd(self, setting: Setting, options: Mapping[str, Any]) -> Crowd:
        return self.build(setting, **options)
