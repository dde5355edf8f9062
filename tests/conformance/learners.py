"""What the checks of learners are run on: every entry of the registry, with options that make it quick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

import voxpop as vp
from tests.conformance.subjects import Known
from voxpop.learn.learner import Learner
from voxpop.methods.registry import LEARNING

QUICK: dict[str, dict[str, Any]] = {  # where held-out votes would choose an option, it is chosen
    "TwoStage": {"aggregate": "one-coin"},
    "DeepMF": {"samples": 50},
    "DeepBP": {"samples": 50, "passes": 2},
    "CrowdLayer": {"start": "counts"},
    "TraceReg": {"weight": 0.01},
    "GeoCrowdNet": {"weight": 0.01},
    "COINNet": {"price": 6.0, "volume": 0.01},
    "MaxMIG": {"start": "average", "crowd_lr": 0.01},
    "DALC": {"topics": 3, "samples": 5},
    "STAL": {"components": 2},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "AggNet": [{"members": 2}],
    "TwoStage": [{"aggregate": "majority-vote", "hard": True}],
    "DeepMF": [{"workers_prior": "one-coin"}],
    "DeepBP": [{"workers_prior": "one-coin"}],
    "CrowdLayer": [{"simplex": True}, {"kind": "VW+B"}],
    "TraceReg": [{"rank": 1}],
    "GeoCrowdNet": [{"regularize": "W"}],
    "MaxMIG": [{"divergence": "pearson", "start": "counts"}],
    "DALC": [{"low_rank": False}],
}


@dataclass(frozen=True)
class Subject:
    """A learner with options."""

    name: str
    kind: Any
    can: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Learner:
        quick = {"model": "linear", "epochs": 2, "batch_size": 16, "lr": 0.01}
        made: Learner = self.kind(**{**quick, **QUICK.get(self.kind.__name__, {}), **self.options, **more})
        return made

    @property
    def exact(self) -> Learner:
        """Without any draw: one batch, a network that begins at zero, no halves."""
        halves = {"cross_fit": False} if hasattr(self.kind, "cross_fit") else {}
        return self.make(model=Zero(), batch_size=10_000, **halves)

    def __str__(self) -> str:
        return self.name


def subjects() -> list[Subject]:
    out = []
    for entry in LEARNING:
        for options in [{}, *VARIANTS.get(entry.python, [])]:
            told = ", ".join(f"{k}={v}" for k, v in options.items())
            name = entry.python + (f"({told})" if told else "")
            out.append(Subject(name, entry.load(), entry.can, options))
    return out


# -- data -----------------------------------------------------------------------------------------

N, M, K, D = 48, 6, 3, 4


class Zero(nn.Module):
    """A linear network that begins at zero: no class is first, and nothing is drawn."""

    def __init__(self, inputs: int = D, outputs: int = K) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Crowd:
    """A row of features for each task, and who said what about it."""

    X: np.ndarray[Any, Any]
    truth: np.ndarray[Any, Any]
    task: np.ndarray[Any, Any]
    worker: np.ndarray[Any, Any]
    label: np.ndarray[Any, Any]

    @property
    def votes(self) -> vp.Votes:
        return self.named(np.arange(M), np.arange(K))

    def named(self, workers: Any, classes: Any, tasks: Any = None) -> vp.Votes:
        """The same votes, worker m called workers[m], class k classes[k]; tasks in the order of X unless given."""
        tasks = np.arange(len(self.X)) if tasks is None else tasks
        arrays = tasks[self.task], np.asarray(workers)[self.worker], np.asarray(classes)[self.label]
        return vp.Votes.from_arrays(*arrays, tasks=np.arange(len(self.X)), classes=np.sort(classes))

    def only(self, keep: Any) -> Crowd:
        """Those votes alone."""
        return Crowd(self.X, self.truth, self.task[keep], self.worker[keep], self.label[keep])


@cache
def crowd(seed: int = 0, tasks: int = N, good: float = 0.8) -> Crowd:
    """Three clouds of features, and three votes a task by six workers who are mostly right."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, tasks)
    X = (2.5 * np.eye(K, D)[truth] + rng.normal(size=(tasks, D))).astype(np.float32)
    task = np.repeat(np.arange(tasks), 3)
    worker = np.concatenate([rng.permutation(M)[:3] for _ in range(tasks)])
    label = np.where(rng.random(len(task)) < good, truth[task], rng.integers(0, K, len(task)))
    return Crowd(X, truth, task, worker, label)


# -- exceptions -----------------------------------------------------------------------------------

RANDOM = "random numbers go by position, so this holds in distribution only"
ADAM = "a network of zeros gives the crowd a gradient of rounding noise, of which Adam makes whole steps"
LBFGS = "the crowd's climb ends a little elsewhere after other rounding"

EXCEPTIONS: dict[str, dict[str, Known]] = {
    "TwoStage(aggregate=majority-vote, hard=True)": {"class_relabelling": Known("of classes that tie the first wins")},
    "DeepBP": {"worker_relabelling": Known("draws: " + RANDOM), "class_relabelling": Known("draws: " + RANDOM)},
    "TraceReg(rank=1)": {"worker_relabelling": Known("who is moved by what: " + RANDOM, 0.01)},
    "CoNAL": {
        "worker_relabelling": Known("the workers' vectors: " + RANDOM, 0.05),
        "class_relabelling": Known("the workers' vectors: " + RANDOM, 0.05),
    },
    "AnnotMix": {
        "task_order": Known("who is mixed with whom: " + RANDOM, 0.05),
        "worker_relabelling": Known("who is mixed with whom: " + RANDOM, 0.05),
    },
    "MaxMIG": {"task_order": Known(ADAM, 0.01), "class_relabelling": Known(ADAM, 0.01)},
    "DALC": {"task_order": Known(LBFGS, 0.01), "worker_relabelling": Known(LBFGS, 0.01)},
    "STAL": {
        "task_order": Known("the mixture of Gaussians begins at random rows"),
        "worker_relabelling": Known(LBFGS, 0.01),
    },
}

# scikit-learn's own checks that cannot be passed, and why
SKLEARN: dict[str, dict[str, str]] = {
    "MaxMIG": {
        "check_class_weight_classifiers": "where one class has all the weight, votes and features share no information"
    }
}


def known(subject: Subject, check: str) -> Known | None:
    own = EXCEPTIONS.get(subject.name, {}).get(check)
    return own or EXCEPTIONS.get(subject.kind.__name__, {}).get(check) or EXCEPTIONS.get("*", {}).get(check)
