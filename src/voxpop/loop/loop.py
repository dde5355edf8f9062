"""A loop in its directory: begin one, tell it votes, ask what to ask next, see where it stands."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import polars as pl

from voxpop.active.ask import Asked
from voxpop.errors import BadInput, BadOption
from voxpop.io import read
from voxpop.io.features import Features
from voxpop.loop import pool
from voxpop.loop.asking import HandOut, ask, planned
from voxpop.loop.background import start
from voxpop.loop.create import fill, made_whole
from voxpop.loop.knowledge import Known, known
from voxpop.loop.learning import DEFAULT, LEARNER, check_method, failure, fit, pays, running
from voxpop.loop.online import learn
from voxpop.loop.store import Store, Told
from voxpop.votes import Votes
from voxpop.votes.axis import as_names, as_text, sort_names

WORTH = 100.0  # votes at a cost of 1 that one more right label is worth


class Loop:
    """A labelling loop whose state is a directory. A context manager that closes its database."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.store = Store(self.directory)

    @classmethod
    def begin(
        cls,
        directory: str | Path,
        votes: Votes | None = None,
        features: Features | None = None,
        *,
        tasks: Iterable[Any] | None = None,
        workers: pl.DataFrame | None = None,
        classes: Iterable[Any] | None = None,
        method: str | None = None,
        model: str | None = None,
        options: Sequence[str] = (),
        worth: float = WORTH,
        seed: int = 0,
    ) -> Self:
        """Make the directory, whole or not at all.

        The tasks are those of ``features``, or of ``tasks`` and the votes where there are no features. The classes
        are those of the votes, or ``classes``; they cannot be added to later. ``workers`` is what ``read_workers``
        gives: others are not available then. ``method`` is fitted to all votes now and then: one that learns from the
        features, with ``model`` as its network, or one that needs none; ``options`` are its own, as NAME=VALUE.
        ``worth``: of one more right label, in the unit of the workers' costs.
        """
        place = Path(directory)
        names = _tasks(votes, features, tasks)
        labels = _classes(votes, classes)
        if not worth > 0:
            raise BadOption(f"worth={worth:g}: a right label must be worth more than 0")
        settings = {"method": method or (DEFAULT if features is None else LEARNER), "model": model}
        settings |= {"options": json.dumps(list(options)), "worth": str(worth), "seed": str(seed)}
        check_method(settings, features is not None)
        with made_whole(place) as part:
            if features is not None:
                pool.keep(features, part)
            with fill(part, names, labels, settings) as store, store.changing():
                if votes is not None:
                    store.tell(votes.to_frame().cast(pl.String))
                if workers is not None:
                    store.employ(workers, only=True)
            with Store(part) as store:
                learn(store)
        return cls(place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    # -- in ---------------------------------------------------------------------------------------

    def read(self, path: Any, source: str | None = None, **options: Any) -> Votes:
        """Votes of a file, which must be of this loop's tasks and classes; options as for ``voxpop.read``."""
        try:
            return read(path, source, tasks=self.store.tasks.names, classes=self.store.classes.names, **options)
        except BadInput as error:
            raise BadInput(*map(_of_this_loop, error.problems)) from None

    def tell(self, votes: Votes | None = None, workers: pl.DataFrame | None = None) -> Told:
        """Keep votes, and what ``read_workers`` gives of workers; all, or none where something is wrong."""
        told = Told(0, 0, [])
        frame = None if votes is None else votes.to_frame().cast(pl.String)
        if frame is not None:
            Votes.from_frame(frame, tasks=self.store.tasks.names, classes=self.store.classes.names)
        with self.store.changing():
            more = [] if workers is None else self.store.employ(workers)
            if frame is not None:
                told = self.store.tell(frame)
        return told._replace(newcomers=more + told.newcomers)

    def learn(self) -> None:
        """Judge the workers by what was told since, in time proportional to it; ``ask`` would do it otherwise."""
        learn(self.store)

    # -- out --------------------------------------------------------------------------------------

    def ask(self, k: int, lease: float = 3600, hand_out: HandOut | None = None, background: bool = True) -> Asked:
        """The ``k`` pairs of task and worker that are best asked next; they are out for ``lease`` seconds.

        What is out is not asked again before it is told or has expired. ``hand_out`` is given the frame before
        anything is out; where it fails, nothing is. Where a full fit pays, it begins in the ``background``.
        """
        if not lease > 0:
            raise BadOption(f"lease={lease:g}: give more than 0 seconds")
        asked = ask(self.store, k, lease, time.time(), hand_out)
        if background and pays(self.store) and not running(self.directory):
            start(self.directory)
        return asked

    def fit(self) -> None:
        """A full fit to all votes, now; when somebody else is at it, after that."""
        fit(self.store)

    def known(self) -> Known:
        """What is true as far as the votes tell, and what that rests on."""
        return known(self.store)

    def status(self) -> dict[str, Any]:
        """Where the loop stands, in plain values."""
        now = time.time()
        workers, facts = self.store.workers(), self.known()
        try:
            reason = planned(self.store, 1, now, facts).reason
        except BadInput as error:
            reason = str(error)
        return {
            "votes": facts.votes.V,
            "tasks": facts.votes.N,
            "classes": facts.votes.K,
            "workers": len(workers),
            "available": int(workers["available"].sum()),
            "outstanding": len(self.store.outstanding(now)),
            "expected_accuracy": float(facts.found.certainty.double().mean()),
            "stop": bool(reason),
            "reason": reason or None,
            "method": self.store.settings["method"],
            "fitted": facts.fit.through if facts.fit else 0,
            "fitting": running(self.directory),
            "failed": failure(self.store),
        }


GIVEN = re.compile(r"'(.*)' is not one of the given (tasks|classes) \((.*)\)$", re.DOTALL)


def _of_this_loop(problem: str) -> str:
    """A name that is not on an axis, in this loop's words."""
    found = GIVEN.search(problem)
    if found is None:
        return problem
    name, kind, known = found.groups()
    return (
        f"{problem[: found.start()]}'{name}' is not one of this loop's {kind} ({known}); nothing was taken: "
        "correct it, or leave the row out"
    )


def _tasks(votes: Votes | None, features: Features | None, tasks: Iterable[Any] | None) -> pl.Series:
    """The loop's tasks, as text."""
    voted = pl.Series([], dtype=pl.String) if votes is None else as_text(votes.tasks.names)
    if features is None:
        more = as_text(as_names(list(() if tasks is None else tasks), "tasks"))
        names = sort_names(pl.concat([voted, more]).unique())
    else:
        names = as_text(features.tasks)
        absent = voted.filter(~voted.is_in(names.implode()))
        if len(absent):
            raise BadInput(
                f"{features.source}: {len(absent):,} of the {len(voted):,} tasks with votes have no features "
                f"(first: '{absent[0]}'); add their rows, or leave their votes out"
            )
    if names.is_empty():
        raise BadInput("the pool is empty: there is no task to ask about; give votes, features or a pool with tasks")
    return names


def _classes(votes: Votes | None, classes: Iterable[Any] | None) -> pl.Series:
    names = as_text(as_names(list(classes), "classes")) if classes is not None else None
    if names is None:
        names = pl.Series([], dtype=pl.String) if votes is None else as_text(votes.classes.names)
    if len(names) < 2:
        raise BadInput(f"there are {len(names)} classes, which leaves nothing to ask; name them all, two or more")
    return names
