"""The loop's database: its tables, their version, and how it is opened.

A vote is (task, worker, label): the same vote told twice is one vote, another label of the same worker on the same
task is another vote. Numbers of tasks and classes are positions on their axes; votes are numbered as they came, and
are never changed or removed, so "all votes up to number n" is a state that a model can be said to know.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from voxpop.errors import BadInput

FORMAT = 1
APPLICATION = 0x766F786C  # "voxl", in the header of the file
FILE = "loop.db"
PATIENCE = 60.0  # seconds to wait for another process that is writing

TABLES = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE task (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE class (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE worker (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cost REAL NOT NULL DEFAULT 1,
    capacity INTEGER,
    available INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE vote (
    number INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES task,
    worker INTEGER NOT NULL REFERENCES worker,
    label INTEGER NOT NULL REFERENCES class,
    UNIQUE (task, worker, label)
);
CREATE TABLE lease (
    task INTEGER NOT NULL REFERENCES task,
    worker INTEGER NOT NULL REFERENCES worker,
    until REAL NOT NULL,
    PRIMARY KEY (task, worker)
) WITHOUT ROWID;
CREATE TABLE cache (name TEXT PRIMARY KEY, through INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
"""


def create(path: Path) -> sqlite3.Connection:
    """A new database, in WAL mode."""
    connection = sqlite3.connect(path, isolation_level=None)
    with in_plain_words(path.parent):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; {TABLES}")
        _settle(connection)
    return connection


def connect(directory: Path) -> sqlite3.Connection:
    """The database of a loop, which must be there and of a format that we know."""
    if not (directory / FILE).is_file():
        what = "no such directory" if not directory.exists() else f"not a loop: there is no {FILE} in it"
        raise BadInput(f"{directory}: {what}; make one with 'voxpop loop init {directory} --votes votes.csv'")
    with in_plain_words(directory):
        uri = f"{(directory / FILE).resolve().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=PATIENCE)
        try:
            _check(connection, directory)
            _settle(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _check(connection: sqlite3.Connection, directory: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise BadInput(f"{directory}: not a loop: its {FILE} was made by another program; choose another directory")
    if version > FORMAT:
        raise BadInput(
            f"{directory}: a loop of format {version}, made by a newer voxpop (this one knows {FORMAT}); upgrade voxpop"
        )


def _settle(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")  # what is committed has reached the disk
    connection.execute("PRAGMA foreign_keys = ON")


@contextmanager
def in_plain_words(directory: Path) -> Iterator[None]:
    """What SQLite refuses, as one line that says where and what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not isinstance(error, sqlite3.OperationalError) and type(error) is not sqlite3.DatabaseError:
            raise  # a mistake of ours
        raise BadInput(f"{directory}: {_remedy(error)}") from None


def _remedy(error: sqlite3.DatabaseError) -> str:
    said = str(error).lower()
    if "full" in said or "disk i/o" in said:
        return f"{said}: nothing of this was kept; make room, and do it again"
    if "locked" in said or "busy" in said:
        return f"another process has been writing for {PATIENCE:.0f} s: nothing of this was kept; do it again"
    if "readonly" in said or "unable to open" in said:
        return f"its database cannot be written ({said}): nothing of this was kept; ask for permission"
    return f"its database is damaged ({said}); bring {FILE} back from a copy"
