"""What an experiment is: parts, each of cases x methods x seeds, and what they are to show.

The smallest one::

    def parts(settings):
        return (Part("votes", "accuracy by votes a task", ("1", "3", "5"), ("majority-vote", "glad"), measure),)

    def measure(settings, case, method, seed):
        trial = Trial.voted(load(settings.on, settings.folder, seed), "believable", seed, votes_per_task=int(case))
        return infer(trial, method)

    EXPERIMENT = Experiment("votes", "Whoever, year", "What it is about.", parts)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voxpop.bench.claims import Claim
    from voxpop.bench.results import Results

DATA = ("digits", "fashion", "cats-and-dogs", "cifar10n", "labelme")


@dataclass(frozen=True)
class Settings:
    """What a run is told. Everything but seeds and folder decides what a cell measures."""

    on: str = "digits"  # which data
    folder: str | None = None  # where data sets are that do not come with a package
    seeds: int = 5
    epochs: int | None = 30  # none: held-out votes decide
    model: str = "mlp"
    quick: bool = False  # parts may leave something out

    @property
    def facts(self) -> dict[str, object]:
        """What must be the same for a run to be gone on with."""
        return {"on": self.on, "epochs": self.epochs, "model": self.model, "quick": self.quick}


Run = Callable[[Settings, str, str, int], Mapping[str, float]]  # (settings, case, method, seed) -> measures
Key = tuple[str, str, str]  # case, method, measure


def none_claimed(results: Results) -> list[Claim]:
    return []


@dataclass(frozen=True)
class Part:
    """One figure and its table: every method in every case, once for each seed.

    ``run`` measures one of them and must be importable (a function of a module, or a ``partial`` of one), since it may
    run in another process. Where all cases are numbers they are an axis, and a method is a line along it.
    """

    name: str  # of its files
    title: str
    cases: tuple[str, ...]
    methods: tuple[str, ...]
    run: Run
    measures: tuple[str, ...] = ("classifier",)  # those shown; ``run`` may find more, for claims
    axis: str = "case"  # what cases are
    unit: str = "accuracy"  # what is measured
    shares: bool = True  # measures are shares, and shown in points of 100
    seeds: int | None = None  # instead of the settings'
    together: bool = False  # whether one run measures all cases: a curve, its measures named "measure@case"
    left_out: frozenset[tuple[str, str]] = frozenset()  # (case, method) that say nothing
    published: Mapping[Key, float] = field(default_factory=dict)  # the paper's numbers, where its text gives them
    beside: str = "the paper"  # whose numbers those are
    claims: Callable[[Results], list[Claim]] = none_claimed
    draw: Callable[[Axes, Part, Results, str], None] | None = None  # one measure, instead of means with intervals

    @property
    def numeric(self) -> bool:
        """Whether cases are numbers along an axis."""
        return len(self.cases) > 1 and all(_is_number(case) for case in self.cases)


TOGETHER = "all"  # the case of a run that measures every case


@dataclass(frozen=True)
class Cell:
    part: str
    case: str
    method: str
    seed: int


@dataclass(frozen=True)
class Experiment:
    """``parts`` may depend on the settings: on the data, or on whether the run is to be quick."""

    name: str
    paper: str
    about: str
    parts: Callable[[Settings], tuple[Part, ...]]
    defaults: Settings = Settings()
    quick: Settings = Settings(seeds=2, epochs=15, quick=True)
    data: tuple[str, ...] = DATA  # on which it can be run


def cells_of(parts: tuple[Part, ...], seeds: int) -> list[Cell]:
    """All cells, seed by seed: a run that is stopped early has something of everything."""
    most = max((part.seeds or seeds for part in parts), default=0)
    return [
        Cell(part.name, case, method, seed)
        for seed in range(most)
        for part in parts
        for case in ((TOGETHER,) if part.together else part.cases)
        for method in part.methods
        if seed < (part.seeds or seeds) and (case, method) not in part.left_out
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
