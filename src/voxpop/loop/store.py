"""What a loop keeps: tasks, classes, workers, votes and leases. Every change is one transaction: all of it or none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from voxpop.loop.schema import connect, in_plain_words
from voxpop.votes import Axis, Votes

WORKER = {"worker": pl.String, "cost": pl.Float64, "capacity": pl.Int64, "available": pl.Boolean}
PAIR = {"task": pl.Int64, "worker": pl.Int64}


class Told(NamedTuple):
    """What became of votes that were told."""

    accepted: int
    known: int
    newcomers: list[str]  # workers who were not known


class Store:
    """The database of a loop. A context manager that closes it."""

    def __init__(self, directory: Path, connection: sqlite3.Connection | None = None) -> None:
        self.directory = directory
        self._connection = connect(directory) if connection is None else connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with in_plain_words(self.directory):
            self._connection.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """What is written in this block is kept whole once it ends well, otherwise not at all."""
        yield from self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read in this block is of one moment."""
        yield from self._transaction("BEGIN")

    def _transaction(self, begin: str) -> Iterator[None]:
        with in_plain_words(self.directory):
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with in_plain_words(self.directory):
            return self._connection.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: Any) -> Any:
        return self._rows(sql, *values)[0][0]

    # -- what never changes ---------------------------------------------------------------------

    @cached_property
    def settings(self) -> dict[str, str]:
        return dict(self._rows("SELECT name, value FROM setting"))

    @cached_property
    def tasks(self) -> Axis:
        return Axis("tasks", self._names("task"))

    @cached_property
    def classes(self) -> Axis:
        return Axis("classes", self._names("class"))

    def _names(self, table: str) -> pl.Series:
        rows = self._rows(f"SELECT name FROM {table} ORDER BY number")
        return pl.Series([name for (name,) in rows], dtype=pl.String)

    # -- votes ----------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the newest vote, which is how many there are."""
        return int(self._one("SELECT coalesce(max(number), 0) FROM vote"))

    def votes(self, after: int = 0) -> tuple[Votes, int]:
        """The votes with numbers above ``after``, and the newest number; workers in the order in which they came."""
        with self.reading():
            workers = self._names("worker")
            rows = self._rows("SELECT task, worker, label, number FROM vote WHERE number > ?", after)
        task, worker, label, number = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        votes = Votes.from_columns(
            self.tasks.names.gather(task),
            workers.gather(worker),
            self.classes.names.gather(label),
            tasks=self.tasks.names,
            workers=workers,
            classes=self.classes.names,
            source=str(self.directory),
        )
        return votes, int(number.max(initial=after))

    def tell(self, votes: pl.DataFrame) -> Told:
        """Keep votes (task, worker, label as text) of this loop's tasks and classes; a vote that is known is not new.

        What is answered is not outstanding any more. To be called while ``changing``.
        """
        task, label = self.tasks.codes(votes["task"]).to_list(), self.classes.codes(votes["label"]).to_list()
        numbers, newcomers = self._welcome(votes["worker"].unique(maintain_order=True).to_list())
        worker = [numbers[name] for name in votes["worker"]]
        before = self.last
        rows = zip(task, worker, label, strict=True)
        self._many("INSERT OR IGNORE INTO vote (task, worker, label) VALUES (?, ?, ?)", rows)
        self._many("DELETE FROM lease WHERE task = ? AND worker = ?", zip(task, worker, strict=True))
        accepted = self.last - before
        return Told(accepted, len(votes) - accepted, newcomers)

    # -- workers --------------------------------------------------------------------------------

    def workers(self) -> pl.DataFrame:
        """worker, cost, capacity (null: any), available; in the order in which they came."""
        rows = self._rows("SELECT name, cost, capacity, available FROM worker ORDER BY number")
        return pl.DataFrame(rows, schema=WORKER, orient="row")

    def positions(self, workers: pl.Series) -> pl.Series:
        """The numbers of workers who are known, in the order of these names."""
        return Axis("workers", self._names("worker")).codes(workers).cast(pl.Int64)

    def employ(self, workers: pl.DataFrame, only: bool = False) -> list[str]:
        """Keep what is said of these workers; others stay as they are, or (``only``) are not available.

        To be called while ``changing``. Returns who was not known.
        """
        if only:
            self._connection.execute("UPDATE worker SET available = 0")
        numbers, newcomers = self._welcome(workers["worker"].to_list())
        rows = workers.select("cost", "capacity", "available", "worker").iter_rows()
        values = [(*row, numbers[name]) for *row, name in rows]
        self._many("UPDATE worker SET cost = ?, capacity = ?, available = ? WHERE number = ?", values)
        return newcomers

    def _welcome(self, names: list[str]) -> tuple[dict[str, int], list[str]]:
        """The numbers of all workers, with these among them; and who was not known."""
        numbers = dict(self._rows("SELECT name, number FROM worker"))
        newcomers = [name for name in names if name not in numbers]
        numbers |= {name: len(numbers) + place for place, name in enumerate(newcomers)}
        self._many("INSERT INTO worker (name, number) VALUES (?, ?)", [(name, numbers[name]) for name in newcomers])
        return numbers, newcomers

    # -- leases ---------------------------------------------------------------------------------

    def outstanding(self, now: float) -> pl.DataFrame:
        """The pairs of task and worker (positions) that were asked, are not answered, and have not expired."""
        rows = self._rows("SELECT task, worker FROM lease WHERE until > ?", now)
        return pl.DataFrame(rows, schema=PAIR, orient="row")

    def lease(self, pairs: pl.DataFrame, now: float, until: float) -> list[bool]:
        """Pairs of names are out until then; not those that were answered unasked meanwhile. Which they are.

        What has expired is forgotten. To be called while ``changing``.
        """
        self._connection.execute("DELETE FROM lease WHERE until <= ?", (now,))
        places = list(zip(self.tasks.codes(pairs["task"]), self.positions(pairs["worker"]), strict=True))
        voted = "SELECT EXISTS (SELECT 1 FROM vote WHERE task = ? AND worker = ?)"
        free = [not self._one(voted, *place) for place in places]
        rows = [(*place, until) for place, out in zip(places, free, strict=True) if out]
        self._many("INSERT INTO lease (task, worker, until) VALUES (?, ?, ?)", rows)
        return free

    # -- what can be found again ------------------------------------------------------------------

    def cached(self, name: str) -> tuple[int, bytes] | None:
        """What was kept under a name, and the number of the last vote that it knows."""
        rows = self._rows("SELECT through, value FROM cache WHERE name = ?", name)
        return rows[0] if rows else None

    def cache(self, name: str, through: int, value: bytes) -> None:
        """Keep what is derived from the votes up to a number, unless what is there knows more of them."""
        keep = "INSERT INTO cache VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET through = excluded.through, "
        keep += "value = excluded.value WHERE excluded.through >= through"
        with self.changing():
            self._connection.execute(keep, (name, through, value))

    def _many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._connection.executemany(sql, rows)
