"""How a Consensus looks in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from voxpop.results.consensus import Consensus

ROWS = 8
_FONT = "font:13px system-ui,sans-serif;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 14px 2px 0;border-bottom:1px solid #8884;text-align:"
_VERDICTS = {"yes": "● yes", "unclear": "◆ not shown", "worse": "✕ worse"}


def card(found: Consensus) -> str:
    """What was found, the most doubtful tasks, and the busiest workers."""
    votes = found.votes
    sure = found.certainty.double().mean().item() if votes.N else 0.0
    ties = f", {found.ties:,} ties" if found.ties else ""
    head = (
        f"<b>{escape(found.method)}</b>: {votes.V:,} votes of {votes.M:,} workers on {votes.N:,} tasks, "
        f"{votes.K:,} classes; {escape(str(found.status))}. Mean confidence {sure:.1%}{ties}."
    )
    notes = "".join(f"<div style='opacity:.65'>{escape(note)}</div>" for note in found.notes)
    tables = html_table(_doubtful(found), "most doubtful tasks") + html_table(_busiest(found), "busiest workers")
    return f"<div style='{_FONT};line-height:1.5'>{head}{notes}{tables}</div>"


def html_table(frame: pl.DataFrame, caption: str) -> str:
    """A small table: numbers to the right, everything escaped."""
    styles = [_CELL + ("right" if kind.is_numeric() else "left") for kind in frame.dtypes]
    head = "".join(
        f"<th style='{style};opacity:.65'>{escape(name)}</th>"
        for name, style in zip(frame.columns, styles, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td style='{style}'>{_shown(v)}</td>" for v, style in zip(row, styles, strict=True))
        + "</tr>"
        for row in frame.iter_rows()
    )
    title = f"<caption style='text-align:left;font-weight:600;padding:10px 0 2px'>{escape(caption)}</caption>"
    return (
        f"<table style='{_FONT};border-collapse:collapse;display:inline-table;vertical-align:top;margin:0 32px 0 0'>"
        f"{title}<tr>{head}</tr>{rows}</table>"
    )


def _doubtful(found: Consensus) -> pl.DataFrame:
    return found.doubtful(ROWS).select("task", "label", "confidence", "votes")


def _busiest(found: Consensus) -> pl.DataFrame:
    busiest = found.workers.sort("votes", "worker", descending=[True, False]).head(ROWS)
    interval = pl.format("{}–{}%", *((100 * pl.col(end)).round(0).cast(pl.Int64) for end in ("low", "high")))
    verdict = pl.col("better_than_chance").replace(_VERDICTS)
    shown = busiest.select("worker", "votes", "accuracy", interval.alias("90% interval"))
    return shown.with_columns(busiest.select(verdict.alias("better than chance")).to_series())


def _shown(value: object) -> str:
    return f"{value:.1%}" if isinstance(value, float) else escape(str(value))
