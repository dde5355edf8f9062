"""voxpop learn: features and votes in, a classifier and the truth out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli import reading as r
from voxpop.cli.checks import checked
from voxpop.cli.errors import INTERRUPTED, one_line, say
from voxpop.cli.featuring import FeaturesFile, TextColumn, features_of, rows_for
from voxpop.cli.learners import chosen_learner, learner_names
from voxpop.cli.outputs import STDOUT, Outputs
from voxpop.cli.paths import FileOption
from voxpop.cli.show import console, printing, to_json
from voxpop.cli.summary import document, in_words, show_summary
from voxpop.engines.bars import progress
from voxpop.errors import BadInput, BadOption

if TYPE_CHECKING:
    import polars as pl

    from voxpop.io import Features
    from voxpop.io.write import Writer
    from voxpop.learn.learner import Learner
    from voxpop.votes import Votes

OUT = "Writing what was learned"
TEST = "Scoring it where the truth is known"


def learn(
    votes: r.VotesFile,
    features: FeaturesFile,
    output: Annotated[
        Path | None,
        FileOption(
            "-o",
            "--output",
            rich_help_panel=OUT,
            help="The model, for 'voxpop predict' and voxpop.load: one file, without pickle.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            autocompletion=learner_names,
            show_default=False,
            help="See 'voxpop methods'. Without it, several methods foretell the same held-out votes, and the one that "
            "gives them the highest probability is taken.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", show_default="mlp", help="The network: linear, mlp, mlp:100 (hidden units), cnn or resnet."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", show_default="by held-out votes", help="How often the tasks are gone through."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", show_default="0", help="The same seed gives the same model.")
    ] = None,
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
    checkpoint: Annotated[
        Path | None,
        FileOption(help="Written after each epoch; if it is there already, the training goes on from it."),
    ] = None,
    text: TextColumn = None,
    embed: Annotated[
        str | None,
        typer.Option(
            "--embed",
            metavar="NAME",
            rich_help_panel="Reading the features",
            help="Embed texts by this model of sentence-transformers. Without it their words are weighted (TF-IDF).",
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        FileOption(rich_help_panel=TEST, help="Known answers of the tasks learned from. They never reach the method."),
    ] = None,
    test_features: Annotated[
        Path | None, FileOption(rich_help_panel=TEST, help="Features of other tasks, to score the classifier on.")
    ] = None,
    test_truth: Annotated[
        Path | None, FileOption(rich_help_panel=TEST, help="Known answers (task, label) of those.")
    ] = None,
    consensus_out: Annotated[
        Path | None,
        FileOption(
            rich_help_panel=OUT, help="The truth of the tasks learned from: task, label, confidence, votes, tie."
        ),
    ] = None,
    workers_out: Annotated[
        Path | None, FileOption(rich_help_panel=OUT, help="A judgement of every worker: worker, votes, accuracy, ...")
    ] = None,
    report: Annotated[Path | None, FileOption(rich_help_panel=OUT, help="A page to look at, as one HTML file.")] = None,
    export: Annotated[
        Path | None,
        FileOption(
            rich_help_panel=OUT, help="The plain classifier for use without voxpop: .pt (TorchScript) or .onnx."
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
    repeats: r.OnRepeats = "keep",
    classes: r.Classes = None,
    as_json: Annotated[
        bool, typer.Option("--json", rich_help_panel=OUT, help="JSON on stdout instead of the summary.")
    ] = False,
) -> None:
    """Train a classifier on features and votes, and find the truth behind the votes with its help.

    Rows of features and votes meet by the name of the task. Tasks without votes are learned from as far as the
    method can.

    Example: voxpop learn votes.csv --features x.npz -m max-mig -o model.vox
    """
    from voxpop.learn.store import write

    where = r.Reading(votes, source, question, predictions, task, worker, label, ignore, missing, repeats, classes)
    outputs = Outputs(
        {
            "--output": output,
            "--consensus-out": consensus_out,
            "--workers-out": workers_out,
            "--report": report,
            "--export": export,
            "--json": Path(STDOUT) if as_json else None,
        },
        inputs=(votes, features, gold, truth, test_features, test_truth, checkpoint),
    )
    named = {"model": model, "epochs": epochs, "seed": seed, "checkpoint": checkpoint and str(checkpoint)}
    train, _, write_consensus, write_workers, *_ = checked(
        partial(chosen_learner, method, {k: v for k, v in named.items() if v is not None}, set_ or ()),
        outputs.check,
        partial(_consensus_writer, consensus_out),
        partial(_workers_writer, workers_out),
        partial(_check_together, outputs, votes, gold, no_gold, truth, test_features, test_truth),
        partial(_check_export, export),
        where.check,
    )
    with progress(f"reading {votes}"):
        voted = where.votes()
    known = features_of(features, text, task)
    data = _aligned(voted, known)
    certain = r.gold_answers(data, gold, no_gold)
    right = None if truth is None else r.read_truth(truth, data)
    test = None if test_features is None else _test(test_features, test_truth, text, task, data)
    with progress("learning"), _kept_on_interrupt(checkpoint):
        learner: Learner = train(rows_for(known, embed), data, certain)
    if learner.devices > 1 and not _first_process():
        return  # of several devices one tells
    found = learner.consensus_
    scores = None if right is None else found.evaluate(right)
    tested = None if test is None else _tested(learner, *test)
    page = None if report is None else _page(learner, right)
    with outputs.writing() as files:
        if "--export" in files:
            from voxpop.learn.export import exported

            files["--export"].write(exported(learner, outputs.places["--export"]))
        if "--output" in files:
            write(learner, files["--output"])
        if "--consensus-out" in files:
            write_consensus(found.to_frame(), files["--consensus-out"])
        if "--workers-out" in files:
            write_workers(found.workers, files["--workers-out"])
        if page is not None:
            files["--report"].write(page.encode())
        if "--json" in files:
            facts = document(found, scores, outputs.files, False) | _facts(learner, tested)
            files["--json"].write(to_json(facts).encode() + b"\n")
        elif not outputs.to_stdout:
            with printing():
                out = console()
                out.print(_headline(learner, tested))
                show_summary(out, found, scores)
        elif tested is not None:
            say(f"note: {_test_line(tested)}")


# -- what goes in -------------------------------------------------------------------------------------


def _aligned(votes: Votes, features: Features) -> Votes:
    """The votes on the tasks of the features; how many tasks have none is said on stderr."""
    from voxpop.io import on_tasks

    data = on_tasks(votes, features)
    without = int((data.whole.votes_per_task == 0).sum())
    if without:
        say(f"note: {without:,} of the {data.N:,} tasks with features have no votes")
    return data


def _test(
    features: Path, truth: Path | None, text: str | None, task: str, votes: Votes
) -> tuple[Features, pl.DataFrame]:
    from voxpop.io import read_labels

    assert truth is not None
    labels = read_labels(str(truth))
    known = features_of(features, text, task)
    if not labels["task"].is_in(known.tasks.cast(labels["task"].dtype).implode()).any():
        raise BadInput(f"{truth}: none of its {len(labels):,} tasks is in {features}; do the names match?")
    return known, labels


def _check_together(
    outputs: Outputs,
    votes: Path,
    gold: Path | None,
    no_gold: bool,
    truth: Path | None,
    test_features: Path | None,
    test_truth: Path | None,
) -> None:
    """Options that contradict each other, or would do nothing."""
    problems = []
    if [str(path) for path in (votes, gold, truth, test_truth)].count(STDOUT) > 1:
        problems.append("standard input can be read only once; give a file instead of one -")
    if gold is not None and no_gold:
        problems.append("--gold and --no-gold contradict each other; give one of them")
    if (test_features is None) != (test_truth is None):
        problems.append("--test-features and --test-truth belong together; give both")
    problems += [
        f"{option} cannot write to standard output; name a file"
        for option in ("--output", "--report", "--export")
        if str(outputs.places.get(option)) == STDOUT
    ]
    if problems:
        raise BadOption(*problems)


def _check_export(export: Path | None) -> None:
    from voxpop.learn.export import check_path

    if export is not None:
        check_path(export)


@contextmanager
def _kept_on_interrupt(checkpoint: Path | None) -> Iterator[None]:
    """After Ctrl-C, say that the same command goes on from the checkpoint, if there is one."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint is None or not checkpoint.exists():
            raise
        say(f"interrupted: {checkpoint} holds the training so far; the same command goes on from it")
        raise typer.Exit(INTERRUPTED) from None


# -- what comes out -----------------------------------------------------------------------------------


def _first_process() -> bool:
    from voxpop.learn.loop import first_process

    return first_process()


def _consensus_writer(path: Path | None) -> Writer | None:
    from voxpop.io import consensus_writer

    return None if path is None else consensus_writer(path)


def _workers_writer(path: Path | None) -> Writer | None:
    from voxpop.io import frame_writer

    return None if path is None else frame_writer(path)


def _tested(learner: Learner, features: Features, labels: pl.DataFrame) -> dict[str, float]:
    from voxpop.learn.scores import evaluate

    features = features.columns(getattr(learner, "feature_names_in_", None))
    with progress("predicting"):
        return evaluate(learner, rows_for(features, None), features.tasks, labels)


def _page(learner: Learner, truth: pl.DataFrame | None) -> str:
    from voxpop.report.learning import learning_page

    with progress("drawing the report"):
        return learning_page(learner, truth)


def _facts(learner: Learner, tested: Mapping[str, float] | None) -> dict[str, Any]:
    choice = learner.choice_
    return {
        "epochs": len(learner.history_),
        "loss": [epoch["loss"] for epoch in learner.history_],
        "held_out": None if choice is None else {"log_probability": choice.foretold, "curve": list(choice.curve)},
        "chosen": dict(learner.variant_),
        "test": None if tested is None else dict(tested),
    }


def _headline(learner: Learner, tested: Mapping[str, float] | None) -> str:
    size = sum(p.numel() for p in learner.model_.parameters())
    model = learner.model if isinstance(learner.model, str) else type(learner.model).__name__
    epochs = len(learner.history_)
    line = f"classifier: {model} with {size:,} weights, {epochs:,} epoch{'s' * (epochs != 1)}"
    return one_line(line) if tested is None else f"{one_line(line)}\n{_test_line(tested)}"


def _test_line(tested: Mapping[str, float]) -> str:
    auc = f", AUC {tested['auc']:.4f}" if "auc" in tested else ""
    return f"on {tested['tasks']:,.0f} test tasks: {in_words(tested)}{auc}"
