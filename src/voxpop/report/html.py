"""A consensus as one HTML page: works from disk, without a network, on paper and on a phone."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import partial
from math import log2
from os import PathLike
from typing import Any

from voxpop.audit.copies import copies
from voxpop.report.beside import about, beside, gain, majority_of, plain_name
from voxpop.report.doubtful import Picture, checks_to_halve, contested, most_doubtful
from voxpop.report.figures import figure
from voxpop.report.mistakes import commonest_mistakes
from voxpop.report.people import most_interesting, telling, verdicts
from voxpop.results import Consensus, plots

PAIRS = 20  # of workers who vote alike, shown at most


def html_report(
    found: Consensus,
    path: str | PathLike[str],
    truth: Any = None,
    others: Iterable[Consensus] = (),
    title: str | None = None,
    picture: Picture | None = None,
) -> None:
    """Write the page of ``html_page`` to a file, whole or not at all."""
    from voxpop.io.write import writing

    page = html_page(found, truth, others, title, picture)
    with writing(path) as file:
        file.write(page.encode())


def html_page(
    found: Consensus,
    truth: Any = None,
    others: Iterable[Consensus] = (),
    title: str | None = None,
    picture: Picture | None = None,
    learned: Mapping[str, Any] | None = None,
) -> str:
    """What was found, how sure it is, and who can be trusted, as one self-contained HTML page.

    ``truth`` (task -> label, or a frame) only evaluates. ``others`` are results of other methods on the same
    votes to show beside. ``picture`` gives a task's picture as PNG, for the tasks that are shown one by one.
    ``learned`` is what ``report.learning`` says of a training.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from voxpop import __version__

    page = Environment(loader=PackageLoader("voxpop.report", ""), autoescape=True, undefined=StrictUndefined)
    page.filters |= {"percent": percent, "count": count, "png": _png}
    votes, others = found.votes, list(others)
    majority = majority_of(found, others)
    compared = others if majority is None or majority in (found, *others) else [*others, majority]
    methods = beside(found, compared, truth)
    expected_wrong, half = checks_to_halve(found)
    alike = None if found.table is None else copies(found)
    return page.get_template("template.html").render(
        version=__version__,
        title=title or f"What {votes.M:,} workers say about {votes.N:,} tasks",
        found=found,
        votes=votes,
        method=plain_name(found.method),
        about=about(found.method),
        confidence=float(found.certainty.double().mean()) if votes.N else 0.0,
        without_votes=int((votes.whole.votes_per_task == 0).sum()),
        expected_wrong=expected_wrong,
        half=half,
        bits=log2(max(votes.K, 1)),
        truth=truth is not None,
        methods=methods,
        scores=next(row.scores for row in methods if row.found),
        gain=None if truth is None or majority is None or majority is found else gain(found, majority, truth),
        doubtful=most_doubtful(found, truth),
        contested=contested(found, truth, picture),
        workers=most_interesting(found).to_dicts(),
        verdicts=verdicts(found),
        pairs=None if alike is None else alike.head(PAIRS).to_dicts(),
        pairs_in_all=0 if alike is None else len(alike),
        mistakes=commonest_mistakes(found),
        figures=_figures(found, truth),
        learned=learned,
    )


def _figures(found: Consensus, truth: Any) -> dict[str, Any]:
    """Everything that is drawn, by name; ``confusions`` is a list of captions and figures."""
    votes = found.votes
    drawn: dict[str, Any] = {
        "confidence": figure(partial(plots.confidence, found), "How many tasks have which confidence"),
        "review": figure(partial(plots.review, found), "Wrong labels to expect after checking the most doubtful"),
        "classes": figure(
            lambda ax: plots.classes(found, truth, ax), "Share of each class", height=1.1 + 0.2 * min(votes.K, 21)
        ),
    }
    if votes.V:
        drawn["reliability"] = figure(
            partial(plots.reliability, found), "Accuracy of each worker against the number of votes", 7.2, 3.6
        )
    if len(found.history) > 1:
        drawn["history"] = figure(partial(plots.history, found), "Progress of the fit by iteration")
    if truth is not None:
        drawn["calibration"] = figure(
            lambda ax: plots.calibration(found, truth, ax), "Confidence against the share that is right"
        )
    if found.table is not None and votes.K > 1:
        drawn["confusions"] = [
            (words, worker, figure(partial(plots.confusion, found, worker), f"Confusion matrix of {worker}", 3.4, 3.4))
            for words, worker in telling(found)
        ]
    return drawn


def percent(share: float, digits: int = 1) -> str:
    """A share in percent; what is not quite all or nothing does not round to it."""
    shown = f"{100 * share:.{digits}f}%"
    least = 10**-digits
    if share < 1 and shown == f"{100:.{digits}f}%":
        return f"over {100 - least:.{digits}f}%"
    if share > 0 and shown == f"{0:.{digits}f}%":
        return f"under {least:.{digits}f}%"
    return shown


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _png(picture: bytes) -> str:
    return "data:image/png;base64," + b64encode(picture).decode()
