"""voxpop simulate: votes of a crowd whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.checks import checked
from voxpop.cli.outputs import Tables
from voxpop.cli.paths import FileOption
from voxpop.cli.settings import settings
from voxpop.cli.show import as_option, console, plain, printing, show_json, show_table
from voxpop.engines.bars import progress
from voxpop.errors import BadOption, unknown

if TYPE_CHECKING:
    from voxpop.simulate import Kind


def kind_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from voxpop.simulate import KINDS

    return [name for name in KINDS if name.startswith(incomplete)]


def simulate(
    kind: Annotated[
        str | None, typer.Argument(help="What kind of crowd (see --list).", autocompletion=kind_names)
    ] = None,
    output: Annotated[
        Path, FileOption("-o", "--output", help="Where the votes go: .csv, .parquet, ..., or - for stdout.")
    ] = Path("-"),
    tasks: Annotated[int, typer.Option(help="How many tasks.")] = 1000,
    workers: Annotated[int | None, typer.Option(help="How many workers.", show_default="the kind's")] = None,
    classes: Annotated[int | None, typer.Option(help="How many classes.", show_default="the kind's")] = None,
    votes_per_task: Annotated[
        float | None, typer.Option(help="How many votes a task gets, on average.", show_default="the kind's")
    ] = None,
    assignment: Annotated[
        str | None, typer.Option(help="Who votes on what: see --list.", show_default="the kind's")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same votes.")] = 0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the kind; may be repeated.")
    ] = None,
    truth_out: Annotated[Path | None, FileOption(help="Where the truth goes: task, label.")] = None,
    workers_out: Annotated[
        Path | None, FileOption(help="Where it goes what each worker is: worker, kind, accuracy.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the kinds with their options, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: JSON on stdout.")] = False,
) -> None:
    """Simulate the votes of a crowd, with the truth that no real crowd tells.

    Example: voxpop simulate spammers -o votes.csv --truth-out truth.csv --set share=0.4
    """
    if list_:
        _list(as_json)
        return
    if as_json:
        raise BadOption("--json goes with --list only; the votes are written to the file that -o names")
    if kind is None:
        raise BadOption("which kind of crowd? Name one, such as 'voxpop simulate believable'; --list lists them")
    outputs = Tables({"--output": output, "--truth-out": truth_out, "--workers-out": workers_out})
    options, _ = checked(partial(_options, kind, set_ or ()), outputs.check)
    from voxpop.simulate import simulate as simulated

    with progress(f"simulating {kind}"):
        found = simulated(
            tasks, workers, classes, kind, seed, votes_per_task=votes_per_task, assignment=assignment, **options
        )
    outputs.write(
        {
            "--output": found.votes.to_frame(),
            "--truth-out": found.truth_frame(),
            "--workers-out": found.worker_frame(),
        }
    )


def _options(kind: str, texts: Sequence[str]) -> dict[str, Any]:
    """The options of the kind that --set gives, in the types of their defaults."""
    from voxpop.options import parsed
    from voxpop.simulate import KINDS

    if kind not in KINDS:
        raise unknown("kind of crowd", kind, KINDS, "'voxpop simulate --list' lists them")
    defaults = settable(KINDS[kind])

    def parse(name: str, text: str) -> Any:
        if name not in defaults:
            raise unknown(f"option of the kind {kind}", name, defaults)
        return parsed(text, defaults[name])

    return settings(texts, parse)


def settable(kind: Kind) -> dict[str, Any]:
    """Its options and their defaults, without those that take arrays, which Python can give."""
    return {name: default for name, default in kind.options.items() if default is not None}


def _list(as_json: bool) -> None:
    from voxpop.simulate import ASSIGNMENTS, KINDS

    facts = [
        {
            "name": kind.name,
            "about": kind.about,
            "workers": kind.workers,
            "classes": kind.classes,
            "options": plain(settable(kind)),
        }
        for kind in KINDS.values()
    ]
    with printing():
        if as_json:
            show_json({"kinds": facts, "assignments": list(ASSIGNMENTS)})
            return
        out = console()
        rows = [(f["name"], f["about"], _in_words(f["options"])) for f in facts]
        show_table(out, ("kind", "what it is", "options and their defaults"), rows)
        out.print(f"assignments: {', '.join(ASSIGNMENTS)}")


def _in_words(options: dict[str, Any]) -> str:
    return " ".join(f"{name}={as_option(default)}" for name, default in options.items())
