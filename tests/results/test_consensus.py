"""voxpop.results.consensus: what can be asked of an answer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from voxpop.engines.outcome import Status
from voxpop.errors import UnknownName
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.results import Consensus
from voxpop.votes import Votes

VOTES = Votes.from_arrays(
    ["t1", "t1", "t2", "t3"], ["ann", "bob", "ann", "bob"], ["no", "yes", "yes", "no"], tasks=["t3", "t2", "t1", "t0"]
)
BELIEF = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.4, 0.6]])


def found(**more: object) -> Consensus:
    return Consensus(VOTES, BELIEF, "Test", Status.CONVERGED, **more)  # type: ignore[arg-type]


def test_labels_are_the_most_believed_classes_by_name() -> None:
    assert found().labels.rows() == [("t3", "no"), ("t2", "yes"), ("t1", "no"), ("t0", "yes")]
    assert found().label.tolist() == [0, 1, 0, 1]
    assert found().ties == 1


def test_confidence_is_read_from_the_belief_or_from_what_is_surer_to_be_right() -> None:
    np.testing.assert_allclose(found().confidence["confidence"], [0.9, 0.8, 0.5, 0.6])
    other = torch.tensor([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5], [0.9, 0.1]])
    np.testing.assert_allclose(found(sure=other).certainty, [0.7, 0.6, 0.5, 0.1])  # of the label found
    assert found(sure=other).label.tolist() == found().label.tolist()


def test_the_frame_has_a_row_for_each_task_in_the_order_of_the_axis() -> None:
    frame = found().to_frame()
    assert frame.columns == ["task", "label", "confidence", "votes", "tie"]
    assert frame["votes"].to_list() == [1, 1, 2, 0]
    assert frame["tie"].to_list() == [False, False, True, False]
    wide = found().to_frame(beliefs=True)
    assert wide.columns[5:] == ["p(no)", "p(yes)"]
    np.testing.assert_allclose(wide["p(yes)"], BELIEF[:, 1])


def test_the_most_doubtful_come_first() -> None:
    assert found().doubtful(2)["task"].to_list() == ["t1", "t0"]


def test_a_workers_confusion_by_name() -> None:
    table = torch.tensor([[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]])
    frame = found(fitted_table=table).confusion("ann")
    assert frame.columns == ["truth", "no", "yes"]
    np.testing.assert_allclose(frame.row(1)[1:], [0.3, 0.7])
    with pytest.raises(UnknownName, match="did you mean 'bob'"):
        found().confusion("bobb")


def test_without_fitted_matrices_they_are_counted_from_the_belief() -> None:
    counted = found().table
    assert counted is not None
    ann = np.array([[0.5, 0.2], [0.5, 0.8]]) + 0.5  # t1 said no; t2 said yes; one vote spread over each row
    np.testing.assert_allclose(counted[0], ann / ann.sum(1, keepdims=True), rtol=1e-6)


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        found().method = "other"  # type: ignore[misc]


def test_it_says_what_it_is() -> None:
    assert repr(found()) == "<Consensus of Test: 4 tasks, 2 workers, converged>"
    html = found(notes=("a < b",))._repr_html_()
    assert "a &lt; b" in html
    assert "ann" in html


def test_names_are_escaped_in_html() -> None:
    votes = Votes.from_arrays(["<t>", "u"], ["<w>", "v"], ["<x>", "y"])
    html = DawidSkene().infer(votes)._repr_html_()
    for name in ("<t>", "<w>", "<x>"):
        assert name not in html


@pytest.mark.parametrize("status", Status)
def test_every_status_says_what_is_wrong_and_what_to_do(status: Status) -> None:
    assert len(str(status)) > 5
    fine = status in (Status.CONVERGED, Status.EXACT, Status.TRAINED)
    assert (":" in str(status)) is not fine
