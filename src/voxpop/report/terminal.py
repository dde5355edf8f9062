"""How the demonstration looks in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from voxpop.report.demo import DemoResult, Judged

PAIRS = 5  # shown at most


def shown(result: DemoResult) -> Group:
    """About thirty lines: the crowd, the methods, who was found out, where the report is."""
    return Group(
        *_crowd(result),
        _heading("How good is the truth that comes out?"),
        _methods(result),
        _better(result),
        _heading("Who was found out? (better than chance, unclear, or worse than chance)"),
        _judged(result.judged),
        _spammers(result),
        _heading("Who votes as one?"),
        *_copies(result),
        *_report(result),
    )


def _crowd(result: DemoResult) -> list[Text]:
    votes = result.found.votes
    kinds = ", ".join(f"{row.workers} {_plural(row.kind)}" for row in result.judged)
    return [
        Text(f"{votes.V:,} votes of {votes.M} simulated workers on {votes.N:,} handwritten digits", "bold"),
        Text(f"Planted among them: {kinds}.", "dim"),
        Text("voxpop sees the votes and nothing else.", "dim"),
    ]


def _methods(result: DemoResult) -> Padding:
    table = _table("method", "wrong labels", "accuracy", "confidence", "calibration error")
    for row in sorted(result.methods, key=lambda row: row.found):
        scores = row.scores or {}
        cells = (
            row.method,
            f"{row.wrong:,}",
            f"{scores['accuracy']:.1%}",
            f"{scores['confidence']:.1%}",
            f"{100 * scores['calibration_error']:.1f} points",
        )
        table.add_row(*cells, style="bold green" if row.found else "")
    return _indented(table)


def _better(result: DemoResult) -> Padding:
    wrong = next(row.wrong for row in result.methods if row.method == "majority-vote")
    gain = result.gain
    return _indented(
        Text(
            f"Of the majority's {wrong} mistakes, {gain.fewer:.0%} are gone: "
            f"{gain.righted} set right, {gain.spoiled} set wrong."
        )
    )


def _judged(rows: Iterable[Judged]) -> Padding:
    table = _table("planted", "workers", "votes", "accuracy", "as judged", "better", "unclear", "worse")
    for row in rows:
        cells = (
            _plural(row.kind),
            f"{row.workers}",
            f"{row.votes:,}",
            f"{row.accuracy:.0%}",
            f"{row.judged:.0%}",
            *(f"{number or '·'}" for number in (row.better, row.unclear, row.worse)),
        )
        table.add_row(*cells)
    return _indented(table)


def _spammers(result: DemoResult) -> Padding:
    spammers = result.of_kind("spammer")
    accused = f"so are {result.accused} others" if result.accused else "all others are"
    return _indented(
        Text(
            f"{spammers.flagged} of {spammers.workers} spammers are not found to be better than chance; {accused}.\n"
            f"Recall {result.recall:.0%}, precision {result.precision:.0%}."
        )
    )


def _copies(result: DemoResult) -> list[Padding]:
    lines = [
        Text(
            f"{pair.worker} and {pair.other} agree on {pair.agreed:,} of {pair.shared:,} digits; "
            f"{pair.expected:,.0f} were to be expected",
            "" if pair.planted else "red",
        )
        for pair in result.pairs[:PAIRS]
    ]
    if len(result.pairs) > PAIRS:
        lines.append(Text(f"and {len(result.pairs) - PAIRS} more pairs", "dim"))
    wrong = sum(not pair.planted for pair in result.pairs)
    lines.append(
        Text(
            f"{result.copies_caught} of {result.of_kind('copy').workers} planted copies are caught, "
            f"{wrong or 'nobody'} {'pair is' if wrong == 1 else 'pairs are' if wrong else 'is'} accused wrongly."
        )
    )
    return [_indented(line) for line in lines]


def _report(result: DemoResult) -> list[Text]:
    if result.report is None:
        return []
    return [
        Text(),
        Text.assemble("The report, with figures and the most doubtful digits:\n  ", (str(result.report), "bold")),
    ]


def _heading(text: str) -> Text:
    return Text(f"\n{text}", "bold")


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _indented(what: Table | Text) -> Padding:
    return Padding(what, (0, 0, 0, 2), expand=False)


def _plural(kind: str) -> str:
    return {"copy": "copies", "sloppy": "sloppy workers"}.get(kind, kind + "s")
