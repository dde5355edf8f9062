"""voxpop.results.plots: every plot draws on the axes it gets, or on new ones, and on anything legal."""

from __future__ import annotations

import warnings

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.crowds import good_crowd
from voxpop.errors import BadInput, VoxWarning
from voxpop.methods.belief_propagation import BeliefPropagation
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.methods.majority import MajorityVote
from voxpop.results import plots
from voxpop.votes import Votes

CROWD = good_crowd(0, N=30)
TRUTH = {i: int(k) for i, k in enumerate(CROWD.truth)}
PLOTS = {
    "confusion": lambda found, ax: plots.confusion(found, found.votes.workers[0], ax),
    "reliability": plots.reliability,
    "calibration": lambda found, ax: plots.calibration(found, {found.votes.tasks[0]: found.votes.classes[0]}, ax),
    "history": plots.history,
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_drawn_on_the_axes_given_or_on_new_ones(name: str) -> None:
    found = DawidSkene().infer(CROWD.votes)
    ax = Figure().add_subplot()
    assert PLOTS[name](found, ax) is ax
    assert ax.has_data()
    assert isinstance(PLOTS[name](found, None), Axes)


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("method", [MajorityVote(), BeliefPropagation(max_iter=3)], ids=["no history", "no bound"])
def test_a_plot_of_little_data(name: str, method: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VoxWarning)
        found = method.infer(Votes.from_arrays(["$t", "$t"], ["_a", "b$"], ["x_1", "$y$"]))  # type: ignore[attr-defined]
        ax = PLOTS[name](found, None)
    ax.figure.canvas.draw()  # names with $ and _ are not formulas


def test_calibration_needs_truth() -> None:
    with pytest.raises(BadInput, match="nothing to draw"):
        plots.calibration(DawidSkene().infer(CROWD.votes), {})
    assert plots.calibration(DawidSkene().infer(CROWD.votes), TRUTH).has_data()
