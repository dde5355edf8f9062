"""The features of the tasks, copied into the loop's directory, so that it needs nothing outside."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from voxpop.io.features import Features, read_features
from voxpop.votes.axis import as_text

FILE = "features.npz"
IMAGES = "images"


def keep(features: Features, directory: Path) -> None:
    """Write the features into a loop's directory: numbers, texts, or images with a copy of each file."""
    x = features.X
    if features.kind == "images":
        x = _copied([Path(path) for path in x], directory)
    elif isinstance(x, pl.DataFrame):
        x = x.to_numpy()
    with (directory / FILE).open("wb") as file:
        np.savez(file, x=np.asarray(x), tasks=np.asarray(as_text(features.tasks).to_list(), dtype=np.str_))


def kept(directory: Path) -> Features | None:
    """The features of a loop, in the order of its tasks; None for one that has none."""
    if not (directory / FILE).is_file():
        return None
    features = read_features(directory / FILE)
    return replace(features, tasks=as_text(features.tasks))


def _copied(paths: list[Path], directory: Path) -> list[str]:
    """The images under numbers as names; what is stored is where they are, seen from the directory."""
    (directory / IMAGES).mkdir()
    names = [f"{IMAGES}/{number:08}{path.suffix}" for number, path in enumerate(paths)]
    for path, name in zip(paths, names, strict=True):
        shutil.copyfile(path, directory / name)
    return names
