"""Ibrahim, Traganitis, Fu and Giannakis, "End-to-End Learning from Crowdsourced Labels": GeoCrowdNet and COINNet.

The tutorial's figures have no numbers in the text; its claims are that GeoCrowdNet (F), made for crowds without class
experts, is ahead there, and that COINNet's score tells the items whose votes follow no confusion matrix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voxpop.bench.claims import Claim, at_least
from voxpop.bench.data import load
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Results
from voxpop.bench.trials import TRUTH, Trial, learn, learner, tested
from voxpop.methods.learning.coinnet import COINNet
from voxpop.methods.registry import make
from voxpop.numerics.seeds import generator
from voxpop.numerics.simplex import normalise
from voxpop.results.ranking import rank_scores
from voxpop.votes import Votes

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "majority": ("two-stage", {"aggregate": "majority-vote"}),
    "ccem": ("crowd-layer", {"simplex": True}),
    "geo-crowdnet (F)": ("geo-crowdnet", {"regularize": "F"}),
    "geo-crowdnet (W)": ("geo-crowdnet", {"regularize": "W"}),
}
F, W, CCEM, ODD, VOTES = "geo-crowdnet (F)", "geo-crowdnet (W)", "ccem", "coinnet", "disagreement"
NOBODY, SOME = "no class experts", "class experts"
WORKERS = 30
PRICE = {"price": 6.0, "volume": 0.0}  # of an odd item, in nats: one price everywhere, to save time


def parts(settings: Settings) -> tuple[Part, ...]:
    return (
        Part(
            "experts",
            "three votes a task of thirty workers, right in 15% to 85%, or experts in some classes who guess in others",
            (NOBODY, SOME),
            (*FORMS, TRUTH),
            _crowd,
            axis="crowd",
            claims=_claims_experts,
        ),
        Part(
            "odd",
            "five votes a task, and a share of items on which everyone answers at random",
            ("0.05", "0.1", "0.2"),
            (ODD, VOTES, CCEM),
            _odd,
            ("auc", "classifier"),
            "share of odd items",
            unit="AUC; accuracy",
            claims=_claims_odd,
        ),
    )


EXPERIMENT = Experiment(
    "crowdnets",
    "Ibrahim, Traganitis, Fu and Giannakis: GeoCrowdNet and COINNet",
    "Crowds without class experts; items whose votes follow no confusion matrix.",
    parts,
)


# -- cells ------------------------------------------------------------------------------------


def _crowd(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    """Three votes a task: a worker labels 10%."""
    data = load(settings.on, settings.folder, seed)
    crowd: dict[str, Any] = {"known": 0.3, "right": 1.0} if case == SOME else {"prototypes": pool(data.K, seed)}
    kind = "class-experts" if case == SOME else "prototypes"
    trial = Trial.voted(data, kind, seed, workers=WORKERS, votes_per_task=3, **crowd)
    name, form = FORMS.get(method, (method, {}))
    return learn(trial, name, settings, seed, **form)


def pool(K: int, seed: int) -> Tensor:
    """Workers of an accuracy from 15% to 85%, whose mistakes are alike, as those of machines are: WORKERS,K,K."""
    rng = generator(seed, "pool")
    right = 0.15 + 0.7 * torch.rand(WORKERS, 1, 1, generator=rng)
    wrong = torch._standard_gamma(torch.full((K, K), 0.3), rng).fill_diagonal_(0) + 1e-6 * (1 - torch.eye(K))
    return right * torch.eye(K) + (1 - right) * normalise(wrong)


def _odd(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    trial = Trial.voted(
        load(settings.on, settings.folder, seed), "one-coin", seed, workers=WORKERS, votes_per_task=5, alpha=(8.0, 2.0)
    )
    votes, odd = with_odd_items(trial.votes, float(case), seed)
    if method == VOTES:
        return _told(1 - make("majority-vote").infer(votes).belief.amax(1), odd)
    trial = replace(trial, votes=votes)
    name, form = FORMS.get(method, (method, PRICE))
    model = learner(trial, name, settings, seed, **form)
    if not isinstance(model, COINNet):
        return tested(trial, model)
    score = model.odd_.sort("task")["score"].to_torch()  # tasks are numbers
    return tested(trial, model) | _told(score, odd)


def _told(score: Tensor, odd: Tensor) -> dict[str, float]:
    """How well a score ranks the odd items above the others."""
    return {"auc": rank_scores(score, odd.int())["auc"]}


def with_odd_items(votes: Votes, share: float, seed: int) -> tuple[Votes, Tensor]:
    """The same votes, but on a share of the items everyone answers at random; and which items those are: N."""
    rng = generator(seed, "odd items")
    odd = torch.zeros(votes.N, dtype=torch.bool)
    odd[torch.randperm(votes.N, generator=rng)[: round(share * votes.N)]] = True
    anything = torch.randint(votes.K, (votes.V,), generator=rng, dtype=torch.int32)
    return replace(votes, label=torch.where(odd[votes.task.long()], anything, votes.label)), odd


# -- claims -----------------------------------------------------------------------------------


def _claims_experts(results: Results) -> list[Claim]:
    ahead = {other: results.gap(NOBODY, F, other).value for other in ("majority", CCEM, W)}
    return [at_least("GeoCrowdNet (F) is ahead where there are no class experts", ahead, 0.0)]


def _claims_odd(results: Results) -> list[Claim]:
    cases = sorted({row.cell.case for row in results.rows})
    found = {case: results.mean(case, ODD, "auc").value for case in cases} or {ODD: np.nan}
    beside = {case: results.gap(case, ODD, VOTES, "auc").value for case in cases} or {ODD: np.nan}
    ahead = {case: results.gap(case, ODD, CCEM).value for case in cases} or {ODD: np.nan}
    return [
        at_least("COINNet ranks the odd items above the rest (AUC over 90)", found, 0.9),
        at_least("better than the votes' disagreement does", beside, 0.0),
        at_least("its classifier is at least as good as CCEM's (to half a point)", ahead, -0.005),
    ]
