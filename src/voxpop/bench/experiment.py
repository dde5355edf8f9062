"""What an experiment is: parts, each of cases x methods x seeds, and what they are to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxpop.bench.claims import Claim
    from voxpop.bench.results import Results


@dataclass(frozen=True)
class Settings:
    """What a run is told; everything but ``seeds`` must be the same for a run to be gone on with."""

    on: str = "digits"  # which data
    folder: str | None = None  # where data sets are that do not come with a package
    seeds: int = 5
    epochs: int = 30
    model: str = "mlp"
    quick: bool = False

    @property
    def facts(self) -> dict[str, object]:
        """What decides a cell's outcome."""
        return {"on": self.on, "epochs": self.epochs, "model": self.model, "quick": self.quick}


Run = Callable[[Settings, str, str, int], Mapping[str, float]]  # (settings, case, method, seed) -> measures
Key = tuple[str, str, str]  # case, method, measure


@dataclass(frozen=True)
class Part:
    """One figure or table: every method in every case, once for each seed."""

    name: str
    title: str
    cases: tuple[str, ...]
    methods: tuple[str, ...]
    run: Run
    measures: tuple[str, ...] = ("classifier",)
    axis: str = "case"
    seeds: int | None = None  # instead of the settings'
    left_out: frozenset[tuple[str, str]] = frozenset()  # (case, method) that say nothing
    published: Mapping[Key, float] = field(default_factory=dict)  # the paper's numbers, where its text gives them
    claims: Callable[[Results], list[Claim]] = lambda results: []


@dataclass(frozen=True)
class Cell:
    part: str
    case: str
    method: str
    seed: int


@dataclass(frozen=True)
class Experiment:
    name: str
    paper: str
    about: str
    parts: Callable[[Settings], tuple[Part, ...]]
    defaults: Settings = Settings()
    quick: Settings = Settings(seeds=2, epochs=15, quick=True)


def cells_of(parts: tuple[Part, ...], seeds: int) -> list[Cell]:
    """All cells, seed by seed: a run that is stopped early has something of everything."""
    most = max((part.seeds or seeds for part in parts), default=0)
    return [
        Cell(part.name, case, method, seed)
        for seed in range(most)
        for part in parts
        for case in part.cases
        for method in part.methods
        if seed < (part.seeds or seeds) and (case, method) not in part.left_out
    ]
