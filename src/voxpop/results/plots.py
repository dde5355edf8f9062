"""Plots on matplotlib axes: give one, or get a new one. Each function returns the axes it drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from voxpop.errors import BadInput
from voxpop.results.scores import calibration_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voxpop.results.consensus import Consensus

COLOURS = {"yes": "#2a7f62", "unclear": "#b58900", "worse": "#b03a2e"}


def confusion(found: Consensus, worker: Any, ax: Axes | None = None) -> Axes:
    """One worker's confusion matrix: rows are truths, columns labels."""
    frame = found.confusion(worker)
    matrix = frame.drop("truth").to_numpy()
    names = frame["truth"].cast(str).to_list()
    ax = ax or new_axes()
    ax.imshow(matrix, vmin=0, vmax=1, cmap="Blues")
    ax.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 3 else 0, ha="center")
    ax.set_yticks(range(len(names)), names)
    if len(names) <= 12:
        for i, row in enumerate(matrix):
            for j, p in enumerate(row):
                if p >= 0.005:
                    ax.text(
                        j,
                        i,
                        f"{p:.2f}".lstrip("0"),
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if p > 0.5 else "black",
                    )
    ax.set(xlabel="label", ylabel="truth", title=str(worker))
    return ax


def reliability(found: Consensus, ax: Axes | None = None) -> Axes:
    """Every worker's accuracy, with its credible interval, against the number of votes."""
    frame = found.workers.filter(found.workers["votes"] > 0)
    ax = ax or new_axes()
    for verdict, colour in COLOURS.items():
        part = frame.filter(frame["better_than_chance"] == verdict)
        if len(part):
            mean = part["accuracy"].to_numpy()
            spread = [mean - part["low"].to_numpy(), part["high"].to_numpy() - mean]
            ax.errorbar(
                part["votes"].to_numpy(),
                mean,
                [s.clip(0) for s in spread],
                fmt="o",
                ms=4,
                lw=0.8,
                color=colour,
                alpha=0.8,
                label=f"better than chance: {verdict}",
            )
    ax.set_xscale("log")
    ax.set(xlabel="votes", ylabel="accuracy (90% interval)", ylim=(-0.02, 1.02))
    ax.legend(fontsize=8)
    return ax


def calibration(found: Consensus, truth: Any, ax: Axes | None = None) -> Axes:
    """Confidence against the share that is right, where the truth is known."""
    known = found.votes.gold(truth)
    if known is None or not bool((known >= 0).any()):
        raise BadInput("no task has a known truth: nothing to draw")
    rows = torch.nonzero(known >= 0)[:, 0]
    hit = (found.label[rows].long() == known[rows]).double()
    bins = calibration_bins(found.certainty[rows].double(), hit)
    ax = ax or new_axes()
    low = min(min(b[0] for b in bins), min(b[1] for b in bins))
    ax.plot([low, 1], [low, 1], lw=0.8, color="grey")
    ax.plot([b[0] for b in bins], [b[1] for b in bins], "o-", ms=4, color="#1f4e79")
    ax.set(xlabel="confidence", ylabel="share right", title="calibration")
    return ax


def history(found: Consensus, ax: Axes | None = None) -> Axes:
    """The bound (or where there is none, the movement of the belief) by iteration."""
    bounds = [info.bound for info in found.history]
    ax = ax or new_axes()
    if bounds and bounds[0] == bounds[0]:
        ax.plot(range(1, len(bounds) + 1), bounds, lw=1.2)
        ax.set(xlabel="iteration", ylabel="bound")
    else:
        ax.semilogy(range(1, len(bounds) + 1), [max(i.change, 1e-12) for i in found.history], lw=1.2)
        ax.set(xlabel="iteration", ylabel="largest change of a belief")
    return ax


def new_axes() -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(5, 4), layout="constrained").add_subplot()
