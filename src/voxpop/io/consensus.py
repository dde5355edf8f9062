"""Writing what was found: one label and confidence a task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import polars as pl

from voxpop.errors import BadOption
from voxpop.io.write import WRITERS, Writer, format_of, writing

LABEL_STUDIO = "label-studio"


def consensus_to_label_studio(
    frame: pl.DataFrame, from_name: str = "label", to_name: str = "text", model_version: str = "voxpop"
) -> Iterator[dict[str, Any]]:
    """Label Studio tasks, each with the consensus as its prediction.

    ``from_name`` and ``to_name`` are the names of the control and of the object in the labelling interface.
    """
    for task, label, confidence in frame.select("task", "label", "confidence").iter_rows():
        if label is None:
            continue
        name = int(task) if str(task).isascii() and str(task).isdigit() and str(int(task)) == str(task) else task
        choice = {"from_name": from_name, "to_name": to_name, "type": "choices", "value": {"choices": [str(label)]}}
        prediction = {"model_version": model_version, "score": confidence, "result": [choice]}
        yield {"id": name, "data": {"task": name}, "predictions": [prediction]}


def write_consensus(
    frame: pl.DataFrame, path: str | os.PathLike[str], format: str | None = None, **options: str
) -> None:
    """A consensus as CSV, TSV, Parquet, JSON lines, or as predictions for Label Studio (.json).

    The options are those of ``consensus_to_label_studio``, for that format.
    """
    write = consensus_writer(path, format, **options)
    with writing(path) as file:
        write(frame, file)


def consensus_writer(path: str | os.PathLike[str], format: str | None = None, **options: str) -> Writer:
    """What ``write_consensus`` writes with, once the path, the format and the options are known to be good."""
    chosen = format_of(path, format, {f".{name}": name for name in WRITERS} | {".json": LABEL_STUDIO})
    if chosen == LABEL_STUDIO:
        return partial(_label_studio, options=options)
    if options:
        raise BadOption(f"{', '.join(options)}: only the {LABEL_STUDIO} format has such options")
    return WRITERS[chosen]


def _label_studio(frame: pl.DataFrame, file: BinaryIO, options: dict[str, str]) -> None:
    file.write(json.dumps(list(consensus_to_label_studio(frame, **options)), ensure_ascii=False, indent=1).encode())
