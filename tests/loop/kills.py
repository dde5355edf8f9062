"""Kill ``voxpop loop tell`` at random moments, and count what became of the votes.

By itself, ``python -m tests.loop.kills 200`` does it so many times and prints what it saw.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROWS = 200  # votes in a file
TASKS = 50
WORKERS = 400


@dataclass
class Seen:
    """What a series of kills left behind."""

    died: int = 0  # tells that the kill ended
    told: int = 0  # tells that had said "accepted" first
    kept: int = 0  # tells that died unheard, with their votes kept
    lost: list[str] = field(default_factory=list)  # what must not happen
    votes: int = 0


def tell(directory: str, file: str, out: str) -> None:
    """``voxpop loop tell`` in a process of its own, which is ready to run it at once."""
    from voxpop.cli.app import run

    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    code = run(["loop", "tell", directory, file])
    os._exit(code)


def ready() -> multiprocessing.context.ForkServerContext:
    """Starts processes that have imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["voxpop.cli.app", "voxpop.loop.loop", "voxpop.methods.dawid_skene", "voxpop.io"])
    return context


def series(count: int, seed: int, longest: float | None = None) -> Seen:
    """So many tells, each killed at a random moment: of its whole life, and in turn around its first write.

    ``longest``: how long one takes that nobody kills; measured where it is not given.
    """
    context = ready()
    luck, seen = random.Random(seed), Seen()
    with tempfile.TemporaryDirectory() as place:
        crowd, expected = str(Path(place) / "crowd"), Counter[tuple[str, ...]]()
        names = [f"t{i}" for i in range(TASKS)]
        _begin(crowd, names)
        longest = longest or _undisturbed(context, crowd, place, names)
        for number in range(count):
            file, out = Path(place) / f"new{number}.csv", Path(place) / f"out{number}"
            rows = _rows(luck, names, number)
            file.write_text("task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows))
            process = context.Process(target=tell, args=(crowd, str(file), str(out)))
            process.start()
            if number % 2:
                time.sleep(luck.uniform(0, 1.2 * longest))
            else:  # around the moment when it writes
                _wait_for_writing(Path(crowd) / "loop.db-wal", 5 * longest)
                time.sleep(luck.uniform(0, 0.05 * longest))
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
            process.join()
            seen.died += process.exitcode == -signal.SIGKILL
            said = out.is_file() and out.read_text().startswith("accepted")
            have = _votes(crowd)
            mine = sum(have[row] for row in rows)
            if mine not in (0, ROWS):
                seen.lost.append(f"tell {number}: {mine} of its {ROWS} votes are there")
            if said and mine != ROWS:
                seen.lost.append(f"tell {number}: it said accepted, and {mine} of its {ROWS} votes are there")
            seen.told += said
            seen.kept += mine == ROWS and not said
            if mine:
                expected.update(rows)
            if have != expected + _first(names):
                seen.lost.append(f"tell {number}: other votes than those that were accepted")
        seen.votes = sum(_votes(crowd).values())
    return seen


def _wait_for_writing(log: Path, longest: float) -> None:
    def size() -> int:
        return log.stat().st_size if log.exists() else 0

    before, end = size(), time.monotonic() + longest
    while size() <= before and time.monotonic() < end:
        time.sleep(0.0002)


def _first(names: list[str]) -> Counter[tuple[str, ...]]:
    return Counter((name, "first", "yes") for name in names)


def _begin(crowd: str, names: list[str]) -> None:
    from voxpop.loop.loop import Loop
    from voxpop.votes import Votes

    votes = Votes.from_arrays(names, ["first"] * len(names), ["yes"] * len(names), classes=["no", "yes"])
    with Loop.begin(crowd, votes):
        pass


def _rows(luck: random.Random, names: list[str], number: int) -> list[tuple[str, str, str]]:
    """Votes that no other file has: their workers carry the file's number."""
    pairs = luck.sample([(name, f"w{number}-{i}") for name in names for i in range(WORKERS // TASKS)], ROWS)
    return [(name, worker, luck.choice(["no", "yes"])) for name, worker in pairs]


def _undisturbed(context: multiprocessing.context.ForkServerContext, crowd: str, place: str, names: list[str]) -> float:
    """How long a tell takes that nobody kills; it tells what is known."""
    file = Path(place) / "known.csv"
    file.write_text("task,worker,label\n" + "".join(f"{name},first,yes\n" for name in names))
    for _ in range(2):  # the first one waits for the server
        start = time.monotonic()
        process = context.Process(target=tell, args=(crowd, str(file), str(Path(place) / "known")))
        process.start()
        process.join()
        assert process.exitcode == 0, process.exitcode
    return time.monotonic() - start


def _votes(crowd: str) -> Counter[tuple[str, ...]]:
    """All votes as they are stored, read without the code under test."""
    connection = sqlite3.connect(Path(crowd) / "loop.db")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return Counter(
            connection.execute(
                "SELECT task.name, worker.name, class.name FROM vote JOIN task ON task.number = vote.task "
                "JOIN worker ON worker.number = vote.worker JOIN class ON class.number = vote.label"
            )
        )
    finally:
        connection.close()


if __name__ == "__main__":
    print(series(int(sys.argv[1]), seed=0))
