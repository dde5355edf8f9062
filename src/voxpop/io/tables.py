"""Reading votes: from a table with one vote a row, or from the export of a labelling tool."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from voxpop.errors import BadInput, BadOption, unknown
from voxpop.io.columns import open_table, read_columns
from voxpop.io.importers import IMPORTERS, Ask, Imported, recognised
from voxpop.io.labels import read_labels
from voxpop.io.problems import missing_columns
from voxpop.io.source import Source
from voxpop.io.table import Table
from voxpop.votes import Votes
from voxpop.votes.axis import Names, sort_names
from voxpop.votes.votes import Missing, Repeats

TASK, WORKER, LABEL = "task", "worker", "label"
OLD_WORKER = "performer"  # what crowd-kit called a worker
REMEDY = "fill it in, or drop such rows with missing='drop'"


def read(
    path: Any,
    source: str | None = None,
    *,
    task: str = TASK,
    worker: str = WORKER,
    label: str = LABEL,
    tasks: Names | None = None,
    workers: Names | None = None,
    classes: Names | None = None,
    ignore: Iterable[Any] = (),
    missing: Missing = "error",
    repeats: Repeats = "keep",
    question: str | None = None,
    predictions: bool = False,
    gold: Any = None,
) -> Votes:
    """Votes of a file ("-" is standard input) or of a dataframe.

    A table has one vote a row, in the columns that ``task``, ``worker`` and ``label`` name: CSV, TSV, Parquet,
    JSON lines or JSON, also gzipped. Everything in a file is text and is written back exactly; an empty cell
    is missing, and so is a label NaN or nan. Messages count rows from 1, without the header.

    The export of a labelling tool is named by ``source`` (a key of ``IMPORTERS``) or told by its shape, and has
    its own columns. There ``task`` may name the field that identifies the task, ``question`` chooses one of
    several, ``predictions`` takes the votes of models too, and answers that cannot count are left out and
    counted in ``dropped``. Its gold answers become ``known``; ``gold`` (a file, a mapping or a dataframe of task
    and label) adds to them. The other options are those of ``Votes.from_frame``.
    """
    axes: dict[str, Any] = {"tasks": tasks, "workers": workers, "classes": classes}
    axes |= {"ignore": list(ignore), "missing": missing, "repeats": repeats}
    if not isinstance(path, str | os.PathLike):
        _refuse("a dataframe", source=source, question=question, predictions=predictions)
        return _with_gold(Votes.from_frame(path, task, worker, label, **axes), gold=gold)
    table = open_table(Source.of(path))
    source = source or _told_by_shape(table, (task, worker, label))
    if source is None:
        _refuse(f"{table.name}, a table with one vote a row,", question=question, predictions=predictions)
        if worker not in table.columns:
            worker = OLD_WORKER
        columns = read_columns(table, (task, worker, label), REMEDY if missing == "error" else None)
        return _with_gold(_votes(table.name, columns, axes), gold=gold)
    if (worker, label) != (WORKER, LABEL):
        raise BadOption(
            f"an export of {source} has its own columns; leave out worker= and label=, and choose with question="
        )
    found = _imported(table, source, Ask(question, predictions, None if task == TASK else task))
    own = dict(found.gold.iter_rows())
    if classes is None:
        axes["classes"] = _classes(found, axes["ignore"])
    votes = _votes(table.name, [found.votes[c] for c in (TASK, WORKER, LABEL)], axes)
    return _with_gold(replace(votes, dropped={**found.dropped, **votes.dropped}), own, gold)


def load(
    path: str | os.PathLike[str],
    source: str | None = None,
    question: str | None = None,
    predictions: bool = False,
    task: str | None = None,
) -> Imported:
    """An export as it is: its votes and gold answers as frames of text, what was left out, and its questions."""
    table = open_table(Source.of(path))
    source = source or _told_by_shape(table, (TASK, WORKER, LABEL)) or "crowd-kit"  # a plain table reads like one
    return _imported(table, source, Ask(question, predictions, task))


def _imported(table: Table, source: str, ask: Ask) -> Imported:
    if source not in IMPORTERS:
        raise unknown("source", source, IMPORTERS)
    return IMPORTERS[source].read(table, ask)


def _told_by_shape(table: Table, columns: tuple[str, str, str]) -> str | None:
    """None for a table with one vote a row, else the tool that wrote the file, or an error."""
    absent = [c for c in columns if c not in table.columns]
    if not absent or (absent == [WORKER] and OLD_WORKER in table.columns):
        return None
    source = recognised(table)
    if source is not None:
        return source
    sources = ", ".join(IMPORTERS)
    if not table.columns:
        raise BadInput(f"{table.name} is not a list of records; name the tool that wrote it as source: {sources}")
    remedy = f"name the columns of task, worker and label, or the source ({sources})"
    raise missing_columns(table.name, absent, table.columns, remedy)


def _classes(found: Imported, ignore: Sequence[Any]) -> pl.Series:
    """The labels that were given, and those that only a gold answer has."""
    gold = found.gold.join(found.votes, on=TASK, how="semi")[LABEL]
    given = found.votes[LABEL]
    return sort_names(pl.concat([given.filter(~given.is_in([str(i) for i in ignore])), gold]).unique())


def _votes(name: str, columns: Sequence[pl.Series], options: Mapping[str, Any]) -> Votes:
    votes = Votes.from_columns(*columns, source=name, **options)
    if not votes.V:
        why = ", ".join(f"{n} {reason}" for reason, n in votes.dropped.items())
        raise BadInput(f"{name}: no votes are left ({why}); keep some of them")
    return votes


def _with_gold(votes: Votes, own: Mapping[str, str] | None = None, gold: Any = None) -> Votes:
    """The gold answers of the export, where their tasks have votes, and those that were given, which must fit."""
    known: dict[Any, Any] = {}
    if own:
        on_axis = votes.tasks.codes(pl.Series(list(own))).is_not_null()
        known = _named(votes, {task: truth for (task, truth), here in zip(own.items(), on_axis, strict=True) if here})
    if gold is not None:
        known |= _named(votes, read_labels(gold) if isinstance(gold, str | os.PathLike) else gold)
    return replace(votes, known=known) if known else votes


def _named(votes: Votes, gold: Any) -> dict[Any, Any]:
    """Gold answers under the names that the votes have for them, once they are checked."""
    truth = votes.gold(gold)
    if truth is None:
        return {}
    place = (truth >= 0).nonzero()[:, 0]
    names = votes.tasks.names.gather(place.numpy())
    return dict(zip(names, votes.classes.names.gather(truth[place].numpy()), strict=True))


def _refuse(what: str, **options: Any) -> None:
    for name, value in options.items():
        if value:
            raise BadOption(f"{what} takes no {name}=; it is for the exports of labelling tools")
