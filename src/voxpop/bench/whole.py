"""An experiment from its name to its files: the cells, the figures and the page, all in one directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from voxpop.bench.claims import Claim
from voxpop.bench.data import load
from voxpop.bench.experiment import Experiment, Part, Settings, cells_of
from voxpop.bench.figures import as_bytes, figure
from voxpop.bench.page import judged, page
from voxpop.bench.results import Results
from voxpop.bench.running import run
from voxpop.bench.store import Store
from voxpop.errors import BadOption, unknown

FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Work:
    """One experiment with one setting; its files begin with the experiment, the data, and "quick" if it is."""

    experiment: Experiment
    settings: Settings
    directory: Path
    only: Sequence[str] = ()  # names of parts; none: all

    def __post_init__(self) -> None:
        if self.settings.on not in self.experiment.data:
            raise unknown(f"data for {self.experiment.name}", self.settings.on, self.experiment.data)
        if not self.parts:
            raise BadOption(f"{self.experiment.name} has nothing to measure on {self.settings.on}")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        known = {part.name: part for part in self.experiment.parts(self.settings)}
        for name in self.only:
            if name not in known:
                raise unknown(f"part of {self.experiment.name} on {self.settings.on}", name, known)
        return tuple(part for name, part in known.items() if not self.only or name in self.only)

    @property
    def stem(self) -> str:
        return "-".join([self.experiment.name, self.settings.on, *(["quick"] if self.settings.quick else [])])

    @cached_property
    def store(self) -> Store:
        return Store(self.directory / f"{self.stem}.jsonl", self.settings.facts)

    @property
    def missing(self) -> int:
        """Cells that are not finished."""
        return sum(cell not in self.store.rows for cell in cells_of(self.parts, self.settings.seeds))

    def check(self) -> None:
        """Whether the data are there and the directory is ours to write in, before anything takes long."""
        load(self.settings.on, self.settings.folder)
        _ = self.store

    def measure(self, jobs: int = 1) -> None:
        run(self.parts, self.settings, self.store, jobs)

    @property
    def results(self) -> Mapping[str, Results]:
        """By part; seeds above those asked for, of an earlier run, do not count."""
        rows = list(self.store.rows.values())
        return {
            part.name: Results((r for r in rows if r.cell.seed < (part.seeds or self.settings.seeds)), part.name)
            for part in self.parts
        }

    @property
    def claims(self) -> list[Claim]:
        return [claim for part in self.parts for claim in judged(part, self.results[part.name])]

    def write(self) -> list[Path]:
        """The figures, and the page that shows them: their paths."""
        from voxpop.io.write import writing

        results, written = self.results, []
        for part in self.parts:
            drawn = figure(part, results[part.name])
            for format in FORMATS:
                written.append(self._file(f"-{part.name}.{format}"))
                with writing(written[-1]) as file:
                    file.write(as_bytes(drawn, format))
        images = {part.name: self._file(f"-{part.name}.png").name for part in self.parts}
        written.append(self._file(".md"))
        with writing(written[-1]) as file:
            file.write(page(self.experiment, self.settings, self.parts, results, images).encode())
        return written

    def _file(self, ending: str) -> Path:
        return self.directory / f"{self.stem}{ending}"
