"""What an epoch costs beside plain supervised training of the same network with batches of the same size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import voxpop as vp
from benchmarks.page import Table, verdict
from voxpop.learn.data import Data
from voxpop.learn.learner import Learner
from voxpop.learn.loop import Training
from voxpop.learn.networks import network
from voxpop.learn.rows import rows_of
from voxpop.simulate import simulate

PER_TASK, WORKERS, K, BATCH = 5, 200, 10, 64
MOST = {"descent": 1.25, "EM": 1.5}  # times a plain epoch
Makers = dict[str, Callable[..., Learner]]


@dataclass(frozen=True)
class Case:
    words: str
    model: str
    shape: tuple[int, ...]
    tasks: int


CASES = (
    Case("cnn, images of 3 x 32 x 32", "cnn", (3, 32, 32), 1_000),
    Case("mlp, 512 features", "mlp", (512,), 10_000),
)


def families() -> dict[str, Makers]:
    """The methods by name; where held-out votes would choose, one of what they choose among."""
    return {
        "descent": {
            "CrowdLayer": vp.CrowdLayer,
            "CCEM": partial(vp.CrowdLayer, simplex=True),
            "TraceReg": partial(vp.TraceReg, weight=0.01),
            "GeoCrowdNet (F)": partial(vp.GeoCrowdNet, weight=0.01),
            "GeoCrowdNet (W)": partial(vp.GeoCrowdNet, weight=0.01, regularize="W"),
            "COINNet": partial(vp.COINNet, price=6.0, volume=0.01),
            "DoctorNet": vp.DoctorNet,
            "MaxMIG": vp.MaxMIG,
            "CoNAL": vp.CoNAL,
            "UnionNet": vp.UnionNet,
            "AnnotMix": vp.AnnotMix,
        },
        "EM": {
            "TwoStage": vp.TwoStage,
            "Raykar": vp.Raykar,
            "AggNet": vp.AggNet,
            "BayesDGC": vp.BayesDGC,
            "DeepMF": vp.DeepMF,
            "DeepBP": vp.DeepBP,
            "Yan": vp.Yan,
            "DALC": vp.DALC,
        },
    }


def run(quick: bool) -> Table:
    torch.set_num_threads(1)
    kinds = families()
    times: dict[str, dict[str, float]] = {}
    plain: dict[str, float] = {}
    for case in CASES:
        plain[case.words], times[case.words] = _measured(case, kinds["descent"] | kinds["EM"], 1 if quick else 2)
    ratio = {case: {name: took / plain[case] for name, took in times[case].items()} for case in times}
    rows = [["plain", "", *(f"1 ({plain[case]:.2f} s)" for case in times)]]
    rows += [[n, kind, *(f"{ratio[c][n]:.2f}" for c in times)] for kind, methods in kinds.items() for n in methods]
    return Table(
        "Learning: an epoch beside plain training",
        f"Times what plain supervised training takes: the loop that everybody writes (a shuffle, cross-entropy, "
        f"torch's Adam), on the truth, with the same network and batches of {BATCH} tasks. {WORKERS} workers, "
        f"{PER_TASK} votes a task, {K} classes. Seconds are the processor's, on one thread: other work on the machine "
        "does not count; the best of some epochs after the first, in turn with the others. An epoch of the EM family "
        "is an E-step, with a prediction for every task, and a pass. What the votes take is about the same "
        "for any network: so it shows most beside the smallest.",
        ["method", "family", *times],
        rows,
        [_verdict(case, kind, {n: ratio[case][n] for n in kinds[kind]}) for case in times for kind in kinds],
    )


def _verdict(case: str, kind: str, ratio: dict[str, float]) -> str:
    most = MOST[kind]
    over = ", ".join(f"{name} {value:.2f}" for name, value in ratio.items() if value > most)
    words = f"{case}: {kind} at most {most:g} times a plain epoch"
    return verdict(
        not over, f"{words}; the dearest takes {max(ratio.values()):.2f}" if not over else f"{words}: {over}"
    )


def _measured(case: Case, methods: Makers, times: int) -> tuple[float, dict[str, float]]:
    crowd = simulate(tasks=case.tasks, workers=WORKERS, classes=K, kind="dirichlet", votes_per_task=PER_TASK, seed=1)
    x = torch.randn(case.tasks, *case.shape, generator=torch.Generator().manual_seed(0)) + 1
    data = Data(rows_of(x), crowd.votes)
    runs = {"": _plain(case, x, crowd.truth.long())}
    runs |= {name: training(make(case.model, batch_size=BATCH), data).epoch for name, make in methods.items()}
    for epoch in runs.values():  # the first warms up, and has a start to find
        epoch()
    took: dict[str, float] = {}
    for _ in range(times):
        for name, epoch in runs.items():
            begin = time.process_time()
            epoch()
            took[name] = min(took.get(name, float("inf")), time.process_time() - begin)
    return took.pop(""), took


def training(learner: Learner, data: Data) -> Training:
    """What ``fit`` would run, epoch by epoch."""
    return Training(learner._maker()(data), data, learner._settings(), 10)


def _plain(case: Case, x: Tensor, truth: Tensor) -> Callable[[], Any]:
    net = network(case.model, rows_of(x), K)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)

    def epoch() -> None:
        net.train()
        for index in torch.split(torch.randperm(len(x)), BATCH):
            optimiser.zero_grad()
            F.cross_entropy(net(x[index]), truth[index]).backward()
            optimiser.step()

    return epoch
