"""One importer for each labelling tool, and the registry of their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from voxpop.io.importers import argilla, label_studio, long, mturk, peerannot, prodigy, toloka, wide
from voxpop.io.importers.imported import Ask, Imported
from voxpop.io.jsons import Json
from voxpop.io.table import Table

__all__ = ["IMPORTERS", "Ask", "Imported", "Importer", "recognised"]


class Importer(NamedTuple):
    """How an export is read, and how it is told by its columns (or the keys of its records)."""

    read: Callable[[Table, Ask], Imported]
    recognises: Callable[[set[str]], bool]


def _by_name_only(_: set[str]) -> bool:
    return False


IMPORTERS: dict[str, Importer] = {
    "argilla": Importer(argilla.read, argilla.recognises),
    "crowd-kit": Importer(long.crowd_kit, long.is_crowd_kit),
    "judges": Importer(long.judges, long.is_judges),
    "label-studio": Importer(label_studio.read, label_studio.recognises),
    "mturk": Importer(mturk.read, mturk.recognises),
    "peerannot": Importer(peerannot.read, _by_name_only),
    "prodigy": Importer(prodigy.read, prodigy.recognises),
    "toloka": Importer(toloka.read, toloka.recognises),
    "wide": Importer(wide.read, _by_name_only),
}


def recognised(table: Table) -> str | None:
    """The tool that wrote the file, where its shape leaves no doubt."""
    if isinstance(table, Json) and not table.columns:
        return "peerannot" if peerannot.is_answers(table.value) else None
    return next((name for name, importer in IMPORTERS.items() if importer.recognises(set(table.columns))), None)
