"""voxpop simulate loop: a whole labelling loop with a crowd whose answers are known, and what asking well saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from voxpop.cli.checks import checked
from voxpop.cli.outputs import Tables
from voxpop.cli.paths import FileOption
from voxpop.cli.show import console, printing, show_json, show_table
from voxpop.engines.bars import progress
from voxpop.errors import BadOption, unknown

if TYPE_CHECKING:
    import polars as pl

    from voxpop.loop.rehearsal import Guide, Pool, Strategy

NO_DATA, CROWD = "none", "believable"
MEASURES = ("consensus", "classifier")

app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})


class OrLoop(TyperCommand):
    """``voxpop simulate loop`` is a command of its own; any other word is a kind of crowd."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if args[:1] != ["loop"]:
            return super().make_context(info_name, args, parent, **extra)
        loop = typer.main.get_command(app)
        return loop.make_context(f"{info_name} loop", args[1:], parent, **extra)


@app.command("loop")
def simulate_loop(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="What kind of crowd answers (see 'voxpop simulate --list').",
            show_default="people where they have voted on the data, else believable",
        ),
    ] = None,
    on: Annotated[
        str, typer.Option(help="Whose tasks: digits, labelme, cifar10n, ...; none: tasks without features.")
    ] = "digits",
    data: Annotated[
        Path | None, FileOption(envvar="VOXPOP_DATA", help="The folder that holds labelme/ and cifar10n/.")
    ] = None,
    tasks: Annotated[int, typer.Option(min=2, help="How many tasks, at most.")] = 1000,
    workers: Annotated[int | None, typer.Option(help="How many workers.", show_default="the kind's")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many votes are asked for in a round.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="How many rounds.")] = 4,
    start: Annotated[int, typer.Option(min=1, help="How many votes at random there are before.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="How often all is done, each time with another crowd.")] = 3,
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="random, active item, active worker, both; may be repeated.", show_default="all of them"),
    ] = None,
    score: Annotated[str, typer.Option(help="How doubtful a task is: margin, entropy, information, error.")] = "margin",
    worker_score: Annotated[
        str, typer.Option(help="Who is best for a task: thompson, ucb, epsilon explore; mean does not.")
    ] = "thompson",
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            help="What learns from the votes: dalc, lfc, stal; without features any that sees votes only.",
            show_default="dalc; without features one-coin",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Its network, with features: linear, mlp, mlp:100, ...")] = "mlp",
    epochs: Annotated[int, typer.Option(min=1, help="How long it is trained, anew after every round.")] = 20,
    output: Annotated[
        Path | None, FileOption("-o", "--output", help="Where the curves go: .csv, .parquet, ..., or - for stdout.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The curves as JSON on stdout, instead of a table.")] = False,
) -> None:
    """Simulate a labelling loop: how good labels and classifier are after so many votes, by what was asked of whom.

    Tasks at random or the most doubtful ones, workers at random or the best for the task, or both chosen. Means over
    seeds with 95% intervals.

    Example: voxpop simulate loop believable --on digits -k 100 --rounds 4 -o curves.csv
    """
    from voxpop.loop.rehearsal import STRATEGIES, curves

    outputs = Tables({"--output": output})
    if as_json and outputs.to_stdout:
        raise BadOption("--json and -o - both write to stdout; name a file with -o, or leave one of them out")
    names = strategy or list(STRATEGIES)
    checked(partial(_check_names, names, score, worker_score), outputs.check)
    with progress("simulating the loop"):
        found = curves(
            partial(_pool, on, kind, None if data is None else str(data), tasks, workers),
            _guide(on, method, model, epochs, score, worker_score),
            names,
            seeds=seeds,
            start=start,
            sizes=[k] * rounds,
        )
    table = _means(found)
    outputs.write({"--output": table})
    if as_json:
        with printing():
            show_json(table.to_dicts())
    elif not outputs.to_stdout:
        with printing():
            _show(table, seeds)


def _check_names(strategies: Sequence[str], score: str, worker_score: str) -> None:
    from voxpop.active.ask import SCORES, WORKER_SCORES
    from voxpop.loop.rehearsal import STRATEGIES

    for name in strategies:
        if name not in STRATEGIES:
            raise unknown("strategy", name, STRATEGIES)
    if score not in SCORES:
        raise unknown("score of items", score, SCORES)
    if worker_score not in WORKER_SCORES:
        raise unknown("score of workers", worker_score, WORKER_SCORES)


def _pool(on: str, kind: str | None, folder: str | None, tasks: int, workers: int | None, seed: int) -> Pool:
    """Tasks, and what everybody would answer: people where they have voted, unless a kind of crowd is named."""
    import torch

    from voxpop.bench.data import load
    from voxpop.loop.rehearsal import Pool
    from voxpop.simulate import simulate

    if on == NO_DATA:
        crowd = simulate(tasks, workers, None, kind or CROWD, seed, assignment="complete")
        return Pool(crowd.votes, crowd.truth)
    found = load(on, folder, seed).first(tasks)
    test = {"x_test": found.x_test, "y_test": found.y_test}
    if kind is None and found.votes is not None:
        return Pool(found.votes, torch.from_numpy(found.y), found.x, **test)
    return Pool.answered(found.y, found.K, kind or CROWD, seed, workers=workers, x=found.x, **test)


def _guide(
    on: str, method: str | None, model: str, epochs: int, score: str, worker_score: str
) -> Callable[[Pool, Strategy, int], Guide]:
    """What learns and asks, for a pool, a strategy and a seed."""
    from voxpop.loop.rehearsal import ByFeatures, ByVotes
    from voxpop.methods.learning.targeted import Targeted
    from voxpop.methods.registry import METHODS, find, make
    from voxpop.options import option_names

    if on == NO_DATA:
        name = find(method or "one-coin", METHODS).name

        def by_votes(pool: Pool, strategy: Strategy, seed: int) -> Guide:
            known = option_names(find(name).load())
            judge = make(name, **({"seed": seed} if "seed" in known else {}))
            return ByVotes(pool, strategy, judge, score, worker_score, seed)

        return by_votes
    kind = find(method or "dalc").load()
    if not (isinstance(kind, type) and issubclass(kind, Targeted)):
        raise BadOption(f"{method} does not know who is good at what; with features, name dalc, lfc or stal")

    def by_features(pool: Pool, strategy: Strategy, seed: int) -> Guide:
        options: dict[str, Any] = {"model": model, "epochs": epochs, "batch_size": 16, "lr": 2e-3, "seed": seed}
        return ByFeatures(pool, strategy, partial(kind, **options), score, worker_score, seed)

    return by_features


def _means(found: pl.DataFrame) -> pl.DataFrame:
    """strategy, votes, seeds, and each measure with its 95% interval."""
    import polars as pl

    from voxpop.bench.results import Mean

    rows = []
    for (strategy, votes), part in found.group_by("strategy", "votes", maintain_order=True):
        row: dict[str, Any] = {"strategy": strategy, "votes": votes, "seeds": len(part)}
        for measure in (name for name in MEASURES if name in found.columns):
            mean = Mean.of(part[measure].to_list())
            row |= {
                measure: mean.value,
                f"{measure}_low": mean.value - mean.half,
                f"{measure}_high": mean.value + mean.half,
            }
        rows.append(row)
    return pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))


def _show(table: pl.DataFrame, seeds: int) -> None:
    measures = [name for name in MEASURES if name in table.columns]

    def cell(row: dict[str, Any], measure: str) -> str:
        half = "" if row[f"{measure}_high"] is None else f" ±{100 * (row[f'{measure}_high'] - row[measure]):.1f}"
        return f"{100 * row[measure]:.1f}{half}"

    rows = [(row["strategy"], row["votes"], *(cell(row, measure) for measure in measures)) for row in table.to_dicts()]
    title = f"accuracy in %, means over {seeds} seeds with 95% intervals" if seeds > 1 else "accuracy in %"
    show_table(console(), ("strategy", "votes", *measures), rows, title)
