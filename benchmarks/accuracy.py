"""Accuracy on real crowds: every method of ours, and every one of crowd-kit's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from crowdkit import aggregation
from sklearn.base import BaseEstimator

import voxpop as vp
from benchmarks.page import ROOT, Table, verdict

DATA = ROOT.parent / "shared" / "data"
CROWD_KIT = ("MajorityVote", "Wawa", "ZeroBasedSkill", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE", "MMSR", "KOS")
HALF_A_POINT = 0.005
Right = np.ndarray  # of each task with a known truth, whether the answer is right


def run(quick: bool) -> Table:
    folders = [f for f in sorted(DATA.glob("*")) if (f / "answers.csv").exists() and f.name != "emotion"]
    if quick:
        folders = [f for f in folders if f.name in ("bluebird", "rte", "labelme")]
    if not folders:
        return Table("Accuracy on real crowds", "Not measured: the data are not beside the repository.", ["method"])
    names = [*(f"voxpop {name}" for name in ("default", *vp.METHODS)), *(f"crowd-kit {name}" for name in CROWD_KIT)]
    right: dict[str, dict[str, Right]] = {}
    with ProcessPoolExecutor(initializer=torch.set_num_threads, initargs=(1,)) as pool:
        jobs = [(folder, name) for folder in folders for name in names]
        for (folder, name), found in zip(jobs, pool.map(_job, jobs), strict=True):
            if found is not None:
                right.setdefault(folder.name, {})[name] = found
    rows = [[name, *(_percent(right[f.name], name) for f in folders)] for name in names]
    gaps = [_gap(right[f.name]) for f in folders]
    rows.append(["**default beside the best: points**", *(f"{100 * gap:+.1f}" for gap, _, _, _ in gaps)])
    rows.append(["**one paired standard error**", *(f"{100 * error:.1f}" for _, error, _, _ in gaps)])
    return Table(
        "Accuracy on real crowds",
        "Percent of the tasks with a known truth that are answered right; every method with its own options, in bold "
        "the best of each crowd; empty where a method has no answer (crowd-kit's KOS is for two classes, and fails on "
        "trec). The last lines: the default minus the best of all others, and the standard error of "
        "that difference, task by task.",
        ["method", *(f.name for f in folders)],
        rows,
        list(_verdicts([f.name for f in folders], gaps)),
    )


def _job(job: tuple[Path, str]) -> Right | None:
    folder, name = job
    answers = pd.read_csv(folder / "answers.csv", dtype=str)
    truth = pd.read_csv(folder / "truth.csv", dtype=str).set_index("task")["label"]
    library, method = name.split(" ", 1)
    found = _ours(method)(answers) if library == "voxpop" else _crowd_kit(method, answers)
    return None if found is None else (found.reindex(truth.index) == truth).to_numpy()


def _ours(method: str) -> Callable[[pd.DataFrame], pd.Series]:
    def infer(answers: pd.DataFrame) -> pd.Series:
        votes = vp.Votes.from_frame(answers)
        found = vp.consensus(votes) if method == "default" else vp.make(method).infer(votes)
        return found.labels.to_pandas().set_index("task")["label"].astype(str)

    return infer


def _crowd_kit(method: str, answers: pd.DataFrame) -> pd.Series | None:
    """Its answer; None where it has none: KOS is for two classes, and ends with a KeyError where a score is zero."""
    if method == "KOS" and answers["label"].nunique() > 2:
        return None
    kind = getattr(aggregation, method)
    if not hasattr(kind, "__sklearn_tags__"):  # two of its methods lack what scikit-learn 1.9 asks for
        kind.__sklearn_tags__ = BaseEstimator.__sklearn_tags__
    if method == "MMSR":  # it has no way to learn the number of iterations but its own, and needs no more here
        return kind(n_iter=10000).fit_predict(answers)
    try:
        return kind().fit_predict(answers)
    except KeyError:
        return None


def _percent(right: dict[str, Right], name: str) -> str:
    if name not in right:
        return ""
    value = f"{100 * right[name].mean():.1f}"
    best = max(r.mean() for r in right.values())
    return f"**{value}**" if right[name].mean() == best else value


def _gap(right: dict[str, Right]) -> tuple[float, float, float, float]:
    """The default minus the best other, its paired standard error; the default minus the majority, and its error."""
    mine = right["voxpop default"]
    best = max((r for name, r in right.items() if name != "voxpop default"), key=lambda r: r.mean())
    return (*_paired(mine, best), *_paired(mine, right["voxpop majority-vote"]))


def _paired(a: Right, b: Right) -> tuple[float, float]:
    difference = a.astype(float) - b
    return difference.mean(), difference.std(ddof=1) / math.sqrt(len(difference))


def _verdicts(crowds: list[str], gaps: list[tuple[float, float, float, float]]) -> Iterator[str]:
    for crowd, (gap, error, over, over_error) in zip(crowds, gaps, strict=True):
        least, least_over = -max(HALF_A_POINT, error), -max(HALF_A_POINT, over_error)
        yield verdict(
            gap >= least and over >= least_over,
            f"{crowd}: the default is {100 * gap:+.2f} points from the best (allowed {100 * least:+.2f}) "
            f"and {100 * over:+.2f} from the majority (allowed {100 * least_over:+.2f})",
        )
