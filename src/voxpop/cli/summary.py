"""What was found, in short: for people, and for machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voxpop.cli.errors import one_line
from voxpop.cli.show import show_table

if TYPE_CHECKING:
    from rich.console import Console

    from voxpop.results import Consensus

SHOWN = 5  # rows of a table
WORKER_COLUMNS = ("worker", "votes", "accuracy", "low", "high", "better_than_chance")
VERDICTS = {"worse": 0, "unclear": 1, "yes": 2}


def show_summary(out: Console, found: Consensus, scores: Mapping[str, float] | None) -> None:
    """A screenful: how it went, how often each label, which tasks and workers to look at."""
    votes = found.votes
    out.print(
        f"{found.method}, {found.status}: "
        f"{votes.V:,} votes of {votes.M:,} workers on {votes.N:,} tasks, {votes.K:,} classes"
    )
    for note in found.notes:
        out.print(f"  {one_line(note)}")
    out.print(f"  mean confidence {found.certainty.double().mean().item():.3f}, ties {found.ties:,}")
    if scores is not None:
        out.print(f"  against the truth of {scores['tasks']:,.0f} tasks: {in_words(scores)}")
    counts = found.labels["label"].value_counts(sort=True, name="tasks")
    show_table(out, counts.columns, counts.head(SHOWN).rows(), _title("most frequent labels", len(counts)))
    doubtful = found.doubtful(SHOWN)
    show_table(out, doubtful.columns, doubtful.rows(), _title("most doubtful tasks", votes.N))
    workers = found.workers.sort(
        [found.workers["better_than_chance"].replace_strict(VERDICTS), "accuracy", "worker"]
    ).select(WORKER_COLUMNS)
    titles = [column.replace("_", " ") for column in workers.columns]
    show_table(out, titles, workers.head(SHOWN).rows(), _title("least reliable workers", votes.M))


def in_words(scores: Mapping[str, float]) -> str:
    """The scores in one line."""
    return (
        f"accuracy {scores['accuracy']:.4f}, F1 {scores['f1']:.4f}, log loss {scores['log_loss']:.4f}, "
        f"confidence {scores['confidence']:.4f}, calibration error {scores['calibration_error']:.4f}"
    )


def document(
    found: Consensus, scores: Mapping[str, float] | None, written: Mapping[str, str], beliefs: bool
) -> dict[str, Any]:
    """The same as one JSON object; labels and workers are in it unless they were written to files."""
    votes = found.votes
    facts: dict[str, Any] = {
        "method": found.method,
        "options": dict(found.options),
        "status": found.status.value,
        "iterations": len(found.history),
        "notes": list(found.notes),
        "votes": votes.V,
        "tasks": votes.N,
        "workers": votes.M,
        "classes": list(votes.classes),
        "repeated": votes.repeated,
        "dropped": dict(votes.dropped),
        "ties": found.ties,
        "mean_confidence": found.certainty.double().mean().item(),
        "evaluation": None if scores is None else dict(scores),
        "written": dict(written),
    }
    if "output" not in written:
        facts["consensus"] = found.to_frame(beliefs).to_dicts()
    if "workers_out" not in written:
        facts["worker_table"] = found.workers.to_dicts()
    return facts


def _title(what: str, of: int) -> str:
    return f"{what} ({SHOWN} of {of:,})" if of > SHOWN else what
