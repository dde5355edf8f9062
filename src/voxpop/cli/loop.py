"""voxpop loop: ask, be told, ask again; the state is one directory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli import reading as r
from voxpop.cli.checks import checked
from voxpop.cli.errors import say
from voxpop.cli.outputs import Outputs
from voxpop.cli.paths import FileArgument, FileOption
from voxpop.cli.show import printing, show_json
from voxpop.engines.bars import progress
from voxpop.errors import BadOption

if TYPE_CHECKING:
    import polars as pl

    from voxpop.io.features import Features
    from voxpop.loop.loop import Loop

loop = typer.Typer()

Directory = Annotated[Path, FileArgument(metavar="DIR", show_default=False, help="The directory of the loop.")]


@loop.callback(invoke_without_command=True)
def explain(context: typer.Context) -> None:
    """A labelling loop that a team runs: ask what to label next and by whom, tell the answers, ask again.

    Example: voxpop loop init crowd --votes votes.csv
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@loop.command()
def init(
    directory: Annotated[Path, FileArgument(metavar="DIR", show_default=False, help="Where to make the loop.")],
    votes: Annotated[
        Path | None, FileOption("--votes", help="The votes so far, as 'voxpop aggregate' reads them.")
    ] = None,
    features: Annotated[
        Path | None,
        FileOption(
            help="Features of all tasks, old and new: .npz (x, tasks), a table, or a folder of images. They are copied."
        ),
    ] = None,
    pool: Annotated[
        Path | None, FileOption(help="Without features: further tasks to ask about, one a row in a column task.")
    ] = None,
    workers: Annotated[Path | None, FileOption(help="worker, cost, capacity, available; see 'loop tell'.")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            help="What is fitted to all votes now and then (see 'voxpop methods').",
            show_default="dalc with features, default without",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Its network, with features: linear, mlp, mlp:100, ...", show_default="mlp")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of it; may be repeated.")
    ] = None,
    worth: Annotated[
        float, typer.Option(help="What one more right label is worth, in the unit of the workers' costs.")
    ] = 100.0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    source: r.SourceName = None,
    question: r.Question = None,
    predictions: r.Predictions = False,
    task: r.TaskColumn = "task",
    worker: r.WorkerColumn = "worker",
    label: r.LabelColumn = "label",
    ignore: r.Ignore = None,
    missing: r.OnMissing = "error",
    classes: r.Classes = None,
) -> None:
    """Begin a loop: its votes so far, its tasks, and who may be asked.

    Example: voxpop loop init crowd --votes votes.csv --features pool.npz --workers workers.csv
    """
    from voxpop.loop.create import check_free
    from voxpop.loop.loop import Loop

    if votes is None and (classes is None or (features is None and pool is None)):
        raise BadOption("without --votes, give --classes, and --features or --pool: what to ask about, and what for")
    if features is not None and pool is not None:
        raise BadOption("--features and --pool both say what the tasks are; give one of them")
    checked(partial(r.check_source, source), partial(r.class_names, classes), partial(check_free, directory))
    with progress(f"making {directory}"):
        found = None
        if votes is not None:
            found = r.Reading(
                votes, source, question, predictions, task, worker, label, ignore, missing, "keep", classes
            ).votes()
        made = Loop.begin(
            directory,
            found,
            _features(features),
            tasks=None if pool is None else _pool(pool, task),
            workers=_workers(workers),
            classes=r.class_names(classes),
            method=method,
            model=model,
            options=set_ or (),
            worth=worth,
            seed=seed,
        )
    with made:
        taken = made.store.last
        if found is not None and taken < found.V:
            say(f"note: {found.V - taken:,} of the votes repeat another one of {votes}, and are counted once")
        with printing():
            print(_sizes(made))


@loop.command()
def ask(
    directory: Directory,
    k: Annotated[int, typer.Option("-k", help="How many votes to ask for.")] = 20,
    output: Annotated[
        Path, FileOption("-o", "--output", help="task, worker, score: .csv, .parquet, ...; - for stdout.")
    ] = Path("-"),
    lease: Annotated[
        str, typer.Option(metavar="TIME", help="What is asked is out for so long, and not asked again: 30m, 1h, 2d.")
    ] = "1h",
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, tsv, parquet, jsonl, if not by the extension; or label-studio, argilla: tasks to import.",
        ),
    ] = None,
) -> None:
    """Ask what to label next and by whom: the pairs that are worth most, for what they cost.

    Where no vote is worth its cost, the file has a header only, and stderr says why.

    Example: voxpop loop ask crowd -k 20 -o next.csv
    """
    from voxpop.loop.handout import writer
    from voxpop.loop.loop import Loop

    outputs = Outputs({"--output": output})
    seconds, write, _ = checked(partial(_seconds, lease), partial(writer, output, output_format), outputs.check)
    with Loop(directory) as here:
        with outputs.writing() as files:

            def hand_out(frame: pl.DataFrame) -> None:
                write(frame, files["--output"])
                files["--output"].flush()

            with progress(f"asking {directory}"):
                asked = here.ask(k, seconds, hand_out)
        if asked.reason:
            say(asked.reason)


@loop.command()
def tell(
    directory: Directory,
    votes: Annotated[
        Path | None,
        FileArgument(
            metavar="[NEW]",
            show_default=False,
            help="The new votes: task, worker, label in any format of 'voxpop aggregate', or - for stdin.",
        ),
    ] = None,
    workers: Annotated[
        Path | None,
        FileOption(
            help="What has changed with workers: worker, cost (a vote's, 1), capacity (votes at a time, any), "
            "available (yes). Those it does not name stay as they are."
        ),
    ] = None,
    source: r.SourceName = None,
    question: r.Question = None,
    predictions: r.Predictions = False,
    task: r.TaskColumn = "task",
    worker: r.WorkerColumn = "worker",
    label: r.LabelColumn = "label",
    ignore: r.Ignore = None,
    missing: r.OnMissing = "error",
) -> None:
    """Tell the loop new votes: all rows, or none where one is wrong. A row that was told before is counted once.

    Example: voxpop loop tell crowd new.csv
    """
    from voxpop.loop.loop import Loop

    if votes is None and workers is None:
        raise BadOption("nothing to tell: name a file of votes, or --workers")
    r.check_source(source)
    crowd = _workers(workers)
    with Loop(directory) as here:
        found = None
        if votes is not None:
            found = here.read(
                str(votes),
                source,
                task=task,
                worker=worker,
                label=label,
                ignore=ignore or (),
                missing=missing,
                question=question,
                predictions=predictions,
            )
        told = here.tell(found, crowd)
        if found is not None:
            with printing():
                print(f"accepted {told.accepted}, known {told.known}")
            r.say_dropped(found.dropped)
        _say_newcomers(told.newcomers)
        if found is not None:
            with progress(f"learning in {directory}"):
                here.learn()


@loop.command()
def status(
    directory: Directory,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Where the loop stands: what is known, what is out, and whether more votes are worth their price.

    Example: voxpop loop status crowd --json
    """
    from voxpop.loop.loop import Loop

    with Loop(directory) as here:
        facts = here.status()
        with printing():
            if as_json:
                show_json(facts)
                return
            print(_sizes(here))
            for line in _in_words(facts):
                print(f"  {line}")


@loop.command()
def fit(directory: Directory) -> None:
    """Fit the method to all votes now, and wait for it: what 'ask' does in the background now and then.

    Example: voxpop loop fit crowd
    """
    from voxpop.loop.loop import Loop

    with Loop(directory) as here:
        with progress(f"fitting {directory}"):
            here.fit()
        with printing():
            print(f"{here.directory}: {here.known().found.method} of {here.store.last:,} votes")


@loop.command()
def export(
    directory: Directory,
    output: Annotated[
        Path,
        FileOption("-o", "--output", help="task, label, confidence, votes, tie: .csv, .parquet, ...; - for stdout."),
    ] = Path("-"),
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="csv, tsv, parquet, jsonl, label-studio, if not by the extension."
        ),
    ] = None,
    beliefs: Annotated[bool, typer.Option("--beliefs", help="Add the belief in every class.")] = False,
    from_name: Annotated[str | None, typer.Option(help="For Label Studio: the control's name.")] = None,
    to_name: Annotated[str | None, typer.Option(help="For Label Studio: the object's name.")] = None,
) -> None:
    """Write what is true as far as the votes tell, for every task.

    Example: voxpop loop export crowd -o consensus.csv
    """
    from voxpop.io import consensus_writer
    from voxpop.loop.loop import Loop

    interface = {name: value for name, value in (("from_name", from_name), ("to_name", to_name)) if value is not None}
    outputs = Outputs({"--output": output})
    write, _ = checked(partial(consensus_writer, output, output_format, **interface), outputs.check)
    with Loop(directory) as here, progress(f"reading {directory}"):
        facts = here.known()
        frame = facts.found.to_frame(beliefs)
    with outputs.writing() as files:
        write(frame, files["--output"])
    if facts.since:
        say(f"note: of the votes, {facts.since:,} came after the last full fit; 'voxpop loop fit' makes one of all")


def _seconds(text: str) -> float:
    """A time such as 90s, 30m, 1h, 2d."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = text.strip()[:-1], text.strip()[-1:]
    try:
        seconds = float(number) * units[unit]
    except (ValueError, KeyError):
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise BadOption(f"--lease {text} is no time; give a number and s, m, h or d, such as 30m or 1h")
    return seconds


def _features(path: Path | None) -> Features | None:
    from voxpop.io import read_features

    return None if path is None else read_features(path)


def _pool(path: Path, column: str) -> pl.Series:
    """The tasks that a file names."""
    from voxpop.io.columns import open_table, read_columns
    from voxpop.io.problems import missing_columns
    from voxpop.io.source import Source

    table = open_table(Source.of(path))
    if column not in table.columns:
        raise missing_columns(table.name, [column], table.columns, "name the column with --task")
    (names,) = read_columns(table, (column,), "fill it in, or leave the row out")
    return names.unique(maintain_order=True)


def _workers(path: Path | None) -> pl.DataFrame | None:
    from voxpop.loop.crowd import read_workers

    return None if path is None else read_workers(path)


def _say_newcomers(names: list[str]) -> None:
    if names:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        say(f"note: {len(names):,} new worker{'s' * (len(names) != 1)}, who may be asked from now on: {shown}")


def _in_words(facts: dict[str, Any]) -> Iterator[str]:
    yield f"outstanding: {facts['outstanding']:,}"
    yield f"expected accuracy: {facts['expected_accuracy']:.3f}"
    yield facts["reason"] if facts["stop"] else "go on: the next vote is worth more than it costs"
    running = ", and another one is running" if facts["fitting"] else ""
    yield f"last full fit ({facts['method']}): of {facts['fitted']:,} votes{running}"
    if facts["failed"]:
        yield f"the newest fit failed: {facts['failed']}"


def _sizes(here: Loop) -> str:
    store = here.store
    workers = store.workers()
    return (
        f"{here.directory}: {store.last:,} votes of {len(workers):,} workers ({int(workers['available'].sum()):,} "
        f"available) on {len(store.tasks):,} tasks, {len(store.classes):,} classes"
    )
