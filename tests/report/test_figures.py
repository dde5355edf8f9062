"""Figures: axes for people who plot, and SVG that fits a page."""

from __future__ import annotations

import pytest
import torch
from matplotlib.axes import Axes

from voxpop.errors import BadInput, TooLarge
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.methods.majority import MajorityVote
from voxpop.report.figures import figure
from voxpop.results import Consensus, plots
from voxpop.simulate import Simulated, simulate
from voxpop.votes import Votes


@pytest.fixture(scope="module")
def crowd() -> Simulated:
    return simulate(200, 10, 3, seed=1)


@pytest.fixture(scope="module")
def found(crowd: Simulated) -> Consensus:
    return DawidSkene().infer(crowd.votes)


@pytest.mark.parametrize("name", ["reliability", "confidence", "review", "classes", "history"])
def test_a_plot_returns_the_axes_it_drew_on(found: Consensus, name: str):
    draw = getattr(plots, name)
    mine = plots.new_axes()
    assert draw(found, ax=mine) is mine
    assert isinstance(draw(found), Axes)
    assert mine.get_xlabel()
    assert mine.has_data()


def test_review_starts_at_the_errors_to_expect_and_ends_at_none(found: Consensus):
    line = plots.review(found).lines[0]
    left = torch.as_tensor(line.get_ydata())
    assert float(left[0]) == pytest.approx(float((1 - found.certainty.double()).sum()))
    assert float(left[-1]) == pytest.approx(0, abs=1e-6)
    assert bool((left.diff() <= 1e-9).all())
    assert bool((left.diff().diff() >= -1e-6).all())  # the most doubtful come first: ever smaller gains


def test_confidence_counts_every_task(found: Consensus):
    assert sum(bar.get_height() for bar in plots.confidence(found).patches) == found.votes.N


def test_confusion_shows_the_matrix_in_percent(found: Consensus):
    assert found.table is not None
    texts = {text.get_position(): text.get_text() for text in plots.confusion(found, 4).texts}
    for i in range(3):
        for j in range(3):
            p = float(found.table[4, i, j])
            assert texts.get((j + 0.5, i + 0.5)) == (f"{100 * p:.0f}" if p >= 0.02 else None)


def test_of_many_classes_the_frequent_ones_are_drawn_and_the_rest_added_up():
    said = simulate(2000, 5, 30, "one-coin", seed=0)
    ax = plots.confusion(MajorityVote().infer(said.votes), 0)
    assert len(ax.get_yticks()) == plots.MOST_CLASSES
    labels = [tick.get_text() for tick in ax.get_xticklabels()]
    assert labels[-1] == "others"
    drawn = torch.as_tensor(ax.collections[0].get_array()).reshape(plots.MOST_CLASSES, -1)
    assert torch.allclose(drawn.sum(1), torch.ones(plots.MOST_CLASSES), atol=1e-5)


def test_a_confusion_matrix_that_does_not_fit_is_refused():
    votes = Votes.from_arrays([0], [0], [0], tasks=[0], workers=range(10_000), classes=range(200))
    found = Consensus(votes, torch.full((1, 200), 1 / 200), "Mine", MajorityVote().infer(_two_votes()).status)
    with pytest.raises(TooLarge, match="do not fit"):
        plots.confusion(found, 0)


def test_calibration_needs_a_truth(found: Consensus):
    with pytest.raises(BadInput, match="no task has a known truth"):
        plots.calibration(found, {})


def test_calibration_points_are_confidence_and_share_right(found: Consensus, crowd: Simulated):
    points = plots.calibration(found, crowd.truth_frame()).lines[1]
    right = (found.label == crowd.truth).double()
    least = torch.argsort(found.certainty.double())[:20]
    assert points.get_xdata()[0] == pytest.approx(float(found.certainty[least].mean()))
    assert points.get_ydata()[0] == pytest.approx(float(right[least].mean()))


def test_many_workers_are_drawn_as_one_picture():
    few, many = (
        figure(lambda ax, w=w: plots.reliability(_everyone_votes(w), ax), "workers")
        for w in (plots.MOST_BARS, plots.MOST_BARS + 1)
    )
    assert "<image" not in few
    assert "<image" in many
    assert len(many) < len(few)


def test_the_svg_carries_its_description_escaped(found: Consensus):
    svg = figure(lambda ax: plots.history(found, ax), 'a < b & "c"')
    assert svg.startswith('<svg role="img" aria-label="a &lt; b &amp; &#34;c&#34;" viewBox=')


def _two_votes() -> Votes:
    return Votes.from_arrays([0, 1], [0, 1], [0, 1])


def _everyone_votes(workers: int) -> Consensus:
    said = simulate(50, workers, 2, "one-coin", seed=0, votes_per_task=workers // 2)
    return MajorityVote().infer(said.votes)
