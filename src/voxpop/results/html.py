"""How a Consensus looks in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from voxpop.results.consensus import Consensus

_STYLE = "border-collapse:collapse;font:13px system-ui,sans-serif;margin:4px 24px 4px 0;display:inline-table;vertical-align:top"


def card(found: Consensus) -> str:
    """What was found, the most doubtful tasks and the workers with the most votes."""
    votes = found.votes
    head = (
        f"<b>{escape(found.method)}</b>: {votes.V:,} votes of {votes.M:,} workers on {votes.N:,} tasks, "
        f"{votes.K} classes. {escape(str(found.status))}. Mean confidence "
        f"{found.certainty.double().mean().item():.1%}" + (f", {found.ties} ties" if found.ties else "")
    )
    notes = "".join(f"<div style='color:#666'>{escape(n)}</div>" for n in found.notes)
    workers = found.workers.sort("votes", "worker", descending=[True, False]).head(8)
    shown = [
        c
        for c in ("worker", "votes", "accuracy", "low", "high", "information", "better_than_chance")
        if c in workers.columns
    ]
    return (
        f"<div style='font:13px system-ui,sans-serif'>{head}{notes}"
        f"{html_table(found.doubtful(8).select('task', 'label', 'confidence', 'votes'), 'most doubtful tasks')}"
        f"{html_table(workers.select(shown), 'busiest workers')}</div>"
    )


def html_table(frame: pl.DataFrame, caption: str) -> str:
    """A small table; numbers to three digits, text escaped."""
    head = "".join(
        f"<th style='text-align:left;padding:2px 8px'>{escape(c.replace('_', ' '))}</th>" for c in frame.columns
    )
    rows = "".join(
        "<tr>" + "".join(f"<td style='padding:2px 8px'>{_cell(v)}</td>" for v in row) + "</tr>"
        for row in frame.iter_rows()
    )
    return f"<table style='{_STYLE}'><caption style='text-align:left;font-weight:600'>{escape(caption)}</caption><tr>{head}</tr>{rows}</table>"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else escape(str(value))
