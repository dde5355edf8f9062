"""The program: its commands, and how it starts and ends."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from voxpop.cli.aggregate import aggregate
from voxpop.cli.agreement import agreement
from voxpop.cli.ask import ask
from voxpop.cli.bench import bench
from voxpop.cli.convert import ListsSources, convert
from voxpop.cli.demo import demo
from voxpop.cli.errors import exit_code, interrupted, noting_interrupts, say
from voxpop.cli.learn import learn
from voxpop.cli.loop import loop
from voxpop.cli.methods import methods
from voxpop.cli.predict import predict
from voxpop.cli.simulate import simulate
from voxpop.cli.simulate_loop import OrLoop
from voxpop.errors import VoxWarning

NAME = "voxpop"
COMPLETING = "_VOXPOP_COMPLETE"  # set by a shell that asks what could be typed next
EXAMPLES = (
    "Examples, one a command; each has its own --help:",
    "voxpop aggregate votes.csv -o consensus.csv --workers-out workers.csv --report report.html",
    "voxpop learn votes.csv --features x.npz -m max-mig -o model.vox",
    "voxpop predict model.vox --features new.npz -o predictions.csv",
    "voxpop ask model.vox votes.csv --features pool.npz -k 20 -o next.csv",
    "voxpop agreement votes.csv",
    "voxpop convert label-studio export.json votes.csv --question sentiment",
    "voxpop methods dawid-skene",
    "voxpop simulate spammers -o votes.csv --truth-out truth.csv --set share=0.4",
    "voxpop simulate loop believable --on digits -k 100 --rounds 4 -o curves.csv",
    "voxpop demo --report report.html",
    "voxpop bench maxmig --quick -o results",
    "voxpop loop init crowd --votes votes.csv --features pool.npz",
    "Exit codes: 0 done, 1 the run failed, 2 bad input, 130 interrupted.",
)

app = typer.Typer(
    name=NAME,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n\n".join(EXAMPLES),
)
app.command()(aggregate)
app.command()(learn)
app.command()(predict)
app.command()(ask)
app.command()(agreement)
app.command(cls=ListsSources)(convert)
app.command()(methods)
app.command(cls=OrLoop)(simulate)
app.command()(demo)
app.command()(bench)
app.add_typer(loop, name="loop")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """What is true, how sure is it, and who can be trusted, when those who label disagree."""
    if version:
        from voxpop import __version__

        typer.echo(f"{NAME} {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit


def main() -> None:
    """Run the command line that this process was given, and end with its exit code."""
    if COMPLETING in os.environ:
        app(prog_name=NAME)
    with noting_interrupts() as interrupts:
        try:
            code = run(sys.argv[1:])
        except Exception:
            if not interrupts:
                raise
            code = interrupted()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", VoxWarning)
        warnings.showwarning = _Warnings()
        return exit_code(lambda: _invoke(arguments))


def _invoke(arguments: Sequence[str]) -> None:
    command = get_command(app)
    with command.make_context(NAME, list(arguments)) as context:
        command.invoke(context)


class _Warnings:
    """Each warning as one line on stderr, once."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def __call__(self, message: Warning | str, *_: object, **__: object) -> None:
        text = str(message)
        if text not in self.said:
            self.said.add(text)
            say(f"warning: {text}")
