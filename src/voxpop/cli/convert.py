"""voxpop convert: the export of a labelling tool as a table of votes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from voxpop.cli.checks import checked
from voxpop.cli.errors import say
from voxpop.cli.outputs import Tables
from voxpop.cli.paths import FileArgument, FileOption
from voxpop.cli.reading import check_source, say_dropped, source_names
from voxpop.engines.bars import progress


class ListsSources(TyperCommand):
    """Its help ends with the names of the sources, which are only looked up then."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = "Sources: " + ", ".join(source_names(""))
        super().format_help(ctx, formatter)


def convert(
    source: Annotated[
        str, typer.Argument(help="What wrote the export; the names are below.", autocompletion=source_names)
    ],
    export: Annotated[Path, FileArgument(help="The file, or - for stdin.")],
    votes: Annotated[Path, FileArgument(help="Where the votes go: .csv, .tsv, .parquet, .jsonl, or - for stdout.")],
    question: Annotated[str | None, typer.Option(help="Which question, where the export has several.")] = None,
    predictions: Annotated[bool, typer.Option("--predictions", help="Models vote too, each as a worker.")] = False,
    task: Annotated[
        str | None, typer.Option(metavar="FIELD", help="The field that names the task, if not the tool's own id.")
    ] = None,
    gold_out: Annotated[Path | None, FileOption(help="Where gold answers go: task, label.")] = None,
) -> None:
    """Turn the export of a labelling tool into votes: task, worker, label.

    What was left out (cancelled, rejected, empty, ...) is counted on stderr.

    Example: voxpop convert label-studio export.json votes.csv --question sentiment
    """
    from voxpop.io import load

    outputs = Tables({"VOTES": votes, "--gold-out": gold_out}, inputs=[export])
    checked(partial(check_source, source), outputs.check)
    with progress(f"reading {export}"):
        found = load(str(export), source, question, predictions, task)
    outputs.write({"VOTES": found.votes, "--gold-out": found.gold})
    say_dropped(found.dropped)
    if gold_out is not None and found.gold.is_empty():
        say(f"note: {export} has no gold answers, so {gold_out} has no rows")
