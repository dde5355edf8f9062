"""The full fit of a loop: which method, when another one pays, and where the last one is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxpop.errors import BadOption, VoxError
from voxpop.loop import pool
from voxpop.loop.locks import FITTING, held, taken
from voxpop.loop.store import Store
from voxpop.results import Consensus

LAST, FAILED = "fit", "failed"  # names in the cache
DEFAULT, LEARNER = "default", "dalc"  # methods without features, and with them
GROWTH = 0.1  # a fit pays when there are so many more votes than the last one knew,
LEAST = 10  # and at least this many


@dataclass(frozen=True)
class Fit:
    """The last full fit: what it found, and the votes up to a number that it knows."""

    through: int
    found: Consensus
    learner: Any | None  # where there are features


def make(settings: Mapping[str, Any]) -> Any:
    """The method of a loop with its options."""
    from voxpop.methods.default import Default
    from voxpop.methods.registry import find
    from voxpop.options import option_names, parse_option

    kind = Default if settings["method"] == DEFAULT else find(settings["method"]).load()
    options: dict[str, Any] = {"seed": int(settings["seed"])} if "seed" in option_names(kind) else {}
    if settings.get("model") is not None:
        options["model"] = settings["model"]
    for text in json.loads(settings["options"]):
        name, equals, value = text.partition("=")
        if not equals:
            raise BadOption(f"{text} is not of the form NAME=VALUE, such as epochs=20")
        options[name.strip().replace("-", "_")] = parse_option(kind, name.strip(), value)
    return kind(**options)


def check_method(settings: Mapping[str, Any], features: bool) -> None:
    """That the method can be made, and is one for features or for none."""
    from voxpop.methods.registry import LEARNERS, METHODS, find
    from voxpop.options import check_options

    name, model = settings["method"], settings.get("model")
    if name != DEFAULT or features:
        entry = find(name)
        if features and entry.name not in LEARNERS:
            raise BadOption(f"{name} does not learn from features; name one that does, such as {LEARNER}")
        if not features and entry.name not in METHODS:
            raise BadOption(f"{name} learns from features, and there are none; give them, or another method")
    if model is not None and not features:
        raise BadOption(f"model={model} is the network of a method that learns from features, and there are none")
    check_options(make(settings))


def pays(store: Store) -> bool:
    """Whether there are enough new votes for another full fit.

    In proportion to those known, so that all fits together cost some ten times the last one, however votes come in.
    """
    seen = max((row[0] for row in (store.cached(LAST), store.cached(FAILED)) if row is not None), default=0)
    return store.last - seen >= max(LEAST, GROWTH * seen)


def running(directory: Path) -> bool:
    return taken(directory, FITTING)


def fit(store: Store, wait: bool = True) -> bool:
    """Fit the method to all votes, unless somebody else is doing that and we do not wait; whether it was done.

    A fit that fails is noted, so that it is not tried again before there are more votes.
    """
    with held(store.directory, FITTING, wait) as ours:
        if ours:
            votes, through = store.votes()
            method = make(store.settings)
            try:
                features = pool.kept(store.directory)
                found = method.infer(votes) if features is None else method.fit(features.X, votes)
                _keep(store, found, through)
            except Exception as error:
                named = str(error) if isinstance(error, VoxError) else f"{type(error).__name__}: {error}"
                store.cache(FAILED, through, named.encode())
                raise
    return ours


def _keep(store: Store, found: Any, through: int) -> None:
    """Write what was found beside the last one, point to it, and remove the last one."""
    name = f"fit-{through}.vox"
    found.save(store.directory / name)
    before = store.cached(LAST)
    store.cache(LAST, through, name.encode())
    if before is not None and before[1].decode() != name:
        (store.directory / before[1].decode()).unlink(missing_ok=True)


def latest(store: Store) -> Fit | None:
    """The last full fit, if there is one."""
    from voxpop.methods.files import load

    while (row := store.cached(LAST)) is not None:
        path = store.directory / os.fsdecode(row[1])
        if not path.is_file():
            again = store.cached(LAST)
            if again == row:
                return None  # somebody removed it: the next fit brings another one
            continue  # it was replaced meanwhile
        found = load(path)
        if isinstance(found, Consensus):
            return Fit(row[0], found, None)
        return Fit(row[0], found.consensus_, found)
    return None


def failure(store: Store) -> str | None:
    """Why the newest fit failed, if it did."""
    failed, last = store.cached(FAILED), store.cached(LAST)
    if failed is None or (last is not None and last[0] >= failed[0]):
        return None
    return failed[1].decode()
