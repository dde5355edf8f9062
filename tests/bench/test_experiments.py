"""The papers' experiments: every method's cell runs on a few tasks, and claims are decided by what cells measure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import torch

from voxpop.bench import bayesdgc, crowdnets, data, deepbp
from voxpop.bench.data import Data, digits
from voxpop.bench.experiment import Cell, Experiment, Part, Settings, cells_of
from voxpop.bench.experiments import NAMES, find
from voxpop.bench.results import Results
from voxpop.bench.store import Row
from voxpop.bench.trials import TRUTH, Trial, learn
from voxpop.errors import BadInput, VoxError
from voxpop.votes import Votes

HERE = {name: find(name) for name in ("bayesdgc", "crowdnets", "deepbp", "maxmig")}
TINY = Settings(epochs=1, quick=True)
HIDDEN = {"juniors", "overconfidence", "extreme", "log likelihood"}  # measured for claims, not shown
ALL_PARTS = [(name, part) for name, experiment in HERE.items() for part in experiment.parts(TINY)]
each_part = pytest.mark.parametrize(("name", "part"), ALL_PARTS, ids=lambda x: getattr(x, "name", x))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits, but few of them."""

    def some(folder: str | None, seed: int) -> Data:
        whole = digits(folder, seed)
        return replace(whole.first(100), x_test=whole.x_test[:100], y_test=whole.y_test[:100])

    monkeypatch.setattr(data, "SOURCES", MappingProxyType({**data.SOURCES, "digits": some}))


@pytest.mark.usefixtures("few")
@each_part
def test_every_method_has_a_cell(name: str, part: Part) -> None:
    for method in part.methods:
        found = part.run(TINY, part.cases[-1], method, 0)
        assert found
        assert not set(found) - {*part.measures, "classifier", "inference", "forecaster", *HIDDEN}
        assert all(np.isfinite(value) for value in found.values()), method
        assert {key: found[key] for key in found} == part.run(TINY, part.cases[-1], method, 0), f"{method} is random"


@each_part
def test_claims_are_decided_by_the_cells_there_are(name: str, part: Part) -> None:
    cells = cells_of((part,), 2)
    rows = [Row(cell, dict.fromkeys([*part.measures, *HIDDEN], 0.5 + 0.1 * cell.seed)) for cell in cells]
    decided = part.claims(Results(rows, part.name))
    assert all(claim.holds is not None for claim in decided)
    assert all(claim.holds is None for claim in part.claims(Results([], part.name)))


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_parts_of_its_own_name(name: str) -> None:
    experiment = find(name)
    parts = experiment.parts(experiment.defaults)
    assert experiment.name == name
    assert parts
    assert len({part.name for part in parts}) == len(parts)


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(VoxError, match="deepbp"):
        find("deepbq")


# -- what the cells are made of ---------------------------------------------------------------


def test_max_mig_judges_juniors_by_what_they_move() -> None:
    experiment: Experiment = HERE["maxmig"]
    example = next(part for part in experiment.parts(TINY) if part.name == "example-e2")
    found = example.run(replace(TINY, epochs=15), "E.2", "max-mig", 0)
    assert found["classifier"] == 1  # theorem 3.4: the truth, and not with its classes exchanged
    assert found["juniors"] < 0.2
    assert example.run(TINY, "E.2", "likelihood of the useless", 0)["log likelihood"] == pytest.approx(
        2 * np.log(0.5), abs=0.01
    )
    assert example.run(TINY, "E.2", "likelihood of the truth", 0)["log likelihood"] == pytest.approx(
        100 * np.log(0.5), abs=0.2
    )


def test_one_class_against_the_rest_keeps_the_votes_of_that_class() -> None:
    votes = Votes.from_arrays([0, 0, 1, 2], [0, 1, 0, 1], [2, 1, 2, 0], classes=[0, 1, 2])
    y = np.array([2, 2, 0])
    one = bayesdgc.one_against_rest(Data("three", y, y, y, y, 3, votes), 2)
    assert one.votes is not None
    assert (one.K, one.y.tolist(), one.votes.label.tolist()) == (2, [1, 1, 0], [1, 0, 1, 0])


def test_odd_items_are_answered_at_random_and_the_others_kept() -> None:
    votes = Votes.from_matrix(np.zeros((400, 5), int), classes=range(4))
    changed, odd = crowdnets.with_odd_items(votes, 0.25, 0)
    assert int(odd.sum()) == 100
    wrong = changed.label[odd[changed.task.long()]] != 0
    assert abs(float(wrong.float().mean()) - 0.75) < 4 * (0.75 * 0.25 / 500) ** 0.5
    assert bool((changed.label[~odd[changed.task.long()]] == 0).all())


def test_workers_of_one_pool_share_their_mistakes() -> None:
    tables = crowdnets.pool(10, 3)
    right = torch.diagonal(tables, dim1=1, dim2=2)
    assert tables.sum(2).allclose(torch.ones(30, 10))
    assert float(right.max()) < 0.9  # nobody is an expert in any class
    others = tables - torch.diag_embed(right)
    shares = others / others.sum(2, keepdim=True)
    assert shares.allclose(shares[:1].expand_as(shares), atol=1e-4)


def test_the_truth_is_learned_without_the_crowd() -> None:
    trial = Trial.simulated(digits().first(50), "naive-majority", 0)
    assert learn(trial, TRUTH, TINY, 0)["inference"] == 1


def test_workers_are_spread_evenly_over_fewer_tasks() -> None:
    assert deepbp._divisible(2000 / 3, 3) * 3 % 4 == 0


def test_an_unknown_place_of_data_is_told() -> None:
    with pytest.raises(BadInput, match="Name the folder"):
        data.load("labelme")


def test_cells_that_say_nothing_are_left_out() -> None:
    part = Part("p", "", ("1", "2"), ("a", "b"), lambda *_: {}, left_out=frozenset({("1", "b")}))
    assert cells_of((part,), 1) == [Cell("p", "1", "a", 0), Cell("p", "2", "a", 0), Cell("p", "2", "b", 0)]
