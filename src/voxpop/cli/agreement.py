"""voxpop agreement: how far the votes agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from voxpop.cli import reading as r
from voxpop.cli.checks import checked
from voxpop.cli.show import console, printing, show_json, show_table
from voxpop.engines.bars import progress

if TYPE_CHECKING:
    from voxpop.audit import Agreement

Metric = Literal["nominal", "ordinal", "interval"]


def agreement(
    votes: r.VotesFile,
    metric: Annotated[
        Metric, typer.Option(help="How far apart two labels are, for alpha; the last two need labels that are numbers.")
    ] = "nominal",
    level: Annotated[float, typer.Option(help="How much of the resamples the intervals hold.")] = 0.9,
    resamples: Annotated[int, typer.Option(help="How many times the tasks are resampled.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same intervals.")] = 0,
    source: r.SourceName = None,
    question: r.Question = None,
    predictions: r.Predictions = False,
    task: r.TaskColumn = "task",
    worker: r.WorkerColumn = "worker",
    label: r.LabelColumn = "label",
    ignore: r.Ignore = None,
    missing: r.OnMissing = "error",
    repeats: r.OnRepeats = "keep",
    classes: r.Classes = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, for machines.")] = False,
) -> None:
    """Measure how far the votes agree: Krippendorff's alpha, Fleiss' kappa, and the share of pairs that agree.

    Example: voxpop agreement votes.csv
    """
    from voxpop.audit import agreement as measure

    where = r.Reading(votes, source, question, predictions, task, worker, label, ignore, missing, repeats, classes)
    checked(where.check)
    with progress(f"reading {votes}"):
        found = measure(where.votes(), level, resamples, seed, metric)
    with printing():
        show_json(found.to_dict()) if as_json else _show(found)


def _show(found: Agreement) -> None:
    out = console()
    measures = {
        f"Krippendorff's alpha ({found.metric})": found.alpha,
        "Fleiss' kappa": found.kappa,
        "pairs of votes that agree": found.agreeing_pairs,
    }
    rows = [(name, e.value, e.low, e.high) for name, e in measures.items()]
    show_table(out, ("agreement", "value", f"{found.level:.0%} from", "to"), rows)
    out.print(
        f"{found.compared_votes:,} of {found.votes:,} votes can be compared: "
        f"those on the {found.compared_tasks:,} tasks with two votes or more"
    )
