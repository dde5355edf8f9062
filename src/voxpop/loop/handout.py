"""Writing what is asked: a table, or tasks that Label Studio or Argilla imports, each with who should do it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import polars as pl

from voxpop.errors import unknown
from voxpop.io.write import WRITERS, Writer, frame_writer

COLUMNS = ("task", "worker", "score")


def writer(path: str | os.PathLike[str], format: str | None = None) -> Writer:
    """What writes the frame of ``ask``, by the path's extension unless the format is given."""
    if format in TOOLS:
        return _as_json(TOOLS[format])
    if format is not None and format not in WRITERS:
        raise unknown("format", format, (*WRITERS, *TOOLS))
    write = frame_writer(path, format)
    return lambda frame, file: write(frame.select(COLUMNS), file)


def to_label_studio(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One task for each pair. Its data holds the task's name, by which an export is read back, and the assignee."""
    for task, worker, score in frame.select(COLUMNS).iter_rows():
        yield {"data": {"task": task, "assignee": worker}, "meta": {"score": score}}


def to_argilla(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One record for each task, whose id is its name, with all its assignees."""
    tasks = frame.select(COLUMNS).group_by("task", maintain_order=True).agg("worker", pl.col("score").max())
    for task, workers, score in tasks.iter_rows():
        yield {"id": task, "fields": {"task": task}, "metadata": {"assignee": workers, "score": score}}


Tool = Callable[[pl.DataFrame], Iterator[dict[str, Any]]]
TOOLS: dict[str, Tool] = {"label-studio": to_label_studio, "argilla": to_argilla}


def _as_json(tool: Tool) -> Writer:
    def write(frame: pl.DataFrame, file: BinaryIO) -> None:
        file.write(json.dumps(list(tool(frame)), ensure_ascii=False, indent=1).encode() + b"\n")

    return write
