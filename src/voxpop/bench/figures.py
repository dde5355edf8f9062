"""A part as a figure: means with 95% intervals, a panel for each measure, the paper's numbers as hollow marks."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.bench.experiment import Part
from voxpop.bench.results import Results
from voxpop.results import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#79828d", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#22272e", "#a6761d", "#7570b3")
MARKERS = "osD^vPX*<>"
WIDTH = 0.8  # of a case, which its methods share


def figure(part: Part, results: Results) -> Figure:
    """One panel for each measure, above each other."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    count = len(part.measures)
    whole = Figure(figsize=(8, 0.8 + 3.2 * count), layout="constrained")
    panels = np.atleast_1d(whole.subplots(count, sharex=True))
    for ax, measure in zip(panels, part.measures, strict=True):
        (part.draw or _along if part.numeric else part.draw or _side_by_side)(ax, part, results, measure)
        unit = f"{part.unit}, %" if part.shares else part.unit
        plots.calm(ax, part.axis if ax is panels[-1] else "", unit, measure if count > 1 else "")
        if part.shares:
            ax.set_ylim(max(ax.get_ylim()[0], 0), min(ax.get_ylim()[1], 101))
        ax.grid(axis="y", color=plots.GRID, lw=0.8)
    handles, labels = panels[0].get_legend_handles_labels()
    if part.published:
        handles.append(Line2D([], [], ls="none", marker="o", mfc="white", color=plots.FAINT))
        labels.append(f"hollow: {part.beside}")
    if handles:
        whole.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    whole.suptitle(part.title, color=plots.INK, fontsize=10, fontweight="bold")
    return whole


def as_bytes(drawn: Figure, format: str) -> bytes:
    """The figure as a PNG or an SVG, the same for the same numbers."""
    import matplotlib

    out = io.BytesIO()
    metadata = {"Date": None} if format == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "voxpop"}):
        drawn.savefig(out, format=format, dpi=150, facecolor="white", metadata=metadata)
    return out.getvalue()


def _side_by_side(ax: Axes, part: Part, results: Results, measure: str) -> None:
    """Methods beside each other in every case."""
    step = WIDTH / len(part.methods)
    for number, method in enumerate(part.methods):
        shift = (number + 0.5) * step - WIDTH / 2
        _points(ax, part, results, method, measure, [place + shift for place in range(len(part.cases))], line="none")
    for edge in range(len(part.cases) - 1):
        ax.axvline(edge + 0.5, color=plots.GRID, lw=0.8, zorder=0)
    ax.set_xticks(range(len(part.cases)), part.cases, parse_math=False)
    ax.set_xlim(-0.5, len(part.cases) - 0.5)


def _along(ax: Axes, part: Part, results: Results, measure: str) -> None:
    """A line for each method along the cases, which are numbers."""
    places = [float(case) for case in part.cases]
    for method in part.methods:
        _points(ax, part, results, method, measure, places, line="-")
    if min(places) > 0 and max(places) / min(places) > 30:
        ax.set_xscale("log")
    ax.set_xticks(places, part.cases)
    ax.minorticks_off()


def _points(ax: Axes, part: Part, results: Results, method: str, measure: str, places: list[float], line: str) -> None:
    number = part.methods.index(method)
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    scale = 100 if part.shares else 1
    means = [results.mean(case, method, measure) for case in part.cases]
    values = scale * np.array([mean.value for mean in means])
    halves = scale * np.nan_to_num([mean.half for mean in means])
    style: dict[str, Any] = {"marker": marker, "color": colour, "ms": 5, "lw": 1.4}
    if np.isfinite(values).any():
        ax.errorbar(places, values, halves, ls=line, elinewidth=1, label=method, **style)
    theirs = scale * np.array([part.published.get((case, method, measure), np.nan) for case in part.cases])
    if np.isfinite(theirs).any():
        ax.plot(places, theirs, ls="none", mfc="white", zorder=1.5, **(style | {"ms": 6, "mew": 1}))
