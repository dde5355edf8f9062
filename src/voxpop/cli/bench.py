"""voxpop bench: the papers' experiments, on data at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.errors import INTERRUPTED, say
from voxpop.cli.paths import FileOption
from voxpop.cli.show import console, printing, show_table
from voxpop.engines.bars import progress

if TYPE_CHECKING:
    from voxpop.bench.whole import Work


def experiment_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from voxpop.bench.experiments import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def data_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from voxpop.bench.experiment import DATA

    return [name for name in DATA if name.startswith(incomplete)]


def bench(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Which experiment; without, they are listed.", autocompletion=experiment_names
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and epochs: minutes instead of hours.")] = False,
    on: Annotated[
        str | None,
        typer.Option(
            help="Which data: digits, fashion, cats-and-dogs, cifar10n, labelme.",
            show_default="digits",
            autocompletion=data_names,
        ),
    ] = None,
    data: Annotated[
        Path | None, FileOption(envvar="VOXPOP_DATA", help="The folder that holds labelme/ and cifar10n/.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How often each is measured.", show_default="5")] = None,
    model: Annotated[
        str | None, typer.Option(help="The network: linear, mlp, mlp:100, cnn, resnet.", show_default="mlp")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the tasks.", show_default="the experiment's")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes measure, of one thread each.")] = 1,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="PART", help="Only this part; may be repeated.")
    ] = None,
    output: Annotated[
        Path, FileOption("-o", "--output", help="The directory for what is measured, figures, and the page.")
    ] = Path("bench"),
) -> None:
    """Rerun a paper's experiment, draw its figure with the paper's numbers beside ours, say which claims hold.

    What is finished is kept: the same command goes on after a kill, or adds seeds.

    Example: voxpop bench maxmig --quick -o results
    """
    if name is None:
        _list()
        return
    given = {"on": on, "folder": None if data is None else str(data), "seeds": seeds, "model": model, "epochs": epochs}
    work = _work(name, quick, given, only or [], output)
    try:
        with progress(f"{name} on {work.settings.on}"):
            work.measure(jobs)
    except KeyboardInterrupt:
        say(f"interrupted: what is finished is kept in {work.store.path}; the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    written = work.write()
    with printing():
        _show(work)
        console().print("written: " + ", ".join(map(str, written)))


def _work(name: str, quick: bool, given: dict[str, Any], only: list[str], output: Path) -> Work:
    from dataclasses import replace

    from voxpop.bench.experiments import find
    from voxpop.bench.whole import Work
    from voxpop.learn.networks import preset

    experiment = find(name)
    base = experiment.quick if quick else experiment.defaults
    settings = replace(base, **{option: value for option, value in given.items() if value is not None})
    preset(settings.model)  # that there is one of this name
    work = Work(experiment, settings, output, tuple(only))
    work.check()
    return work


def _show(work: Work) -> None:
    from voxpop.bench.page import judged, table

    out = console()
    for part in work.parts:
        results = work.results[part.name]
        for measure in part.measures:
            columns, rows = table(part, results, measure)
            if rows:
                brackets = f", {part.beside} in brackets" if part.published else ""
                show_table(out, columns, rows, f"{part.title}: {measure}{brackets}")
        for claim in judged(part, results):
            out.print(f"{claim.verdict}: {claim.text}: {claim.evidence}")
        for failure in results.failures:
            out.print(f"failed: {failure}")
        out.print()


def _list() -> None:
    from voxpop.bench.experiments import NAMES, find

    with printing():
        out = console()
        found = [find(name) for name in NAMES]
        show_table(out, ("experiment", "paper", "what it is about"), [(e.name, e.paper, e.about) for e in found])
        out.print("'voxpop bench NAME --quick' takes minutes; without --quick, hours.")
