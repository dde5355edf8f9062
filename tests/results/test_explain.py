"""voxpop.results.explain: what each vote says."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch

from tests.crowds import good_crowd
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.methods.gibbs_bcc import GibbsBCC
from voxpop.methods.glad import GLAD
from voxpop.methods.majority import MajorityVote
from voxpop.methods.weighted import WeightedVote
from voxpop.votes import Votes

CROWD = good_crowd(0)


def column_sums(frame: pl.DataFrame) -> np.ndarray:
    return frame.drop("worker", "vote", "how").to_numpy().sum(0)


def test_rows_are_votes_and_the_prior_and_add_up_to_the_log_odds() -> None:
    found = DawidSkene(smoothing=1.0).infer(CROWD.votes)
    frame = found.explain(7)
    assert frame.columns == ["worker", "vote", "how", "0", "1", "2"]
    assert frame["worker"].to_list()[-1] == "(prior)"
    assert frame["vote"].to_list()[:-1] == [
        str(x) for x in CROWD.label[CROWD.task == 7][np.argsort(CROWD.worker[CROWD.task == 7])]
    ]
    belief = found.belief[7].double().numpy()
    np.testing.assert_allclose(column_sums(frame), np.log(belief) - np.log(belief.max()), atol=1e-4)


def test_what_a_vote_says_is_the_log_ratio_of_the_workers_matrix() -> None:
    found = DawidSkene(smoothing=1.0).infer(CROWD.votes)
    frame, own = found.explain(3), int(found.label[3])
    assert found.table is not None
    for worker, vote, *odds in frame.drop("how").rows()[:-1]:
        row = found.table[int(worker), :, int(vote)].double().log()
        np.testing.assert_allclose(odds, row - row[own], atol=1e-4)


def test_a_task_that_is_certain_without_gold_is_not_called_gold() -> None:
    """A belief that float32 rounds to 1 adds up like any other."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (200, 1))
    votes = Votes.from_matrix(np.where(rng.random((200, 25)) < 0.95, truth, 1 - truth))
    found = DawidSkene().infer(votes, gold={0: int(truth[0, 0])})
    assert (found.belief[1:].amax(1) == 1).any()
    certain = int(found.belief[1:].amax(1).argmax()) + 1
    assert found.explain(certain)["worker"].to_list()[-1] == "(prior)"
    assert found.explain(0)["worker"].to_list()[-1] == "(gold)"
    wide = MajorityVote().infer(votes)
    assert wide.explain(certain)["worker"].to_list()[-1] == "(rest)"


def test_gold_closes_the_gap_between_the_votes_and_certainty() -> None:
    task = 4
    gold = (int(CROWD.truth[task]) + 1) % 3
    found = GLAD().infer(CROWD.votes, gold={task: gold})
    sums = column_sums(found.explain(task))
    assert sums[gold] == 0
    assert np.isneginf(np.delete(sums, gold)).all()


@pytest.mark.parametrize("method", [WeightedVote(), GibbsBCC(max_iter=50)], ids=["shares", "sampler"])
def test_where_votes_do_not_add_up_it_says_so_and_what_remains(method: object) -> None:
    found = method.infer(CROWD.votes)  # type: ignore[attr-defined]
    frame = found.explain(5)
    assert set(frame["how"]) == {"left out"}
    assert frame["worker"].to_list()[-1] == "(rest)"
    belief = found.belief[5].double().log().numpy()
    np.testing.assert_allclose(column_sums(frame), belief - belief[int(found.label[5])], atol=1e-6)


def test_leaving_a_vote_out_of_the_shares() -> None:
    """Two against one, one pseudo vote spread over both classes: the change of the log-odds without each."""
    votes = Votes.from_arrays([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 0, 1, 0, 1])
    frame = MajorityVote(soft=True).infer(votes).explain(0)

    def odds(for_first: int, for_second: int) -> float:
        return float(np.log((for_second + 0.5) / (for_first + 0.5)))

    np.testing.assert_allclose(
        frame["1"][:3], [odds(2, 1) - odds(1, 1), odds(2, 1) - odds(1, 1), odds(2, 1) - odds(2, 0)], rtol=1e-5
    )


def test_votes_for_the_label_speak_against_the_others() -> None:
    found = DawidSkene(smoothing=1.0).infer(CROWD.votes)
    task = int(found.certainty.argmax())
    own = str(int(found.label[task]))
    for row in found.explain(task).filter(pl.col("vote") == own).iter_rows(named=True):
        assert all(row[str(k)] < 0 for k in range(3) if str(k) != own)


def test_a_task_without_votes_is_the_prior_alone() -> None:
    votes = Votes.from_arrays([0, 0, 1], [0, 1, 0], [0, 1, 1], tasks=range(3))
    frame = DawidSkene(smoothing=0.5).infer(votes).explain(2)
    assert frame["worker"].to_list() == ["(prior)"]


def test_class_names_that_are_python_words_are_columns_like_others() -> None:
    votes = Votes.from_arrays([0, 0, 1], [0, 1, 0], ["self", "exprs", "self"])
    assert DawidSkene().infer(votes).explain(0).columns[3:] == ["exprs", "self"]
    assert torch.isfinite(DawidSkene().infer(votes).belief).all()
