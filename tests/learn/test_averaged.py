"""Several networks averaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

import voxpop as vp
from tests.conformance.learners import crowd
from voxpop.errors import BadOption
from voxpop.methods.learning.aggnet import AggNet

QUICK = {"model": "mlp:8", "epochs": 3, "lr": 0.01}


def test_the_answer_is_the_mean_of_the_members() -> None:
    c = crowd()
    both = AggNet(**QUICK, members=2, seed=5).fit(c.X, c.votes)
    apart = [member.logp(both._rows_to_ask(c.X).take(np.arange(len(c.X)))).exp() for member in both._objectives]
    mean = sum(apart) / 2
    np.testing.assert_allclose(both.predict_proba(c.X), mean.detach().numpy(), atol=1e-6)
    assert not np.allclose(*[p.detach().numpy() for p in apart], atol=1e-3)  # or there would be nothing to average


def test_the_first_member_is_the_learner_alone() -> None:
    c = crowd()
    alone = AggNet(**QUICK, seed=5).fit(c.X, c.votes)
    both = AggNet(**QUICK, members=2, seed=5).fit(c.X, c.votes)
    rows = both._rows_to_ask(c.X).take(np.arange(len(c.X)))
    first = both._objectives[0].logp(rows).exp().detach().numpy()
    np.testing.assert_allclose(first, alone.predict_proba(c.X), atol=1e-6)


def test_members_are_kept_in_files_of_their_own_while_they_train(tmp_path: Path) -> None:
    c = crowd()
    AggNet(**QUICK, members=2, checkpoint=tmp_path / "part").fit(c.X, c.votes)
    assert {path.name for path in tmp_path.iterdir()} == {"part", "part.1"}


def test_a_method_that_asks_has_one_network() -> None:
    c = crowd()
    with pytest.raises(BadOption, match="members=2: DALC has one network"):
        vp.DALC(members=2).fit(c.X, c.votes)


def test_feature_dropout_leaves_features_out_while_it_trains_and_only_then(tmp_path: Path) -> None:
    c = crowd()
    learner = AggNet(**QUICK, feature_dropout=0.5).fit(c.X, c.votes)
    dropped = [layer.p for layer in learner.model_.modules() if isinstance(layer, nn.Dropout)]
    assert dropped == [0.5, 0.5]  # the features, and the preset's own
    assert np.array_equal(learner.predict_proba(c.X), learner.predict_proba(c.X))
    learner.save(tmp_path / "model.vox")
    assert np.array_equal(vp.load(tmp_path / "model.vox").predict_proba(c.X), learner.predict_proba(c.X))
