"""voxpop predict: a classifier at work on new tasks, alone or together with votes on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli import reading as r
from voxpop.cli.checks import checked
from voxpop.cli.featuring import FeaturesFile, TextColumn, features_of, rows_for
from voxpop.cli.learned import ModelFile, learner_in, matching
from voxpop.cli.outputs import Tables
from voxpop.cli.paths import FileOption
from voxpop.engines.bars import progress

if TYPE_CHECKING:
    import polars as pl

    from voxpop.io import Features
    from voxpop.learn.learner import Learner


def predict(
    model: ModelFile,
    features: FeaturesFile,
    output: Annotated[
        Path,
        FileOption("-o", "--output", help="task, label, confidence: .csv, .tsv, .parquet, .jsonl, or - for stdout."),
    ] = Path("-"),
    votes: Annotated[
        Path | None,
        FileOption(
            "--votes",
            help="Votes on these tasks, of workers and classes known from the training: the answer is then what "
            "classifier and votes say together.",
        ),
    ] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Add the probability of every class.")] = False,
    text: TextColumn = None,
    source: r.SourceName = None,
    question: r.Question = None,
    predictions: r.Predictions = False,
    task: r.TaskColumn = "task",
    worker: r.WorkerColumn = "worker",
    label: r.LabelColumn = "label",
    ignore: r.Ignore = None,
    missing: r.OnMissing = "error",
    repeats: r.OnRepeats = "keep",
) -> None:
    """Predict the labels of tasks from their features, and from votes on them where there are some.

    Example: voxpop predict model.vox --features new.npz -o predictions.csv
    """
    where = None
    if votes is not None:
        where = r.Reading(votes, source, question, predictions, task, worker, label, ignore, missing, repeats, None)
    outputs = Tables({"--output": output}, inputs=(model, features, votes))
    checked(outputs.check, *(() if where is None else (where.check,)))
    with progress(f"reading {model}"):
        learner = learner_in(model)
    known = matching(learner, features_of(features, text, task))
    with progress("predicting"):
        p = _probabilities(learner, known, where)
    outputs.write({"--output": _frame(learner, known, p, probabilities)})


def _probabilities(learner: Learner, features: Features, where: r.Reading | None) -> Any:
    X = rows_for(features, None)
    if where is None:
        return learner.predict_proba(X)
    from voxpop.io import on_tasks

    return learner.forecast(X, on_tasks(where.votes(), features))


def _frame(learner: Learner, features: Features, p: Any, probabilities: bool) -> pl.DataFrame:
    """task, label, confidence; and p(class) of each class where that is asked for."""
    import polars as pl

    classes = learner.axes_[1]
    columns = {
        "task": features.tasks,
        "label": classes.names.gather(p.argmax(1)),
        "confidence": p.max(1, initial=0.0).astype("float32"),
    }
    frame = pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})
    if probabilities:
        frame = frame.with_columns(
            [pl.Series(f"p({name})", p[:, i].astype("float32")) for i, name in enumerate(classes)]
        )
    return frame
