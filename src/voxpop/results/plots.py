"""Plots on matplotlib axes: give one, or get a new one. Each function returns the axes it drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from voxpop.errors import BadInput, TooLarge
from voxpop.numerics.simplex import normalise
from voxpop.results.scores import calibration_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voxpop.results.consensus import Consensus

INK, FAINT, GRID, ACCENT = "#22272e", "#79828d", "#dfe3e8", "#2f6db0"
COLOURS = {"yes": "#2a7f62", "unclear": "#b9770e", "worse": "#b5382c"}  # of a worker better than chance, or not
MARKERS = {"yes": "o", "unclear": "D", "worse": "X"}
WORDS = {"yes": "better than chance", "unclear": "not shown to be", "worse": "worse than chance"}
MOST_CLASSES = 20  # drawn at most; the others are added up
MOST_BARS = 300  # workers above which intervals would only be a smear
LONGEST = 18  # letters of a name


def confusion(found: Consensus, worker: Any, ax: Axes | None = None) -> Axes:
    """One worker's confusion matrix: rows are truths, columns labels. Of many classes the most frequent are drawn."""
    if found.table is None:
        raise TooLarge("the confusion matrices of so many workers and classes do not fit in memory")
    shown = _frequent(found)
    matrix = found.table[found.votes.workers.position(worker)].numpy()[shown]
    names = [short(found.votes.classes[c]) for c in shown]
    columns = names
    if len(shown) < found.votes.K:
        inside = matrix[:, shown]
        matrix, columns = np.column_stack([inside, (1 - inside.sum(1)).clip(0)]), [*names, "others"]
    else:
        matrix = matrix[:, shown]
    ax = ax or new_axes()
    ax.pcolormesh(matrix, vmin=0, vmax=1, cmap=_see_through(ACCENT), edgecolors=GRID, linewidth=0.4)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    slant: dict[str, Any] = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if max(map(len, columns)) > 3 else {}
    )
    ax.set_xticks([i + 0.5 for i in range(len(columns))], columns, parse_math=False, **slant)
    ax.set_yticks([i + 0.5 for i in range(len(names))], names, parse_math=False)
    if len(shown) <= 12:
        for i, row in enumerate(matrix):
            for j, p in enumerate(row):
                if p >= 0.02:
                    colour = "white" if p > 0.5 else INK
                    ax.text(j + 0.5, i + 0.5, f"{100 * p:.0f}", color=colour, ha="center", va="center", fontsize=7)
    calm(ax, "label given", "truth", short(worker))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def reliability(found: Consensus, ax: Axes | None = None) -> Axes:
    """Every worker's accuracy, with its 90% credible interval, against the number of votes."""
    frame = found.workers.filter(found.workers["votes"] > 0)
    ax = ax or new_axes()
    many = len(frame) > MOST_BARS
    for verdict, colour in COLOURS.items():
        part = frame.filter(frame["better_than_chance"] == verdict)
        if not len(part):
            continue
        votes, mean = part["votes"].to_numpy(), part["accuracy"].to_numpy()
        if not many:
            ax.vlines(votes, part["low"].to_numpy(), part["high"].to_numpy(), color=colour, lw=1, alpha=0.45)
        ax.scatter(
            votes,
            mean,
            s=9 if many else 22,
            marker=MARKERS[verdict],
            color=colour,
            alpha=0.5 if many else 0.9,
            linewidths=0,
            label=f"{WORDS[verdict]} ({len(part):,})",
            rasterized=many,
            zorder=3,
        )
    if len(frame):
        luck = float(np.average(frame["chance"], weights=frame["votes"]))
        ax.axhline(luck, color=FAINT, lw=0.9, ls=(0, (4, 3)), zorder=1)
        ax.annotate(
            "chance",
            (1, luck),
            (-2, 3),
            ("axes fraction", "data"),
            "offset points",
            ha="right",
            color=FAINT,
            fontsize=8,
        )
        ax.legend(frameon=False, labelcolor=INK, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, **_CLOSE)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x >= 1 else "")
    ax.set_ylim(-0.02, 1.02)
    ax.yaxis.set_major_formatter(_percent())
    return calm(ax, "votes (log scale)", "accuracy, 90% interval")


def calibration(found: Consensus, truth: Any, ax: Axes | None = None) -> Axes:
    """Confidence against the share that is right, where the truth is known; bars are two standard errors."""
    known = found.votes.truth(truth)
    if known is None or not bool((known >= 0).any()):
        raise BadInput("no task has a known truth: nothing to draw")
    rows = torch.nonzero(known >= 0)[:, 0]
    hit = (found.label[rows].long() == known[rows]).double()
    bins = calibration_bins(found.certainty[rows].double(), hit)
    sure, right = [b[0] for b in bins], [b[1] for b in bins]
    doubt = [2 * (r * (1 - r) / n) ** 0.5 for _, r, n in bins]
    ax = ax or new_axes()
    low = max(0.0, min(*sure, *right) - 0.05)
    ax.plot([low, 1], [low, 1], lw=0.9, color=FAINT, ls=(0, (4, 3)))
    ends = [(max(0, r - d), min(1, r + d)) for r, d in zip(right, doubt, strict=True)]
    ax.vlines(sure, [e[0] for e in ends], [e[1] for e in ends], color=ACCENT, lw=1, alpha=0.45)
    ax.plot(sure, right, "o-", ms=4.5, lw=1.2, color=ACCENT)
    ax.xaxis.set_major_formatter(_percent())
    ax.yaxis.set_major_formatter(_percent())
    return calm(ax, "confidence", "share that is right")


def confidence(found: Consensus, ax: Axes | None = None) -> Axes:
    """How many tasks have which confidence."""
    counts = torch.histc(found.certainty.float(), 20, 0, 1)
    ax = ax or new_axes()
    ax.bar([(i + 0.5) / 20 for i in range(20)], counts.numpy(), width=0.042, color=ACCENT)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(_percent())
    ax.yaxis.set_major_formatter(_thousands)
    return calm(ax, "confidence", "tasks")


def review(found: Consensus, ax: Axes | None = None) -> Axes:
    """Wrong labels to expect when the most doubtful tasks are looked at by somebody who knows."""
    doubt, _ = (1 - found.certainty.double()).clamp_min(0).sort(descending=True)  # N
    left = torch.cat([doubt.sum()[None], doubt.sum() - doubt.cumsum(0)]).clamp_min(0)
    steps = torch.linspace(0, doubt.numel(), 101).long()
    ax = ax or new_axes()
    ax.fill_between(steps / max(doubt.numel(), 1), left[steps], color=ACCENT, alpha=0.15, linewidth=0)
    ax.plot(steps / max(doubt.numel(), 1), left[steps], lw=1.6, color=ACCENT)
    ax.set_xlim(0, 1)
    ax.set_ylim(0)
    ax.xaxis.set_major_formatter(_percent())
    ax.yaxis.set_major_formatter(_thousands)
    return calm(ax, "tasks checked, most doubtful first", "wrong labels to expect")


def classes(found: Consensus, truth: Any = None, ax: Axes | None = None) -> Axes:
    """How often each class was voted, found, and (where it is known) true. The most frequent classes are drawn."""
    votes = found.votes
    shown = _frequent(found)
    series = {
        "of the votes": (torch.bincount(votes.label, minlength=votes.K), FAINT, "|"),
        "of the labels found": (torch.bincount(found.label, minlength=votes.K), ACCENT, "o"),
    }
    known = votes.truth(truth)
    if known is not None:
        counts = torch.bincount(known[known >= 0], minlength=votes.K)[: votes.K]
        series["of the known truths"] = (counts, COLOURS["yes"], "d")
    ax = ax or new_axes()
    place = range(len(shown))
    for name, (counts, colour, marker) in series.items():
        share = normalise(counts.double())[shown]
        ax.plot(share, place, marker, ms=9 if marker == "|" else 5.5, mew=2, color=colour, label=name, zorder=3)
    ax.set_yticks(list(place), [short(votes.classes[c]) for c in shown], parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0)
    ax.xaxis.set_major_formatter(_percent())
    ax.legend(frameon=False, labelcolor=INK, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, **_CLOSE)
    calm(ax, "share", "class")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color=GRID, lw=0.8)
    return ax


def history(found: Consensus, ax: Axes | None = None) -> Axes:
    """The bound in nats a vote (or where there is none, the movement of the belief) by iteration."""
    from matplotlib.ticker import MaxNLocator

    bounds = [info.bound / max(found.votes.V, 1) for info in found.history]
    steps, marker = range(1, len(bounds) + 1), "o-" if len(bounds) < 3 else "-"
    ax = ax or new_axes()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if bounds and bounds[0] == bounds[0]:
        ax.plot(steps, bounds, marker, lw=1.6, color=ACCENT)
        ax.ticklabel_format(axis="y", useOffset=False)
        name = "bound, nats a vote"
    else:
        ax.semilogy(steps, [max(info.change, 1e-12) for info in found.history], marker, lw=1.6, color=ACCENT)
        name = "largest change of a belief"
    return calm(ax, "iteration", name)


# -- how everything looks -------------------------------------------------------------------------


_CLOSE = {"fontsize": 8, "handletextpad": 0.2, "columnspacing": 1.2, "borderpad": 0.2}


def new_axes(width: float = 5, height: float = 3.6) -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def calm(ax: Axes, x: str, y: str, title: str = "") -> Axes:
    """Names of the axes, a faint grid, and no frame."""
    ax.set_xlabel(x, color=FAINT, fontsize=9)
    ax.set_ylabel(y, color=FAINT, fontsize=9)
    if title:
        ax.set_title(title, color=INK, fontsize=10, fontweight="bold", parse_math=False)
    ax.tick_params(which="both", color=GRID, labelcolor=INK, labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GRID)
    ax.patch.set_visible(False)
    ax.set_axisbelow(True)
    return ax


def short(name: object) -> str:
    """A name that fits beside an axis."""
    text = " ".join(str(name).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _frequent(found: Consensus) -> list[int]:
    """Positions of all classes; of many, the most frequent labels, in the order of the axis."""
    if found.votes.K <= MOST_CLASSES:
        return list(range(found.votes.K))
    counts = torch.bincount(found.label, minlength=found.votes.K)
    best = torch.argsort(counts, descending=True, stable=True)[:MOST_CLASSES]
    return sorted(best.tolist())


def _see_through(colour: str) -> Any:
    """From nothing to the colour: right on light and on dark paper."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    return LinearSegmentedColormap.from_list("see-through", [(*to_rgb(colour), 0.0), (*to_rgb(colour), 1.0)])


def _percent() -> Any:
    """Shares in percent, with as many digits as the axis needs."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1)


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}"
