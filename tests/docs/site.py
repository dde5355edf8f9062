"""The pages, and the directory that their examples run in."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import torch

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]


@contextlib.contextmanager
def prepared(directory: Path) -> Iterator[None]:
    """Work in a directory with the files of docs/data; what a page sets for printing ends with it."""
    for file in (DOCS / "data").iterdir():
        shutil.copy(file, directory)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with pl.Config(), contextlib.chdir(directory):
            yield
    finally:
        torch.set_num_threads(threads)
