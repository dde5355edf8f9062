"""Cao, Xu, Kong and Wang, "Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds": figure 4,
tables 2 and 3, example E.2.

Cases are 4.1 (independent mistakes), 4.2 (naive majority) and 4.3 (correlated mistakes), each with experts of high
(H) and low (L) expertise, as in appendix B.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import log

import numpy as np
import torch
from torch.nn.functional import one_hot

from voxpop.bench.claims import Claim, at_least, at_most
from voxpop.bench.data import Data, load
from voxpop.bench.experiment import Experiment, Key, Part, Settings
from voxpop.bench.results import Results
from voxpop.bench.trials import TRUTH, Trial, infer, learn, learner, tested
from voxpop.learn.learner import Learner
from voxpop.methods.learning.max_mig import Intersection
from voxpop.simulate.seniors import SENIORS

KINDS = {"4.1": "independent", "4.2": "naive", "4.3": "correlated"}
CASES = tuple(f"{number}({level})" for level in "HL" for number in KINDS)
OURS, MAJORITY, LAYER, DOCTOR, AGGNET = "max-mig", "majority", "crowd-layer", "doctor-net", "aggnet"
NAIVE = ("4.2(H)", "4.2(L)")
METHODS = (MAJORITY, LAYER, DOCTOR, AGGNET, OURS, TRUTH)

TABLE_3 = {  # (d) is the classifier, (dc) the data-crowds forecaster; in the order of CASES
    "Dogs vs. Cats": {
        (OURS, "classifier"): (79.52, 80.25, 78.94, 71.44, 71.07, 68.40),
        (OURS, "forecaster"): (88.80, 87.60, 87.17, 73.99, 73.38, 70.75),
        (AGGNET, "classifier"): (79.36, 79.53, 71.97, 70.46, 70.07, 63.85),
        (AGGNET, "forecaster"): (88.00, 88.56, 75.00, 71.27, 70.75, 61.14),
    },
    "CIFAR-10": {
        (OURS, "classifier"): (86.33, 86.55, 86.71, 70.16, 69.99, 67.59),
        (OURS, "forecaster"): (98.10, 98.18, 99.06, 75.55, 75.11, 72.47),
        (AGGNET, "classifier"): (86.13, 86.27, 63.91, 70.21, 62.50, 38.27),
        (AGGNET, "forecaster"): (99.05, 99.01, 70.01, 74.76, 72.02, 29.03),
    },
    "LUNA16": {
        (OURS, "classifier"): (90.88, 91.06, 91.15, 88.90, 89.04, 88.85),
        (OURS, "forecaster"): (94.56, 93.97, 92.63, 91.16, 91.23, 92.05),
        (AGGNET, "classifier"): (89.56, 90.23, 83.47, 81.42, 83.53, 81.68),
        (AGGNET, "forecaster"): (91.13, 91.94, 65.14, 70.97, 74.41, 61.76),
    },
}
EXPERTS = 101  # of example E.2


def parts(settings: Settings) -> tuple[Part, ...]:
    figures = (("two", "Dogs vs. Cats", _claims_two), ("ten", "CIFAR-10", _claims_ten), ("unequal", "LUNA16", _claims))
    return (
        *(
            Part(
                name,
                f"{settings.on}, {'85% and 15% of two' if name == 'unequal' else name} classes, beside {paper}",
                CASES,
                METHODS,
                partial(_learn, name),
                ("classifier", "forecaster"),
                "case",
                published=_published(paper),
                claims=claims,
            )
            for name, paper, claims in figures
        ),
        Part(
            "example-e2",
            "example E.2: one expert, and a hundred copies of a coin",
            ("E.2",),
            (OURS, AGGNET, "dawid-skene", "likelihood of the truth", "likelihood of the useless"),
            _example,
            ("classifier", "inference"),
            claims=_claims_example,
        ),
    )


EXPERIMENT = Experiment(
    "maxmig",
    "Cao, Xu, Kong and Wang: Max-MIG",
    "Three information structures: independent mistakes, a naive majority, correlated mistakes.",
    parts,
    defaults=Settings(epochs=15),
)


# -- cells ------------------------------------------------------------------------------------


def _learn(part: str, settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    data = _data(part, settings, seed)
    like = "luna16" if part == "unequal" else "dogs-vs-cats"
    trial = Trial.simulated(data, "seniors", seed, case=KINDS[case[:3]], level=case[4], like=like)
    if method == MAJORITY:
        return learn(trial, "two-stage", settings, seed, aggregate="majority-vote")
    if method != OURS:
        return learn(trial, method, settings, seed)
    options = {"prior": "learned"} if part == "unequal" else {}  # "only tune p", section 3.1
    model = learner(trial, method, settings, seed, **options)
    return tested(trial, model) | (_juniors(trial, model, SENIORS[case[4]]) if case in NAIVE else {})


def _juniors(trial: Trial, model: Learner, seniors: int) -> dict[str, float]:
    """How far all juniors together move Max-MIG's aggregator, as a share of how far the seniors do."""
    assert isinstance(model.objective_, Intersection)
    votes, crowd = trial.votes, model.objective_.crowd.detach()  # M,K,K as [worker, label, truth]
    label = votes.label.view(votes.N, votes.M).long()
    said = crowd[torch.arange(votes.M), label]  # N,M,K
    moved = [part.sum(1).aminmax(dim=1) for part in (said[:, :seniors], said[:, seniors:])]
    by_seniors, by_juniors = (float((range.max - range.min).mean()) for range in moved)
    return {"juniors": by_juniors / by_seniors}


def _data(part: str, settings: Settings, seed: int) -> Data:
    data = load(settings.on, settings.folder, seed)
    if part != "ten" and data.K > 2:
        data = data.two()
    return data.unequal() if part == "unequal" else data


def _example(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    """X = Y: the feature tells the class without doubt."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 2000)
    x = np.stack([1.0 - y, y], 1).astype(np.float32)
    data = Data("X = Y", x[:1000], y[:1000], x[1000:], y[1000:], 2)
    trial = Trial.simulated(data, "one-expert", seed)
    if method.startswith("likelihood"):
        return {"log likelihood": _likelihood(trial, truth=method.endswith("truth"))}
    if method == "dawid-skene":
        return infer(trial, method)
    if method != OURS:
        return learn(trial, method, settings, seed)
    model = learner(trial, method, settings, seed)
    return tested(trial, model) | _juniors(trial, model, seniors=1)


def _likelihood(trial: Trial, truth: bool) -> float:
    """The largest mean log-likelihood of the votes that a classifier allows (theorem E.3).

    The true one makes every matrix that of its expert. The useless one (a half everywhere) leaves the latent class
    to the hundred copies: their matrices are the identity, and the expert's is a coin.
    """
    votes = trial.votes
    label = votes.label.view(votes.N, EXPERTS).long()
    hidden = torch.from_numpy(trial.data.y) if truth else label[:, 1]
    log_prior = 0.0 if truth else log(0.5)
    agree = one_hot(hidden, 2).double().T @ one_hot(label, 2).double().flatten(1)
    table = agree.view(2, EXPERTS, 2) / agree.view(2, EXPERTS, 2).sum(2, keepdim=True)  # truth,worker,label
    seen = table[hidden[:, None], torch.arange(EXPERTS), label]  # N,M
    return log_prior + float(seen.log().sum(1).mean())


# -- claims -----------------------------------------------------------------------------------


def _means(results: Results, method: str, level: str, measure: str = "classifier") -> dict[str, float]:
    return {c: results.mean(c, method, measure).value for c in CASES if c[4] == level}


def _claims(results: Results) -> list[Claim]:
    high, low = _means(results, OURS, "H"), _means(results, OURS, "L")
    spread = {f"({level})": max(of.values()) - min(of.values()) for level, of in (("H", high), ("L", low))}
    behind = {c: results.gap(c, TRUTH, OURS).value for c in high}
    gain = {c: results.mean(c, OURS, "forecaster").value - results.mean(c, OURS, "classifier").value for c in CASES}
    return [
        at_most("Max-MIG is as good in all three information structures (within 2 points)", spread, 0.02),
        at_most("Max-MIG is within 2 points of training on the truth in the H cases", behind, 0.02),
        at_least("Max-MIG's data-crowds forecaster beats its classifier in every case (table 3)", gain, 0.0),
    ]


def _claims_two(results: Results) -> list[Claim]:
    return _claims(results) + _naive(results)


def _claims_ten(results: Results) -> list[Claim]:
    ahead = {"4.3(H)": results.gap("4.3(H)", OURS, AGGNET).value}
    forecasts = {"4.3(H)": results.gap("4.3(H)", OURS, AGGNET, "forecaster").value}
    return [
        *_claims(results),
        at_least("Max-MIG is 15 points above AggNet where mistakes are correlated", ahead, 0.15),
        at_least("its forecaster is 15 points above AggNet's where mistakes are correlated", forecasts, 0.15),
        *_naive(results),
    ]


def _naive(results: Results) -> list[Claim]:
    def ahead(method: str) -> dict[str, float]:
        return {c: results.gap(c, OURS, method).value for c in NAIVE}

    weight = {c: results.mean(c, OURS, "juniors").value for c in NAIVE}
    return [
        at_least("Max-MIG is 15 points above the majority where the majority is naive", ahead(MAJORITY), 0.15),
        at_least("CrowdLayer fails where the majority is naive (10 points behind Max-MIG)", ahead(LAYER), 0.10),
        at_least("DoctorNet fails where the majority is naive (10 points behind Max-MIG)", ahead(DOCTOR), 0.10),
        at_most("all naive juniors together move Max-MIG's aggregator a tenth of what seniors do", weight, 0.1),
    ]


def _claims_example(results: Results) -> list[Claim]:
    true, useless = (
        results.mean("E.2", f"likelihood of the {which}", "log likelihood").value for which in ("truth", "useless")
    )
    known = not np.isnan(true + useless)
    return [
        Claim(
            "the likelihood prefers the useless classifier (theorem E.3: 100 log 0.5 = -69.3 against 2 log 0.5 = -1.4)",
            bool(useless > true) if known else None,
            f"{true:.1f} for the truth, {useless:.1f} for the useless classifier" if known else "no numbers",
        ),
        at_least("Max-MIG finds the truth", {OURS: results.mean("E.2", OURS).value}, 0.95),
        at_most(
            "the hundred copies together move its aggregator a tenth of what the expert does",
            {OURS: results.mean("E.2", OURS, "juniors").value},
            0.1,
        ),
        at_most("AggNet, which maximises the likelihood, does not", {AGGNET: results.mean("E.2", AGGNET).value}, 0.75),
    ]


def _published(paper: str) -> Mapping[Key, float]:
    return {
        (case, method, measure): value / 100
        for (method, measure), row in TABLE_3[paper].items()
        for case, value in zip(CASES, row, strict=True)
    }
