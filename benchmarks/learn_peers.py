"""Accuracy and seconds beside scikit-activeml's CrowdLayer and Annot-Mix: same data, network, epochs and batches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

import voxpop as vp
from benchmarks.page import ROOT, Table, verdict
from voxpop.bench.data import load
from voxpop.bench.results import Mean
from voxpop.bench.trials import Trial, accuracy
from voxpop.votes import Votes

DATA = ROOT.parent / "shared" / "data"
EPOCHS, BATCH, LR, HIDDEN = 50, 64, 1e-3, 128
SEEDS = 5
SLACK = 0.005  # half a point: what seeds alone may move a mean
Shares = Callable[[Trial, int], tuple[np.ndarray, float]]  # -> shares of the classes on new tasks, seconds


def run(quick: bool) -> Table:
    torch.set_num_threads(1)
    names = ["digits"] if quick or not DATA.exists() else ["digits", "labelme"]
    seeds = 2 if quick else SEEDS
    right: dict[tuple[str, str], list[float]] = {}
    took: dict[tuple[str, str], list[float]] = {}
    for name in names:
        for seed in range(seeds):
            trial = trial_of(name, seed)
            for method, shares in METHODS.items():
                found, seconds = shares(trial, seed)
                right.setdefault((name, method), []).append(accuracy(found, trial.data.y_test))
                took.setdefault((name, method), []).append(seconds)
    rows = [
        [method]
        + [cell for n in names for cell in (Mean.of(right[n, method]).in_points(), f"{np.median(took[n, method]):.2f}")]
        for method in METHODS
    ]
    return Table(
        "Learning beside scikit-activeml",
        f"Accuracy on new tasks in % with its 95% interval over {seeds} seeds, and seconds of the processor on one "
        f"thread (the median). One hidden layer of {HIDDEN} with dropout, Adam with a rate of {LR:g}, {EPOCHS} epochs, "
        f"batches of {BATCH} votes there and {BATCH} tasks here: each method's own way. *Chosen*: epochs and all else "
        "by held-out votes, our default, the search within the seconds, and the inference of the training tasks, which "
        "the others are not asked for. Digits have a simulated crowd with three votes "
        "a task, LabelMe has people's.",
        ["method", *(head for name in names for head in (f"{name}: %", "s"))],
        rows,
        list(_verdicts(names, right, took)),
    )


def _verdicts(
    names: list[str], right: dict[tuple[str, str], list[float]], took: dict[tuple[str, str], list[float]]
) -> Iterator[str]:
    for ours, theirs in PAIRS:
        for name in names:
            ahead = float(np.mean(right[name, ours]) - np.mean(right[name, theirs]))
            times = float(np.median(took[name, theirs]) / np.median(took[name, ours]))
            yield verdict(
                ahead >= -SLACK and times > 1,
                f"{name}: {ours} is {100 * ahead:+.1f} points from {theirs}, and {times:.1f} times as fast",
            )


def trial_of(name: str, seed: int) -> Trial:
    """Features in rows; a simulated crowd votes where nobody has."""
    data = load(name, str(DATA), seed)
    flat = replace(data, x=data.x.reshape(len(data.x), -1), x_test=data.x_test.reshape(len(data.x_test), -1))
    if flat.votes is not None:
        return Trial(flat, flat.votes)
    return Trial.voted(flat, "believable", seed, votes_per_task=3)


def ours(kind: Any, **options: Any) -> Shares:
    def shares(trial: Trial, seed: int) -> tuple[np.ndarray, float]:
        settings = {"epochs": EPOCHS, "batch_size": BATCH, "lr": LR} | options
        model = kind(f"mlp:{HIDDEN}", seed=seed, **settings)
        begin = time.process_time()
        model.fit(trial.data.x, trial.votes)
        return model.predict_proba(trial.data.x_test), time.process_time() - begin

    return shares


def theirs(name: str) -> Shares:
    def shares(trial: Trial, seed: int) -> tuple[np.ndarray, float]:
        from skactiveml.classifier import multiannotator

        torch.manual_seed(seed)
        x, x_test = standardised(trial.data.x, trial.data.x_test)
        model = getattr(multiannotator, name)(
            clf_module=Network,
            classes=np.arange(trial.data.K),
            random_state=seed,
            neural_net_param_dict={
                "module__features": x.shape[1],
                "module__classes": trial.data.K,
                "max_epochs": EPOCHS,
                "batch_size": BATCH,
                "optimizer": torch.optim.Adam,
                "optimizer__lr": LR,
                "verbose": 0,
            },
        )
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, matrix(trial.votes))
            found = model.predict_proba(x_test)
        return found, time.process_time() - begin

    return shares


class Network(nn.Sequential):
    """The same network as ours, which has the features' scale within."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(nn.Linear(features, HIDDEN), nn.ReLU(), nn.Dropout(0.5), nn.Linear(HIDDEN, classes))


def standardised(x: np.ndarray, x_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means off, and one factor for all columns: what our networks do to pixels and activations by themselves."""
    mean = x.mean(0)
    scale = np.sqrt(x.var(0).mean())
    return ((x - mean) / scale).astype(np.float32), ((x_test - mean) / scale).astype(np.float32)


def matrix(votes: Votes) -> np.ndarray:
    """N,M with NaN for no vote: what peers take."""
    told = np.full((votes.N, votes.M), np.nan)
    told[votes.task.numpy(), votes.worker.numpy()] = votes.label.numpy()
    return told


METHODS: dict[str, Shares] = {
    "voxpop CrowdLayer": ours(vp.CrowdLayer, start="identity", cross_fit=False),
    "scikit-activeml CrowdLayer": theirs("CrowdLayerClassifier"),
    "voxpop AnnotMix": ours(vp.AnnotMix, cross_fit=False),
    "scikit-activeml AnnotMix": theirs("AnnotMixClassifier"),
    "voxpop CrowdLayer, chosen": ours(vp.CrowdLayer, epochs=None),
    "voxpop AnnotMix, chosen": ours(vp.AnnotMix, epochs=None),
    "voxpop AggNet, chosen": ours(vp.AggNet, epochs=None),
    "voxpop MaxMIG, chosen": ours(vp.MaxMIG, epochs=None),
}
PAIRS = (
    ("voxpop CrowdLayer", "scikit-activeml CrowdLayer"),
    ("voxpop AnnotMix", "scikit-activeml AnnotMix"),
)
