"""A full fit in a process of its own, which goes on when the one that began it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOG = "fit.log"  # what the last one printed: nothing, or why it broke


def start(directory: Path) -> None:
    """Begin a full fit of this loop; if one is running already, nothing comes of it."""
    command = [sys.executable, "-m", "voxpop.loop.background", os.fspath(directory.resolve())]
    with (directory / LOG).open("wb") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)


def _main(directory: Path) -> None:
    """Leave the process that asked for it at once, then fit."""
    if os.fork():
        os._exit(0)  # so that nobody has to wait for the other one
    os.setsid()
    os.nice(10)

    from voxpop.errors import VoxError
    from voxpop.loop.learning import fit
    from voxpop.loop.store import Store

    try:
        with Store(directory) as store:
            fit(store, wait=False)
    except VoxError as error:
        print(error)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
