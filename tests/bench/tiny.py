"""A tiny experiment, whose cells note in a file that they ran; and results out of thin air."""

from __future__ import annotations

import os
from pathlib import Path

from voxpop.bench.claims import Claim, at_least
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Results
from voxpop.errors import RunFailed

NOTES = "VOXPOP_TEST_NOTES"  # the file's path, which processes inherit
ACCURACY = {"good": 0.9, "bad": 0.6}


def measure(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    """A number for each cell; the method "frail" has none in the case 2, and "killed" stops all as a kill does."""
    with Path(os.environ[NOTES]).open("a") as notes:
        notes.write(f"{case} {method} {seed}\n")
    if method == "frail" and case == "2":
        raise RunFailed("the loss is not a number")
    if method == "killed" and seed == 1:
        raise KeyboardInterrupt
    return {"accuracy": ACCURACY.get(method, 0.5) + 0.01 * seed + 0.001 * int(case)}


def notes() -> list[str]:
    """The cells that ran, in their order."""
    file = Path(os.environ[NOTES])
    return file.read_text().splitlines() if file.exists() else []


def claims(results: Results) -> list[Claim]:
    return [at_least("good beats bad", {"1": results.gap("1", "good", "bad", "accuracy").value}, 0.1)]


def experiment(*methods: str) -> Experiment:
    part = Part("part", "a part", ("1", "2"), methods, measure, ("accuracy",), "votes", claims=claims)
    other = Part("other", "another part", ("1",), methods[:1], measure, ("accuracy",), seeds=1)
    return Experiment("tiny", "Nobody: Nothing", "What it is about.", lambda settings: (part, other))
