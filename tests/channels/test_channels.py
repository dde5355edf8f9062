"""What every channel promises: one meaning for its likelihood, evidence, table, prediction and sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.crowds import crowd
from voxpop.channels import tabulated
from voxpop.channels.base import Channel, Theta, require_table
from voxpop.channels.coin import Coin
from voxpop.channels.confusion import Confusion
from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.channels.glad import SkillAndEase
from voxpop.channels.hierarchical import HierarchicalConfusion
from voxpop.channels.mace import Spamming
from voxpop.channels.prototypes import Prototypes
from voxpop.errors import TooLarge
from voxpop.numerics import segments
from voxpop.numerics.seeds import generator
from voxpop.votes import Batch

K = 3
TABLES = torch.tensor(np.random.default_rng(0).dirichlet(np.ones(K), (5, K)), dtype=torch.float32)
CHANNELS: dict[str, Callable[[], Channel]] = {
    "confusion": lambda: Confusion(0.1),
    "one coin": lambda: Coin(K, True, 1.5, 1.5),
    "confusion vector": lambda: Coin(K, False, 1.5, 1.5),
    "one coin, uncertain": lambda: Coin(K, True, 2.0, 1.0, variational=True),
    "two coins, uncertain": lambda: Coin(K, False, 2.0, 1.0, variational=True),
    "spamming": lambda: Spamming(),
    "skill and ease": lambda: SkillAndEase(),
    "dirichlet": lambda: DirichletConfusion(prior_rows(K, 2.0, 1.0)),
    "hierarchical": lambda: HierarchicalConfusion(prior_rows(K, 2.0, 1.0), 0.1),
    "prototypes": lambda: Prototypes(TABLES),
}
POINTS = ("confusion", "one coin", "confusion vector", "spamming")
SAMPLED = [n for n in CHANNELS if n not in ("confusion", "skill and ease")]


def fitted(name: str) -> tuple[Channel, Batch, Tensor, Theta]:
    c = crowd(11, N=25, M=7, K=K, per_task=4)
    batch = c.votes.whole
    belief = torch.tensor(np.random.default_rng(1).dirichlet(np.ones(K), 25), dtype=torch.float32)
    channel = CHANNELS[name]()
    return channel, batch, belief, channel.update(channel.stats(batch, belief), None)


@pytest.mark.parametrize("name", CHANNELS)
def test_evidence_is_the_sum_of_the_votes_logs(name: str) -> None:
    channel, batch, _, theta = fitted(name)
    logs = channel.loglik(batch, theta).double()
    expected = torch.zeros(batch.B, K, dtype=torch.float64).index_add_(0, batch.task.long(), logs)
    torch.testing.assert_close(channel.evidence(batch, theta).double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CHANNELS)
def test_evidence_in_blocks_is_the_evidence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "BLOCK", 4 * K)
    channel, batch, _, theta = fitted(name)
    blocks = list(channel.evidence_in_blocks(batch, theta))
    assert len(blocks) > 2
    torch.testing.assert_close(torch.cat(blocks), channel.evidence(batch, theta), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CHANNELS)
def test_with_a_small_table_and_without_it_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins and spammers go through a table where there are more votes than cells."""
    found = []
    for small in (True, False):
        monkeypatch.setattr(tabulated, "table_is_small", lambda _, small=small: small)
        channel, batch, belief, theta = fitted(name)
        found.append((torch.cat(list(channel.evidence_in_blocks(batch, theta))), channel.stats(batch, belief)))
    (evidence, stats), (other_evidence, other_stats) = found
    torch.testing.assert_close(evidence, other_evidence, atol=1e-5, rtol=1e-5)
    for key, value in stats.items():
        torch.testing.assert_close(value, other_stats[key], atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in CHANNELS if n != "skill and ease"])
def test_sums_of_shards_add_up_to_the_sums_of_the_whole(name: str) -> None:
    channel, batch, belief, _ = fitted(name)
    votes = crowd(11, N=25, M=7, K=K, per_task=4).votes
    whole = channel.stats(batch, belief)
    shards = [torch.arange(0, 9), torch.arange(9, 25)]
    parts = [channel.stats(votes.batch(rows), belief[rows]) for rows in shards]
    for key, value in whole.items():
        torch.testing.assert_close(sum(p[key] for p in parts), value, atol=1e-5, rtol=1e-6)  # beliefs are float32


@pytest.mark.parametrize("name", POINTS)
def test_the_likelihood_is_the_table_looked_up(name: str) -> None:
    channel, batch, _, theta = fitted(name)
    table = channel.table(theta)
    assert table is not None
    torch.testing.assert_close(table.sum(2), torch.ones(batch.M, K))
    looked_up = table.transpose(1, 2)[batch.worker.long(), batch.label.long()]
    torch.testing.assert_close(channel.loglik(batch, theta).exp(), looked_up, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", [n for n in CHANNELS if n not in ("skill and ease", "prototypes")])
def test_votes_are_predicted_by_the_mean_table(name: str) -> None:
    """``likelihood`` and ``table`` are both at the mean of uncertain parameters."""
    channel, batch, _, theta = fitted(name)
    table = channel.table(theta)
    assert table is not None
    looked_up = table.transpose(1, 2)[batch.worker.long(), batch.label.long()]
    torch.testing.assert_close(channel.likelihood(batch, theta), looked_up, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["one coin, uncertain", "two coins, uncertain", "dirichlet", "hierarchical"])
def test_uncertain_parameters_answer_with_expected_logs_below_the_log_of_the_mean(name: str) -> None:
    channel, batch, _, theta = fitted(name)
    assert (channel.loglik(batch, theta) < channel.likelihood(batch, theta).log()).all()


@pytest.mark.parametrize("name", [n for n in CHANNELS if n != "skill and ease"])
def test_a_prediction_is_the_truths_prediction_through_the_table(name: str) -> None:
    channel, batch, belief, theta = fitted(name)
    table = channel.table(theta)
    assert table is not None
    found = channel.predict(batch, belief, theta)
    by_loop = torch.stack([belief[i] @ table[w] for i, w in zip(batch.task.long(), batch.worker.long(), strict=True)])
    torch.testing.assert_close(found, by_loop)
    torch.testing.assert_close(found.sum(1), torch.ones(batch.V))


@pytest.mark.parametrize("name", SAMPLED)
def test_right_votes_are_those_whose_own_label_is_believed(name: str) -> None:
    channel, batch, belief, _ = fitted(name)
    expected = torch.zeros(batch.M, dtype=torch.float64)
    for task, worker, label in zip(batch.task, batch.worker, batch.label, strict=True):
        expected[worker] += belief[task, label]
    torch.testing.assert_close(channel.right(channel.stats(batch, belief)), expected)


@pytest.mark.parametrize("name", CHANNELS)
def test_labels_of_one_vote_have_probabilities_that_sum_to_one(name: str) -> None:
    """Of points; the exponentials of expected logs sum to less."""
    channel, batch, _, theta = fitted(name)
    total = torch.zeros(batch.V, K)
    for label in range(K):
        other = Batch(
            batch.task,
            batch.worker,
            torch.full_like(batch.label, label),
            batch.offsets,
            batch.M,
            K,
            batch.total_tasks,
            batch.V,
        )
        total += channel.loglik(other, theta).exp()
    if name in (*POINTS, "skill and ease"):
        torch.testing.assert_close(total, torch.ones(batch.V, K), atol=1e-5, rtol=0)
    else:
        assert (total < 1).all()


@pytest.mark.parametrize("name", SAMPLED)
def test_draws_have_the_posterior_mean(name: str) -> None:
    """400 draws given certain truths: the mean of the tables is the mean of the posterior, where that is known."""
    channel, batch, _, _ = fitted(name)
    truth = torch.nn.functional.one_hot(torch.arange(batch.B) % K, K).float()
    stats = channel.stats(batch, truth)
    theta = channel.update(stats, None)
    rng = generator(0, "draws")
    drawn = [channel.table(channel.draw(stats, theta, rng)) for _ in range(400)]
    tables = torch.stack([t for t in drawn if t is not None]).double()
    torch.testing.assert_close(tables.sum(3), torch.ones(400, batch.M, K).double(), atol=1e-5, rtol=0)
    if isinstance(channel, Coin):
        channel = Coin(K, channel.shared, channel.a, channel.b, variational=True)
        theta = channel.update(stats, None)
    if name not in ("spamming", "hierarchical"):
        mean = channel.table(theta)
        assert mean is not None
        error = tables.std(0) / 20
        assert ((tables.mean(0) - mean.double()).abs() < 4.5 * error + 1e-6).all()
    assert (tables.std(0).amax((1, 2)) > 0.01).any(), "draws that are all alike are no draws"


def test_a_table_that_does_not_fit_is_never_attempted() -> None:
    with pytest.raises(TooLarge, match=r"10,000 workers x 1,000 x 1,000 classes .* use OneCoin, .*MajorityVote"):
        require_table(10_000, 1_000, "a confusion matrix per worker")
    require_table(10_000, 100, "a confusion matrix per worker")


@pytest.mark.parametrize("shared", [True, False])
def test_coins_need_no_table(shared: bool) -> None:
    """3,000 workers x 1,000 classes: 24 GiB as tables, nothing as coins."""
    rng = np.random.default_rng(0)
    batch = Batch(
        torch.arange(2000, dtype=torch.int32),
        torch.tensor(rng.integers(0, 3000, 2000), dtype=torch.int32),
        torch.tensor(rng.integers(0, 1000, 2000), dtype=torch.int32),
        torch.arange(2001, dtype=torch.int32),
        3000,
        1000,
        2000,
        2000,
    )
    channel = Coin(1000, shared, 2.0, 2.0)
    belief = torch.full((2000, 1000), 0.001)
    theta = channel.update(channel.stats(batch, belief), None)
    assert channel.table(theta) is None
    assert channel.evidence(batch, theta).shape == (2000, 1000)
