"""STAL: topics are the components of a mixture, found with and without votes; workers are good by topic."""

from __future__ import annotations

import numpy as np
import torch

import voxpop as vp
from voxpop.votes import Votes

CENTRES = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0]])


def crowd(seed: int = 0, N: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray, Votes]:
    """Three topics, and three workers, each an expert in one of them."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 3, N)
    X = (CENTRES[topic] + rng.normal(size=(N, 3))).astype(np.float32)
    truth = (X[:, 2] > 0).astype(int)
    right = rng.random((N, 3)) < np.where(np.arange(3) == topic[:, None], 0.98, 0.55)
    return X, topic, truth, Votes.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))


def test_each_worker_is_an_expert_in_one_topic() -> None:
    X, topic, truth, votes = crowd()
    learner = vp.STAL(components=3, epochs=30, lr=0.05).fit(X, votes)
    assert (learner.consensus_.label.numpy() == truth).mean() > 0.93
    with torch.no_grad():
        z = learner.objective_.topics_of(torch.from_numpy(X))
    right = torch.sigmoid(z @ learner.objective_.theta["workers"].t()).numpy()  # N,M
    for worker in range(3):
        assert right[topic == worker, worker].mean() > right[topic != worker, worker].mean() + 0.1
    assert learner.ask(k=1, X=CENTRES[[1]].astype(np.float32))["worker"].to_list() == [1]


def test_tasks_without_votes_help_to_find_the_topics() -> None:
    X, topic, _, votes = crowd()
    few = Votes.from_arrays(
        votes.task[:30], votes.worker[:30], votes.label[:30], tasks=range(300), workers=range(3), classes=range(2)
    )
    learner = vp.STAL(components=3, epochs=1).fit(X, few)
    found = learner.objective_.lift(torch.from_numpy(X)).argmax(1).numpy()
    pairs = set(zip(found.tolist(), topic.tolist(), strict=True))
    assert len(pairs) == 3
    assert len({t for _, t in pairs}) == 3
