"""One trial: a crowd votes, a method learns or infers, and its answers are compared with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from voxpop.bench.data import Data
from voxpop.bench.experiment import Settings
from voxpop.learn.learner import Learner
from voxpop.methods.registry import make
from voxpop.simulate import simulate_votes_on
from voxpop.simulate.subsets import on_tasks
from voxpop.votes import Votes

TRUTH = "truth"  # the method that is told the truth: what a perfect crowd would give


@dataclass(frozen=True, eq=False)
class Trial:
    """Data, the votes on it, and the same crowd's votes on the tasks to test on (for forecasts)."""

    data: Data
    votes: Votes
    votes_test: Votes | None = None

    @classmethod
    def simulated(cls, data: Data, kind: str, seed: int, **options: Any) -> Trial:
        """Everyone of a simulated crowd also votes on the tasks to test on."""
        truth = np.concatenate([data.y, data.y_test])
        votes = simulate_votes_on(truth, classes=data.K, kind=kind, seed=seed, **options).votes
        rows = torch.split(torch.arange(len(truth)), [len(data.y), len(data.y_test)])
        return cls(data, on_tasks(votes, rows[0]), on_tasks(votes, rows[1]))

    @classmethod
    def voted(cls, data: Data, kind: str, seed: int, **options: Any) -> Trial:
        """A simulated crowd votes on the tasks to learn from."""
        return cls(data, simulate_votes_on(data.y, classes=data.K, kind=kind, seed=seed, **options).votes)


def learn(trial: Trial, method: str, settings: Settings, seed: int, **options: Any) -> dict[str, float]:
    """Accuracy of the classifier on new tasks, of the inference on old ones, of the forecaster on new ones."""
    if method == TRUTH:
        trial, method, options = Trial(trial.data, perfect(trial.data)), "two-stage", {"aggregate": "majority-vote"}
    return tested(trial, learner(trial, method, settings, seed, **options))


def learner(trial: Trial, method: str, settings: Settings, seed: int, **options: Any) -> Learner:
    """The method after it has learned from the data and the votes."""
    options = {"model": settings.model, "epochs": settings.epochs, "seed": seed} | options
    fitted: Learner = make(method, **options).fit(trial.data.x, trial.votes)
    return fitted


def tested(trial: Trial, model: Learner) -> dict[str, float]:
    data = trial.data
    found = {
        "classifier": accuracy(model.predict_proba(data.x_test), data.y_test),
        "inference": float((model.consensus_.label.numpy() == data.y).mean()),
    }
    if trial.votes_test is not None:
        found["forecaster"] = accuracy(model.forecast(data.x_test, trial.votes_test), data.y_test)
    return found


def infer(trial: Trial, method: str, **options: Any) -> dict[str, float]:
    """Accuracy of a method that sees the votes only."""
    found = make(method, **options).infer(trial.votes)
    return {"inference": float((found.label.numpy() == trial.data.y).mean())}


def perfect(data: Data) -> Votes:
    """The truth as the votes of one worker."""
    tasks, worker = np.arange(len(data.y)), np.zeros(len(data.y), int)
    return Votes.from_arrays(tasks, worker, data.y, tasks=tasks, workers=[0], classes=range(data.K))


def accuracy(shares: NDArray[Any], truth: NDArray[Any]) -> float:
    """How often the class with the largest share (N,K) is the true one."""
    return float((np.asarray(shares).argmax(1) == truth).mean())
