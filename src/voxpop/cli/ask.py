"""voxpop ask: what to label next and by whom, from what was learned and all votes so far. It keeps nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli import reading as r
from voxpop.cli.checks import checked
from voxpop.cli.errors import say
from voxpop.cli.featuring import FeaturesFile, TextColumn, features_of, rows_for
from voxpop.cli.learned import ModelFile, learner_in, matching
from voxpop.cli.outputs import Outputs
from voxpop.cli.paths import FileOption
from voxpop.engines.bars import progress
from voxpop.errors import BadInput

if TYPE_CHECKING:
    import polars as pl

    from voxpop.methods.learning.targeted import Targeted

WHAT = "What is worth asking"
LIMITS = "Limits"


def ask(
    model: ModelFile,
    votes: r.VotesFile,
    features: FeaturesFile,
    k: Annotated[int, typer.Option("-k", help="How many votes to ask for.")] = 20,
    output: Annotated[
        Path, FileOption("-o", "--output", help="task, worker, score: .csv, .parquet, ...; - for stdout.")
    ] = Path("-"),
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, tsv, parquet, jsonl, if not by the extension; or label-studio, argilla: tasks to import.",
        ),
    ] = None,
    workers: Annotated[
        Path | None,
        FileOption(
            rich_help_panel=LIMITS,
            help="Who may be asked: worker, and where there are such columns cost (of a vote, 1), capacity (votes now, "
            "any), available (yes). Without it, everybody the model knows, at no cost.",
        ),
    ] = None,
    outstanding: Annotated[
        Path | None,
        FileOption(
            rich_help_panel=LIMITS,
            help="Pairs (task, worker) that were asked and not answered yet, such as the last next.csv: they are not "
            "asked again, and count as votes to come.",
        ),
    ] = None,
    cap_per_task: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=LIMITS, help="Most votes of a task in all: those it has, those outstanding, those asked."
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(rich_help_panel=LIMITS, help="The most that all these votes may cost together.")
    ] = None,
    stop: Annotated[
        float,
        typer.Option(
            rich_help_panel=LIMITS, help="A vote is asked for while its score (worth less cost) is above this."
        ),
    ] = 0.0,
    score: Annotated[
        str,
        typer.Option(
            rich_help_panel=WHAT,
            help="Of a task: entropy, margin, bald, relabel, information, error or random.",
        ),
    ] = "entropy",
    worker_score: Annotated[
        str,
        typer.Option(
            rich_help_panel=WHAT,
            help="Of a worker on a task: thompson (how likely right, drawn), mean (not drawn), ucb, epsilon or random.",
        ),
    ] = "thompson",
    worth: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=WHAT,
            show_default="100 with --workers, else 1",
            help="What one unit of a task's score (such as a nat of entropy) is worth, in the unit of the costs.",
        ),
    ] = None,
    diversity: Annotated[
        float,
        typer.Option(
            rich_help_panel=WHAT, help="0 to 1: how much less each further vote on tasks of one kind is worth."
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    text: TextColumn = None,
    source: r.SourceName = None,
    question: r.Question = None,
    predictions: r.Predictions = False,
    task: r.TaskColumn = "task",
    worker: r.WorkerColumn = "worker",
    label: r.LabelColumn = "label",
    ignore: r.Ignore = None,
    missing: r.OnMissing = "error",
) -> None:
    """Ask what to label next and by whom: the most doubtful tasks, each by who is likely to know.

    VOTES are all votes so far: nobody is asked about what he answered, and those on these tasks count.

    Where no vote is worth its cost, the file has a header only, and stderr says why.

    Example: voxpop ask model.vox votes.csv --features pool.npz -k 20 --workers workers.csv -o next.csv
    """
    from voxpop.loop.handout import writer

    where = r.Reading(votes, source, question, predictions, task, worker, label, ignore, missing, "keep", None)
    outputs = Outputs({"--output": output}, inputs=(model, votes, features, workers, outstanding))
    write, *_ = checked(partial(writer, output, output_format), outputs.check, where.check)
    with progress(f"reading {model}"):
        learner = _asker(model)
    pool = matching(learner, features_of(features, text, task))
    if len(pool) == 0:
        raise BadInput(f"{features}: the pool is empty: there is no task to ask about; give a row for each")
    how: dict[str, Any] = {} if worth is None else {"worth": worth}
    with progress("asking"):
        asked = learner.plan(
            k,
            X=rows_for(pool, None),
            tasks=pool.tasks.cast(str).to_list(),
            workers=_workers(workers, learner),
            votes=where.votes(),
            outstanding=None if outstanding is None else _pairs(outstanding),
            cap_per_task=cap_per_task,
            budget=budget,
            stop=stop,
            score=score,
            worker_score=worker_score,
            diversity=diversity,
            seed=seed,
            **how,
        )
    with outputs.writing() as files:
        write(asked.frame, files["--output"])
    if asked.reason:
        say(asked.reason)


def _asker(path: Path) -> Targeted:
    """The learner in a file, which must be one that knows who is good at what."""
    from voxpop.methods.learning.targeted import Targeted
    from voxpop.methods.registry import BY_CLASS, LEARNERS

    learner = learner_in(path)
    if not isinstance(learner, Targeted):
        can = [name for name, entry in LEARNERS.items() if "asks" in entry.can]
        name = BY_CLASS[type(learner).__name__].name
        raise BadInput(
            f"{path}: holds {name}, which does not learn who is good at what, and cannot ask; "
            f"learn with -m {', '.join(can[:-1])} or {can[-1]}"
        )
    return learner


def _workers(path: Path | None, learner: Targeted) -> pl.DataFrame | None:
    """Who may be asked; who is new is said on stderr."""
    from voxpop.loop.crowd import read_workers

    if path is None:
        return None
    crowd = read_workers(path)
    if not crowd["available"].any():
        raise BadInput(f"{path}: none of its workers is available; say 'yes' for those who are")
    new = crowd.filter(learner.axes_[0].codes(crowd["worker"]).is_null())["worker"]
    if len(new):
        shown = ", ".join(new.head(5)) + (", ..." if len(new) > 5 else "")
        say(f"note: nothing was learned of {len(new):,} of the workers, who are taken for average: {shown}")
    return crowd


def _pairs(path: Path) -> pl.DataFrame:
    """task and worker of a table."""
    import polars as pl

    from voxpop.io.columns import open_table, read_columns
    from voxpop.io.problems import missing_columns
    from voxpop.io.source import Source

    table = open_table(Source.of(path))
    columns = ["task", "worker"]
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise missing_columns(table.name, absent, table.columns, "name them so")
    found = read_columns(table, columns, "fill it in, or leave the row out")
    return pl.DataFrame({name: column.cast(pl.String) for name, column in zip(columns, found, strict=True)})
