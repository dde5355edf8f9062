"""All methods that learn from features and votes in one table, each with its defaults: epochs (where not given),
weights and starts are chosen by held-out votes. On LabelMe, numbers that others' code reached on these features with
this network are beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from voxpop.bench.claims import Claim, at_least
from voxpop.bench.data import load
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Results
from voxpop.bench.trials import TRUTH, Trial, learn
from voxpop.methods.registry import LEARNERS

STAGES: Mapping[str, dict[str, Any]] = {
    "majority, then train": {"aggregate": "majority-vote", "hard": True},
    "vote shares, then train": {"aggregate": "majority-vote"},
    "dawid-skene, then train": {"aggregate": "dawid-skene"},
    "default, then train": {"aggregate": "default"},
}
FORMS: Mapping[str, tuple[str, dict[str, Any]]] = {  # methods with more than one form
    "crowd-layer (simplex)": ("crowd-layer", {"simplex": True}),
    "geo-crowdnet (F)": ("geo-crowdnet", {"regularize": "F"}),
    "geo-crowdnet (W)": ("geo-crowdnet", {"regularize": "W"}),
    "geo-crowdnet (F), five networks": ("geo-crowdnet", {"regularize": "F", "members": 5}),
    "max-mig, five networks": ("max-mig", {"members": 5}),
}
WHOLE = {"two-stage", "geo-crowdnet"}  # whose forms are all listed
MAJORITY = "majority, then train"
OTHERS = {  # on LabelMe: accuracy of others' code, or of their methods, with the same features and network
    TRUTH: 0.930,
    MAJORITY: 0.809,
    "vote shares, then train": 0.822,
    "dawid-skene, then train": 0.828,
    "crowd-layer": 0.842,
    "annot-mix": 0.826,
    "trace-reg": 0.827,
    "conal": 0.830,
    "union-net": 0.836,
    "geo-crowdnet (W)": 0.835,
    "geo-crowdnet (F)": 0.848,
    "coinnet": 0.859,
    "aggnet": 0.859,
    "max-mig": 0.865,
}
CASE = "test"


def parts(settings: Settings) -> tuple[Part, ...]:
    learned = [name for name in LEARNERS if name not in WHOLE]
    labelme = settings.on == "labelme"
    return (
        Part(
            "methods",
            "every method with its defaults: the classifier on new tasks, the inference on those that were voted on",
            (CASE,),
            (*STAGES, *learned, *FORMS, TRUTH),
            _cell,
            ("classifier", "inference"),
            "tasks",
            published={(CASE, method, "classifier"): value for method, value in OTHERS.items()} if labelme else {},
            beside="others' code",
            claims=_claims_labelme if labelme else _claims,
        ),
    )


EXPERIMENT = Experiment(
    "e2e",
    "All learners in one table",
    "Every method with its defaults, beside training on the truth.",
    parts,
    defaults=Settings(seeds=10, epochs=None),
    quick=Settings(seeds=1, epochs=None, quick=True),
)


# -- cells ------------------------------------------------------------------------------------


def _cell(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    data = load(settings.on, settings.folder, seed)
    if data.votes is None:
        trial = Trial.voted(data, "believable", seed, votes_per_task=3)
    else:
        trial = Trial(data, data.votes)
    name, options = FORMS.get(method, (method, {}))
    if method in STAGES:
        name, options = "two-stage", STAGES[method]
    return learn(trial, name, settings, seed, **options)


# -- claims -----------------------------------------------------------------------------------


def _claims(results: Results) -> list[Claim]:
    methods = [m for m in (*LEARNERS, *FORMS) if results.values(CASE, m, "classifier")]
    above = {m: results.gap(CASE, m, MAJORITY).value for m in methods}
    return [at_least("no method is a point or more below training on the majority", above, -0.01)]


def _claims_labelme(results: Results) -> list[Claim]:
    ahead = {method: results.mean(CASE, method).value - theirs for method, theirs in OTHERS.items() if method != TRUTH}
    best = max((results.mean(CASE, m).value for m in (*LEARNERS, *FORMS)), key=lambda v: -1 if np.isnan(v) else v)
    half = (OTHERS["max-mig"] + OTHERS[TRUTH]) / 2
    return [
        *_claims(results),
        at_least("each is at least as good as its namesake (to half a point)", ahead, -0.005),
        at_least("the best of ours closes half of the gap between 86.5 and 93.0", {"above that": best - half}, 0),
    ]
