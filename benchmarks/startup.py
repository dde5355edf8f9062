"""How soon the command line answers."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import process
from benchmarks.page import Table, verdict

MOST = 0.4


def run(quick: bool) -> Table:
    program = str(Path(sys.executable).parent / "voxpop")
    times = {
        " ".join(("voxpop", *words)): min(process(program, *words).seconds for _ in range(5))
        for words in (("--help",), ("aggregate", "--help"), ("methods",))
    }
    return Table(
        "Startup",
        "The best of five, a process each.",
        ["command", "s"],
        [[f"`{command}`", f"{time:.2f}"] for command, time in times.items()],
        [
            verdict(
                times["voxpop --help"] < MOST, f"`voxpop --help` in {times['voxpop --help']:.2f} s (promised: {MOST})"
            )
        ],
    )
