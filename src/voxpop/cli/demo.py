"""voxpop demo: a crowd whose secrets are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voxpop.cli.outputs import Outputs
from voxpop.cli.paths import FileOption
from voxpop.cli.show import console, printing
from voxpop.engines.bars import progress


def demo(
    report: Annotated[
        Path | None, FileOption(help="A page to look at, as one HTML file; its directory is made if need be.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another crowd.")] = 0,
) -> None:
    """Let a simulated crowd read handwritten digits, and see who is found out and how good the truth is.

    Example: voxpop demo --report report.html
    """
    from voxpop.report import run_demo

    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
    Outputs({"--report": report}).check()
    with progress("asking the crowd"):
        found = run_demo(report, seed)
    with printing():
        console().print(found)
