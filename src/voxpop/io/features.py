"""Features of tasks out of files: .npz, a table (Parquet, CSV, ...), or a folder of images. Every row has a name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import polars as pl
import torch

from voxpop.errors import BadInput
from voxpop.io.columns import open_table
from voxpop.io.parquet import Parquet
from voxpop.io.problems import LISTED, missing_columns, shown
from voxpop.io.source import Source
from voxpop.io.table import in_full
from voxpop.votes import Axis, Votes
from voxpop.votes.axis import as_names, as_text

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
Kind = Literal["numbers", "texts", "images"]
SAVED = "save it as np.savez(path, x=rows, tasks=names)"


@dataclass(frozen=True, eq=False)
class Features:
    """A row for each task: numbers (an array, or a frame of named columns), texts, or paths of images."""

    source: str  # the file's name, for messages
    tasks: pl.Series  # names, all different
    kind: Kind
    X: Any

    def __len__(self) -> int:
        return len(self.tasks)

    def columns(self, names: Sequence[str] | None) -> Features:
        """Numbers in columns of these names and this order, as they were learned from; None: they had no names."""
        if not isinstance(self.X, pl.DataFrame):
            return self
        if names is None:
            return replace(self, X=self.X.to_numpy())
        absent = [name for name in names if name not in self.X.columns]
        if absent:
            raise missing_columns(self.source, absent, self.X.columns, "give the columns that were learned from")
        return replace(self, X=self.X.select(list(names)))


def read_features(path: str | os.PathLike[str], *, task: str = "task", text: str | None = None) -> Features:
    """Features by task name.

    - ``.npz``: ``x`` (a row for each task: numbers, images, or texts) and ``tasks`` (their names);
    - a table (Parquet, CSV, TSV, JSON lines, ...): the column ``task`` (by this or its own name), and columns of
      numbers, or the column of texts that ``text`` names (it need not where it is the only other one), or one
      column of paths of images (beside the file, or absolute);
    - a folder of images: a file's name, without its extension, is the task's.
    """
    place = Path(path)
    if place.is_dir():
        found = _folder(place)
    elif place.suffix.lower() == ".npz":
        found = _npz(place)
    else:
        found = _table(place, task, text)
    if text is not None and found.kind != "texts":
        raise BadInput(f"{path}: has no columns; a column of texts (--text {text}) is one of a table")
    return _checked(found)


def on_tasks(votes: Votes, features: Features) -> Votes:
    """The same votes, their tasks those of the features and in their order; tasks without votes are among them."""
    names = features.tasks
    if votes.tasks.names.dtype == pl.String:
        names = as_text(names)
    axis = Axis("tasks", names)
    code = axis.codes(votes.tasks.names)  # N, old -> new
    _refuse_votes_without_features(votes, code, features)
    moved = torch.from_numpy(code.fill_null(0).cast(pl.Int32).to_numpy().copy())[votes.task.long()]  # V
    order = torch.argsort(moved, stable=True)  # within a task they are sorted already
    here = axis.codes(as_names(list(votes.known), "task")) if votes.known else None
    known = {}
    if here is not None:
        known = {t: k for (t, k), c in zip(votes.known.items(), here, strict=True) if c is not None}
    return replace(
        votes, task=moved[order], worker=votes.worker[order], label=votes.label[order], tasks=axis, known=known
    )


def _refuse_votes_without_features(votes: Votes, code: pl.Series, features: Features) -> None:
    voted = pl.Series((votes.whole.votes_per_task > 0).numpy())
    absent = votes.tasks.names.filter(code.is_null() & voted)
    if not len(absent):
        return
    first, total = shown(absent[0]), int(voted.sum())
    if len(absent) == total:
        near = f"; there they are called {shown(features.tasks[0])}, ..." if len(features) else ""
        raise BadInput(f"{features.source}: none of the {total:,} tasks with votes has features (first: {first}){near}")
    raise BadInput(
        f"{features.source}: {len(absent):,} of the {total:,} tasks with votes have no features (first: {first}); "
        "add their rows, or leave their votes out"
    )


# -- the forms ----------------------------------------------------------------------------------------


def _npz(path: Path) -> Features:
    if not path.is_file():
        Source.of(path)  # it says what is wrong with the path
    try:
        with np.load(path, allow_pickle=False) as file:
            absent = [name for name in ("x", "tasks") if name not in file]
            if absent:
                raise BadInput(
                    f"{path} has no array {' and no '.join(map(repr, absent))}; it has "
                    f"{', '.join(file.files) or 'none'}; {SAVED}"
                )
            x, tasks = file["x"], file["tasks"]
    except (OSError, BadZipFile, EOFError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        if "allow_pickle" in str(error):
            raise BadInput(
                f"{path} holds Python objects; make x numbers or text and tasks names, and {SAVED}"
            ) from None
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{path} is not a whole .npz file ({reason}); {SAVED}") from None
    if tasks.ndim != 1 or x.ndim == 0 or len(tasks) != len(x):
        raise BadInput(
            f"{path}: x has the shape {x.shape} and tasks {tasks.shape}; give a row and a name for each task"
        )
    names = as_names(tasks, "tasks")
    if x.dtype.kind in "UST":
        if x.ndim != 1:
            raise BadInput(f"{path}: x holds texts in the shape {x.shape}; give one text for each task")
        return _of_texts(str(path), names, [str(t) for t in x.tolist()], path.parent)
    if x.dtype.kind not in "biuf":
        raise BadInput(f"{path}: x holds {x.dtype}; give numbers")
    if x.ndim < 2:
        raise BadInput(f"{path}: x has one number for each task; reshape it to ({len(x)}, 1) if that is the feature")
    return Features(str(path), names, "numbers", x)


def _folder(folder: Path) -> Features:
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in IMAGES)
    if not found:
        raise BadInput(f"{folder}: no images there (looked for {', '.join(IMAGES)})")
    stems = [p.stem for p in found]
    if len(set(stems)) < len(stems):  # the same name in several folders: their names tell them apart
        stems = [p.relative_to(folder).with_suffix("").as_posix() for p in found]
    return Features(str(folder), pl.Series(stems), "images", found)


def _table(path: Path, task: str, text: str | None) -> Features:
    table = open_table(Source.of(path))
    frame = table.typed() if isinstance(table, Parquet) else in_full(table)
    task = task if task in frame.columns else "task"
    wanted = [task] if text is None else [task, text]
    absent = [c for c in wanted if c not in frame.columns]
    if absent:
        raise missing_columns(table.name, absent, frame.columns, "name the columns with --task and --text")
    names = as_names(frame[task], "tasks")
    rest = frame.drop(task)
    if text is not None:
        return _of_texts(table.name, names, _filled(table.name, rest[text]), path.parent, images=False)
    if not rest.columns:
        raise BadInput(f"{table.name} has no columns beside {shown(task)}; add the features of each task")
    if len(rest.columns) == 1:
        only = rest.to_series()
        if isinstance(only.dtype, pl.List | pl.Array):
            return Features(table.name, names, "numbers", _rows_of_lists(table.name, only))
        if only.dtype == pl.String and only.cast(pl.Float64, strict=False).null_count() == len(only):
            return _of_texts(table.name, names, _filled(table.name, only), path.parent)
    return Features(table.name, names, "numbers", _numbers(table.name, rest))


def _of_texts(source: str, names: pl.Series, texts: list[str], beside: Path, images: bool = True) -> Features:
    """Texts, or paths of images where the first of them is one."""
    if images and texts and Path(texts[0][-300:]).suffix.lower() in IMAGES:
        return Features(source, names, "images", [beside / t for t in texts])
    return Features(source, names, "texts", texts)


def _filled(source: str, column: pl.Series) -> list[str]:
    gaps = column.is_null().arg_true()
    if len(gaps):
        raise BadInput(
            *(
                f"{source}, row {row + 1}: nothing in column {shown(column.name)}; fill it in, or leave the row out"
                for row in gaps.head(LISTED)
            )
        )
    return as_text(column).to_list()


def _numbers(source: str, frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as numbers, or an error that names what is none."""
    problems = []
    columns = []
    for column in frame.iter_columns():
        if column.dtype.is_nested() or column.dtype == pl.Binary:
            problems.append(f"{source}: column {shown(column.name)} holds {column.dtype}; give one number a cell")
            continue
        number = column.cast(pl.Float32, strict=False)
        odd = (number.is_null() | number.is_nan()).arg_true()
        if len(odd):
            problems.append(_no_number(source, column, int(odd[0]), len(odd)))
        columns.append(number)
    if problems:
        raise BadInput(*problems[:LISTED])
    return pl.DataFrame(columns)


def _no_number(source: str, column: pl.Series, row: int, count: int) -> str:
    value = column[row]
    where = f"{source}, row {row + 1}: column {shown(column.name)}"
    more = f" (and {count - 1:,} more rows)" if count > 1 else ""
    if value is None or value != value or str(value).lower() == "nan":
        return f"{where} has no number{more}; fill it in, or leave the row out"
    return (
        f"{where} holds {shown(value)}, which is no number{more}; if these are texts, name their column with "
        "--text, else leave the column out"
    )


def _rows_of_lists(source: str, column: pl.Series) -> np.ndarray[Any, Any]:
    """A column of lists of numbers, such as embeddings, as rows."""
    lists = column.arr.to_list() if isinstance(column.dtype, pl.Array) else column
    lengths = lists.list.len()
    if lengths.n_unique() != 1 or not isinstance(lists.dtype, pl.List) or not lists.dtype.inner.is_numeric():
        raise BadInput(f"{source}: column {shown(column.name)} needs lists of numbers of one length")
    flat = lists.explode().cast(pl.Float32).fill_null(float("nan")).to_numpy()
    return flat.reshape(len(column), -1)


def _checked(features: Features) -> Features:
    """Names that are there and differ, and numbers without gaps."""
    names = features.tasks
    if names.null_count():
        raise BadInput(f"{features.source}, row {int(names.is_null().arg_max() or 0) + 1}: no task name; fill it in")
    if names.n_unique() != len(names):
        twice = names.filter(names.is_duplicated()).unique(maintain_order=True)
        more = f" (and {len(twice) - 1:,} more)" if len(twice) > 1 else ""
        raise BadInput(f"{features.source}: task {shown(twice[0])} has several rows{more}; keep one row for each task")
    if isinstance(features.X, np.ndarray) and features.X.dtype.kind == "f":
        bad = ~np.isfinite(features.X).all(axis=tuple(range(1, features.X.ndim)))
        if bad.any():
            raise BadInput(
                f"{features.source}: {int(bad.sum()):,} tasks have NaN or infinity among their features (first: "
                f"{shown(names[int(bad.argmax())])}); fill them in, or leave the rows out"
            )
    return features
