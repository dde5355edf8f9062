"""What an importer makes of an export: votes, gold answers, what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from voxpop.errors import BadInput, unknown
from voxpop.io.values import as_label, as_name

CANCELLED = "cancelled"
CONTRADICTORY = "contradictory gold"
NO_ANSWER = "no answer"
NO_ANNOTATOR = "no annotator"
NO_TASK = "no task"


@dataclass(frozen=True)
class Imported:
    """The votes and gold answers of one question, as text."""

    votes: pl.DataFrame  # task, worker, label
    gold: pl.DataFrame  # task, label
    dropped: Mapping[str, int]  # reason -> annotations left out
    questions: tuple[str, ...]  # all that the export asks


@dataclass(frozen=True)
class Ask:
    """What to take out of an export."""

    question: str | None = None  # by name, where there are several
    predictions: bool = False  # model predictions are votes too
    task: str | None = None  # the field that names the task, where the tool's own id should not


@dataclass
class Gathering:
    """Answers as an importer finds them, to any question, one at a time."""

    name: str  # of the file
    ask: Ask
    questions: dict[str, None] = field(default_factory=dict)
    votes: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    truths: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    dropped: Counter[tuple[str | None, str]] = field(default_factory=Counter)

    def vote(self, question: str, task: Any, worker: Any, answer: Any) -> None:
        """One answer; left out and counted where it, its task or its annotator is missing."""
        self.questions[question] = None
        who, what, said = as_name(worker), as_name(task), as_label(answer)
        if what is None or who is None or said is None:
            self.drop(NO_TASK if what is None else NO_ANNOTATOR if who is None else NO_ANSWER, question)
        else:
            self.votes.setdefault(question, []).append((what, who, said))

    def gold(self, question: str, task: Any, answer: Any) -> None:
        """One answer that is known to be right."""
        self.questions[question] = None
        what, said = as_name(task), as_label(answer)
        if what is not None and said is not None:
            self.truths.setdefault(question, []).append((what, said))

    def drop(self, reason: str, question: str | None = None) -> None:
        """An annotation of one question, or of them all, is left out."""
        self.dropped[question, reason] += 1

    def chosen(self) -> Imported:
        """The answers to the question that was asked for, or to the only one."""
        question = self._question()
        dropped = Counter({why: n for (of, why), n in self.dropped.items() if of is None})
        dropped.update({why: n for (of, why), n in self.dropped.items() if of == question})
        votes = pl.DataFrame(
            self.votes.get(question, []), schema=dict.fromkeys(("task", "worker", "label"), pl.String), orient="row"
        )
        truths = self.truths.get(question, [])
        gold = pl.DataFrame(truths, schema=dict.fromkeys(("task", "label"), pl.String), orient="row")
        return imported(self.name, votes, gold, dropped, tuple(self.questions))

    def _question(self) -> str:
        wanted = self.ask.question
        if wanted is not None:
            if wanted not in self.questions:
                raise unknown("question", wanted, self.questions)
            return wanted
        if len(self.questions) > 1:
            listed = ", ".join(repr(q) for q in self.questions)
            raise BadInput(f"{self.name} has {len(self.questions)} questions: {listed}; choose one with question=")
        return next(iter(self.questions), "")


def imported(
    name: str,
    votes: pl.DataFrame,
    gold: pl.DataFrame | None = None,
    dropped: Mapping[str, int] | None = None,
    questions: tuple[str, ...] = ("label",),
) -> Imported:
    """An import that holds at least one vote; gold answers that contradict each other are left out."""
    counts = Counter(dropped or {})
    if gold is None:
        gold = pl.DataFrame(schema={"task": pl.String, "label": pl.String})
    gold = gold.unique(maintain_order=True)
    torn = gold["task"].is_duplicated()
    if torn.any():
        counts[CONTRADICTORY] += gold.filter(torn)["task"].n_unique()
    if votes.is_empty():
        why = ", ".join(f"{n} {reason}" for reason, n in counts.items())
        raise BadInput(
            f"{name} holds no votes{f' (left out: {why})' if why else ''}; check that it is the right export"
        )
    return Imported(votes, gold.filter(~torn), dict(counts), questions)
