"""What was found as a page in Markdown: a table for each part and measure, its figure, and the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from voxpop.bench.claims import Claim
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Mean, Results

Table = tuple[list[str], list[list[str]]]  # columns, rows


def table(part: Part, results: Results, measure: str) -> Table:
    """A row for each method, a column for each case; the paper's number in brackets."""
    rows = [[method, *(_cell(part, results, case, method, measure) for case in part.cases)] for method in part.methods]
    return ["method", *part.cases], [row for row in rows if any(text != "-" for text in row[1:])]


def judged(part: Part, results: Results) -> list[Claim]:
    return part.claims(results)


def page(
    experiment: Experiment,
    settings: Settings,
    parts: Sequence[Part],
    results: Mapping[str, Results],
    figures: Mapping[str, str],
) -> str:
    """All of it. ``figures``: the image of each part, as a path beside the page."""
    blocks = [
        f"# {experiment.paper}",
        f"{experiment.about} Measured on {settings.on}: model {settings.model}, {_epochs(settings)}, "
        "means over seeds and 95% intervals" + (", shares in %." if all(part.shares for part in parts) else "."),
    ]
    for part in parts:
        found = results[part.name]
        blocks.append(f"## {part.title}")
        if part.name in figures:
            blocks.append(f"![{part.title}]({figures[part.name]})")
        for measure in part.measures:
            blocks.append(f"{measure.capitalize()}{_whose(part, measure)}:\n\n{markdown(table(part, found, measure))}")
        claims = judged(part, found)
        if claims:
            blocks.append("\n".join(f"- **{claim.verdict}**: {claim.text}. {claim.evidence}." for claim in claims))
        if found.failures:
            blocks.append("\n".join(f"- **failed**: {failure}" for failure in found.failures))
    return "\n\n".join(blocks) + "\n"


def _epochs(settings: Settings) -> str:
    return "epochs by held-out votes" if settings.epochs is None else f"{settings.epochs} epochs"


def markdown(shown: Table) -> str:
    columns, rows = shown
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(part: Part, results: Results, case: str, method: str, measure: str) -> str:
    mean = results.mean(case, method, measure)
    theirs = part.published.get((case, method, measure))
    return written(mean, part) + ("" if theirs is None else f" ({written(Mean(theirs, float('nan'), 1), part)})")


def written(mean: Mean, part: Part) -> str:
    return mean.in_points() if part.shares else str(mean)


def _whose(part: Part, measure: str) -> str:
    some = any(key[2] == measure for key in part.published)
    return f" ({part.beside} in brackets)" if some else ""
