"""voxpop aggregate: votes in, truth out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli import reading as r
from voxpop.cli.checks import checked
from voxpop.cli.choosing import DEFAULT, chosen_method, method_names
from voxpop.cli.errors import say
from voxpop.cli.outputs import STDOUT, Outputs
from voxpop.cli.paths import FileOption
from voxpop.cli.show import console, printing, to_json
from voxpop.cli.summary import document, in_words, show_summary
from voxpop.engines.bars import progress
from voxpop.errors import BadOption

if TYPE_CHECKING:
    import polars as pl

    from voxpop.io.write import Writer
    from voxpop.results import Consensus

OUT = "Writing what was found"


def aggregate(
    votes: r.VotesFile,
    output: Annotated[
        Path | None,
        FileOption(
            "-o",
            "--output",
            rich_help_panel=OUT,
            help="task, label, confidence, votes, tie: .csv, .tsv, .parquet, .jsonl, .json (for Label Studio), "
            "or - for CSV on stdout. Without it, stdout gets a summary.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option("-m", "--method", help="See 'voxpop methods'.", autocompletion=method_names),
    ] = DEFAULT,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of the method, see 'voxpop methods NAME'; may be repeated.",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        FileOption(
            help="Known answers (task, label) that are taken as certain. Without it, gold answers that came with "
            "the export are, and stderr says so."
        ),
    ] = None,
    no_gold: Annotated[
        bool, typer.Option("--no-gold", help="Leave gold answers that came with the export out.")
    ] = False,
    truth: Annotated[
        Path | None,
        FileOption(
            help="Known answers (task, label) to evaluate with: accuracy, F1, calibration. They never reach the method."
        ),
    ] = None,
    workers_out: Annotated[
        Path | None,
        FileOption(
            rich_help_panel=OUT, help="A judgement of every worker: worker, votes, accuracy, its 90% interval, ..."
        ),
    ] = None,
    report: Annotated[Path | None, FileOption(rich_help_panel=OUT, help="A page to look at, as one HTML file.")] = None,
    save: Annotated[Path | None, FileOption(rich_help_panel=OUT, help="Everything, for voxpop.load in Python.")] = None,
    beliefs: Annotated[
        bool, typer.Option("--beliefs", rich_help_panel=OUT, help="Add the belief in every class to --output.")
    ] = False,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            rich_help_panel=OUT,
            help="The format of --output (csv, tsv, parquet, jsonl, label-studio), if not by its extension.",
        ),
    ] = None,
    from_name: Annotated[
        str | None,
        typer.Option(rich_help_panel=OUT, help="For Label Studio: the control's name in the labelling interface."),
    ] = None,
    to_name: Annotated[
        str | None,
        typer.Option(rich_help_panel=OUT, help="For Label Studio: the object's name in the labelling interface."),
    ] = None,
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
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            rich_help_panel=OUT,
            help="JSON on stdout instead of the summary: all facts, also the labels and workers that no file gets.",
        ),
    ] = False,
) -> None:
    """Find the truth behind the votes, how sure it is, and who can be trusted.

    Example: voxpop aggregate votes.csv -o consensus.csv --workers-out workers.csv
    """
    from voxpop.engines.outcome import Status
    from voxpop.results.store import write

    where = r.Reading(votes, source, question, predictions, task, worker, label, ignore, missing, repeats, classes)
    outputs = Outputs(
        {
            "--output": output,
            "--workers-out": workers_out,
            "--report": report,
            "--save": save,
            "--json": Path(STDOUT) if as_json else None,
        },
        inputs=(votes, gold, truth),
    )
    interface = {name: value for name, value in (("from_name", from_name), ("to_name", to_name)) if value is not None}
    chosen, _, write_consensus, write_workers, *_ = checked(
        partial(chosen_method, method, set_ or ()),
        outputs.check,
        partial(_consensus_writer, output, output_format, interface),
        partial(_workers_writer, workers_out),
        partial(_check_together, outputs, votes, gold, no_gold, truth, beliefs),
        where.check,
    )
    with progress(f"reading {votes}"):
        data = where.votes()
        certain = r.gold_answers(data, gold, no_gold)
        right = None if truth is None else r.read_truth(truth, data)
    with progress(f"aggregating by {method}"):
        found = chosen.infer(data, certain)
    if found.status in (Status.OUT_OF_STEPS, Status.DEGENERATE):
        say(f"warning: {found.method} {found.status}")
    scores = None if right is None else found.evaluate(right)
    page = None if report is None else _page(found, right)
    with outputs.writing() as files:
        if "--output" in files:
            write_consensus(found.to_frame(beliefs), files["--output"])
        if "--workers-out" in files:
            write_workers(found.workers, files["--workers-out"])
        if page is not None:
            files["--report"].write(page.encode())
        if "--save" in files:
            write(found, files["--save"])
        if "--json" in files:
            files["--json"].write(to_json(document(found, scores, outputs.files, beliefs)).encode() + b"\n")
        elif not outputs.to_stdout:
            with printing():
                show_summary(console(), found, scores)
        elif scores is not None:
            say(f"note: against the truth: {in_words(scores)}")


def _consensus_writer(output: Path | None, format: str | None, interface: dict[str, str]) -> Writer | None:
    from voxpop.io import consensus_writer

    if output is not None:
        return consensus_writer(output, format, **interface)
    if format is not None or interface:
        raise BadOption("--format, --from-name and --to-name say how --output is written; name a file with -o")
    return None


def _workers_writer(workers_out: Path | None) -> Writer | None:
    from voxpop.io import frame_writer

    return None if workers_out is None else frame_writer(workers_out)


def _check_together(
    outputs: Outputs, votes: Path, gold: Path | None, no_gold: bool, truth: Path | None, beliefs: bool
) -> None:
    """Options that contradict each other, or would do nothing."""
    problems = []
    if [str(path) for path in (votes, gold, truth)].count(STDOUT) > 1:
        problems.append("standard input can be read only once; give a file instead of one -")
    if gold is not None and no_gold:
        problems.append("--gold and --no-gold contradict each other; give one of them")
    if beliefs and not {"--json", "--output"} & set(outputs.places):
        problems.append("--beliefs says what --output or --json holds; give one of them")
    problems += [
        f"{option} cannot write to standard output; name a file"
        for option in ("--report", "--save")
        if str(outputs.places.get(option)) == STDOUT
    ]
    if problems:
        raise BadOption(*problems)


def _page(found: Consensus, truth: pl.DataFrame | None) -> str:
    from voxpop.report import html_page

    with progress("drawing the report"):
        return html_page(found, truth)
