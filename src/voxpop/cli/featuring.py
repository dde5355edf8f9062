"""The options that say where features are and how they are read, for every command that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.paths import FileOption
from voxpop.engines.bars import progress
from voxpop.errors import BadOption

if TYPE_CHECKING:
    from voxpop.io import Features

PANEL = "Reading the features"

FeaturesFile = Annotated[
    Path,
    FileOption(
        "--features",
        rich_help_panel=PANEL,
        show_default=False,
        help="A row for each task, by name: .npz with x (rows) and tasks (names); a table (Parquet, CSV, ...) with a "
        "column task, and columns of numbers, a column of texts, or one of paths of images; or a folder of images "
        "named like the tasks.",
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option("--text", metavar="COLUMN", rich_help_panel=PANEL, help="The column of texts in a table of features."),
]


def features_of(path: Path, text: str | None, task: str) -> Features:
    """The features in a file; the column of tasks is called ``task``, or as in the votes."""
    from voxpop.io import read_features

    with progress(f"reading {path}"):
        return read_features(path, task=task, text=text)


def rows_for(features: Features, embed: str | None) -> Any:
    """What a learner takes as X."""
    if features.kind == "texts":
        from voxpop.learn.texts import Texts

        return Texts(features.X, embed)
    if embed is not None:
        raise BadOption(f"--embed {embed}: only texts are embedded; name their column with --text")
    if features.kind == "images":
        from voxpop.learn.rows import ImageRows

        return ImageRows(features.X)
    return features.X
