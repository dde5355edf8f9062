"""What was learned as one HTML page: the page of its consensus, with the training in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from voxpop.report.figures import figure
from voxpop.report.html import html_page
from voxpop.results.plots import ACCENT, FAINT, INK, calm, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voxpop.learn.learner import Learner

ODD = 20  # items that are listed
DIFFER = 20  # tasks that are listed


@dataclass(frozen=True)
class Odd:
    """An item whose votes do not fit its features."""

    task: Any
    score: float
    label: Any
    votes: int
    share: float  # of the highest score


@dataclass(frozen=True)
class Differ:
    """A task of which the classifier, from its features alone, says another label than the consensus."""

    task: Any
    found: Any
    confidence: float
    predicted: Any
    prior: float
    votes: int


def learning_page(learner: Learner, truth: Any = None) -> str:
    """The page of a fitted learner; ``truth`` (of the tasks it learned from) only evaluates."""
    found = learner.consensus_
    votes = found.votes
    title = f"What a classifier learned from {votes.M:,} workers on {votes.N:,} tasks"
    return html_page(found, truth, title=title, learned=facts(learner))


def facts(learner: Learner) -> dict[str, Any]:
    """What the part of the page on the training shows."""
    choice, history = learner.choice_, learner.history_
    figures = {"loss": figure(partial(losses, history), "Loss by epoch")}
    if choice is not None and len(choice.curve) > 1:
        draw = partial(held_out, choice.curve, choice.epochs)
        figures["held_out"] = figure(draw, "Log probability of a held-out vote by epoch")
    return {
        "model": learner.model if isinstance(learner.model, str) else type(learner.model).__name__,
        "weights": sum(p.numel() for p in learner.model_.parameters()),
        "shape": " x ".join(map(str, learner.shape_)),
        "epochs": len(history),
        "seconds": sum(epoch["seconds"] for epoch in history),
        "choice": choice,
        "chosen": learner.variant_,
        "temperature": learner.temperature_,
        "figures": figures,
        "odd": odd(learner),
        "differ": differ(learner),
    }


def odd(learner: Learner) -> list[Odd]:
    """The oddest items, where the method says which are odd."""
    frame = getattr(learner, "odd_", None)
    if frame is None:
        return []
    found = learner.consensus_
    top = frame.filter(frame["score"] > 0).head(ODD)
    rows = top.join(found.to_frame().select("task", "label", "votes"), on="task", how="left", maintain_order="left")
    highest = float(top["score"][0]) if len(top) else 1.0
    return [Odd(task, s, label, n, s / highest) for task, s, label, n in rows.iter_rows()]


def differ(learner: Learner) -> list[Differ]:
    """Tasks on which classifier and consensus differ most, by how far the classifier alone is from the label found."""
    found = learner.consensus_
    if found.evidence is None or found.votes.K < 2:
        return []
    prior = found.evidence.prior
    if prior.dim() != 2 or len(prior) != found.votes.N:
        return []
    p = prior.double().softmax(1)  # N,K
    best = p.argmax(1)
    other = best != found.label.long()
    sure = p.gather(1, best[:, None])[:, 0]
    order = (sure * other * (found.votes.whole.votes_per_task > 0)).argsort(descending=True, stable=True)
    frame = found.to_frame()
    shown = [i for i in order[:DIFFER].tolist() if bool(other[i])]
    return [
        Differ(
            frame["task"][i],
            frame["label"][i],
            frame["confidence"][i],
            found.votes.classes[int(best[i])],
            float(sure[i]),
            frame["votes"][i],
        )
        for i in shown
    ]


def losses(history: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """The loss of each epoch."""
    return _curve([epoch["loss"] for epoch in history], "loss", None, ax)


def held_out(curve: tuple[float, ...], chosen: int, ax: Axes | None = None) -> Axes:
    """How likely held-out votes are after each epoch, and the epoch that was chosen."""
    return _curve(list(curve), "log probability of a held-out vote", chosen, ax)


def _curve(values: list[float], name: str, chosen: int | None, ax: Axes | None) -> Axes:
    from matplotlib.ticker import MaxNLocator

    ax = ax or new_axes()
    ax.plot(range(1, len(values) + 1), values, "o-" if len(values) < 3 else "-", lw=1.6, color=ACCENT)
    if chosen is not None:
        ax.axvline(chosen, color=FAINT, lw=0.9, ls=(0, (4, 3)))
        ax.plot([chosen], [values[chosen - 1]], "o", ms=5, color=ACCENT)
        ax.annotate(
            f"chosen: {chosen}",
            (chosen, values[chosen - 1]),
            (5, -12),
            textcoords="offset points",
            color=INK,
            fontsize=8,
        )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return calm(ax, "epoch", name)
