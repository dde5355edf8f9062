"""The options that say how votes are read, for every command that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from voxpop.cli.checks import checked
from voxpop.cli.errors import say
from voxpop.cli.paths import FileArgument
from voxpop.errors import BadInput, unknown

if TYPE_CHECKING:
    import polars as pl

    from voxpop.votes import Votes

Missing = Literal["error", "drop"]
Repeats = Literal["keep", "drop", "error"]

PANEL = "Reading the votes"


def source_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from voxpop.io import IMPORTERS

    return [name for name in IMPORTERS if name.startswith(incomplete)]


VotesFile = Annotated[
    Path,
    FileArgument(
        metavar="VOTES",
        show_default=False,
        help="One vote a row, in columns task, worker, label: CSV, TSV, Parquet, JSONL or JSON, also gzipped; "
        "or the export of a labelling tool; or - for stdin.",
    ),
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="TOOL",
        autocompletion=source_names,
        rich_help_panel=PANEL,
        help="The tool that wrote the file, such as label-studio; told by the file's shape where that leaves no doubt.",
    ),
]
Question = Annotated[
    str | None,
    typer.Option("--question", metavar="NAME", rich_help_panel=PANEL, help="Which question of an export."),
]
Predictions = Annotated[
    bool, typer.Option("--predictions", rich_help_panel=PANEL, help="In an export, models vote too.")
]
TaskColumn = Annotated[
    str, typer.Option("--task", metavar="COLUMN", rich_help_panel=PANEL, help="The column that names the task.")
]
WorkerColumn = Annotated[
    str, typer.Option("--worker", metavar="COLUMN", rich_help_panel=PANEL, help="The column that names the worker.")
]
LabelColumn = Annotated[
    str, typer.Option("--label", metavar="COLUMN", rich_help_panel=PANEL, help="The column that holds the label.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="LABEL",
        rich_help_panel=PANEL,
        help='A label that is an abstention, such as "don\'t know"; may be repeated.',
    ),
]
OnMissing = Annotated[
    Missing,
    typer.Option(
        "--missing", rich_help_panel=PANEL, help="Rows without a task, worker or label: an error, or dropped."
    ),
]
OnRepeats = Annotated[
    Repeats,
    typer.Option(
        "--repeats",
        rich_help_panel=PANEL,
        help="A worker's further votes on a task: counted, dropped (the label given most often stays), or an error.",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B,...|FILE",
        rich_help_panel=PANEL,
        help="All classes in their order, also those that no vote names; or a file with one a line.",
    ),
]


@dataclass(frozen=True)
class Reading:
    """Where the votes are and how to read them."""

    path: Path
    source: str | None
    question: str | None
    predictions: bool
    task: str
    worker: str
    label: str
    ignore: Sequence[str] | None
    missing: Missing
    repeats: Repeats
    classes: str | None

    def check(self) -> None:
        """What can be told before the file is read."""
        checked(partial(check_source, self.source), partial(class_names, self.classes))

    def votes(self) -> Votes:
        """The votes; what was left out is said on stderr."""
        from voxpop.io import read

        votes = read(
            str(self.path),
            self.source,
            task=self.task,
            worker=self.worker,
            label=self.label,
            classes=class_names(self.classes),
            ignore=self.ignore or (),
            missing=self.missing,
            repeats=self.repeats,
            question=self.question,
            predictions=self.predictions,
        )
        say_dropped(votes.dropped)
        return votes


def check_source(name: str | None) -> None:
    from voxpop.io import IMPORTERS

    if name is not None and name not in IMPORTERS:
        raise unknown("source", name, IMPORTERS)


def class_names(text: str | None) -> list[str] | None:
    """Names between commas, or the lines of a file; None if no text says them."""
    if text is None:
        return None
    path = Path(text)
    if path.is_file():
        try:
            names = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise BadInput(f"{text} is not UTF-8; give a text file with one class a line") from None
    elif "," in text:
        names = text.split(",")
    else:
        raise BadInput(f"--classes {text}: no such file; give one, or two classes or more with commas between them")
    found = [name.strip() for name in names if name.strip()]
    if not found:
        raise BadInput(f"--classes {text} names no class; give at least one")
    return found


def say_dropped(dropped: Mapping[str, int]) -> None:
    """How many votes were left out, and why."""
    counts = {reason: count for reason, count in dropped.items() if count}
    if counts:
        each = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        say(f"note: left out {sum(counts.values()):,} of the answers ({each})")


def read_gold(path: Path, votes: Votes) -> pl.DataFrame:
    """Gold answers, which must all be of tasks and classes in the votes."""
    from voxpop.io import read_labels

    gold = read_labels(str(path))
    votes.gold(gold)
    return gold


def gold_answers(votes: Votes, gold: Path | None, no_gold: bool) -> Any:
    """The gold answers to use: the user's, else those that came with the votes."""
    if gold is not None:
        return read_gold(gold, votes)
    if no_gold or not votes.known:
        return None
    count = f"{len(votes.known):,} gold answer{'s' * (len(votes.known) != 1)}"
    say(f"note: taking as certain {count} that came with the votes; --no-gold leaves them out")
    return votes.known


def read_truth(path: Path, votes: Votes) -> pl.DataFrame:
    """What is known to be true of the tasks in the votes; how many others there are is said on stderr."""
    from voxpop.io import read_labels

    truth = read_labels(str(path))
    here = truth.filter(votes.tasks.codes(truth["task"]).is_not_null())
    if here.is_empty():
        raise BadInput(f"{path}: none of its {len(truth):,} tasks is among the votes; do the names match?")
    odd = here.filter(votes.classes.codes(here["label"]).is_null())["label"].unique(maintain_order=True)
    if len(odd):
        named = ", ".join(map(str, odd.head(5))) + (", ..." if len(odd) > 5 else "")
        say(f"note: no vote says what {path} says of some tasks ({named}); these count as misses")
    if len(here) < len(truth):
        say(f"note: {len(truth) - len(here):,} of the {len(truth):,} tasks in {path} have no votes")
    return here
