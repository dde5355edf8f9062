"""Li, Huang and Chen, "Crowdsourcing Aggregation with Deep Bayesian Learning": figures 3 and 4.

The paper has 22 tasks of two unequal classes: each label against the rest, nine workers, a fraction of their votes
observed. So here: each seed takes another class of the data against all others. Where people have voted on the data,
their votes are taken, of the nine busiest; else nine workers with an F1 score of 0.7 to 0.8 vote on everything.
As in the paper the k tasks that rank highest are called positive, k the number of true positives (section 4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from voxpop.bench.claims import Claim, at_least
from voxpop.bench.data import Data, load
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Results
from voxpop.bench.trials import Trial
from voxpop.methods.registry import LEARNERS, make
from voxpop.results.ranking import rank_scores
from voxpop.simulate.subsets import busiest, observed
from voxpop.votes import Axis, Votes

OURS, NO_NETWORK = "bayes-dgc", "bayes-gc"
VOTES_ONLY = ("majority-vote", "dawid-skene", NO_NETWORK)
LITERAL = f"{OURS}, eq. 4 as it stands"  # class frequencies count twice, in pi and in the network
METHODS = (*VOTES_ONLY, "raykar", LITERAL, OURS)
FRACTIONS = ("0.1", "0.2", "0.3", "0.5", "0.7", "1")
FEW = ("0.1", "0.2", "0.3")
WORKERS = 9


def parts(settings: Settings) -> tuple[Part, ...]:
    return (
        Part(
            "fractions",
            "figures 3 and 4: one class against the rest, by the fraction of the votes that is observed",
            ("0.1", "0.3", "1") if settings.quick else FRACTIONS,
            METHODS,
            _cell,
            ("accuracy", "f1", "auc"),
            "fraction of the votes",
            claims=_claims,
        ),
    )


EXPERIMENT = Experiment(
    "bayesdgc",
    "Li, Huang and Chen: BayesDGC",
    "One class against the rest, when only a fraction of the votes is observed.",
    parts,
    defaults=Settings(seeds=10),
)


# -- cells ------------------------------------------------------------------------------------


def _cell(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    trial = _trial(settings, float(case), seed)
    if method == LITERAL or method in LEARNERS:
        options: dict[str, Any] = {"epochs": settings.epochs, "seed": seed}
        if method == LITERAL:
            method, options["ratio"] = OURS, False
        if method != "raykar":  # which is a logistic regression
            options["model"] = "mlp:100" if settings.model == "mlp" else settings.model  # section 4
        found = make(method, **options).fit(trial.data.x, trial.votes).consensus_
    else:
        found = make(method).infer(trial.votes)
    return rank_scores(found.belief[:, 1], torch.from_numpy(trial.data.y))


def _trial(settings: Settings, fraction: float, seed: int) -> Trial:
    """The observed votes on one class against the rest."""
    data = load(settings.on, settings.folder, seed)
    one = one_against_rest(data, seed % data.K) if data.K > 2 else data
    if one.votes is not None:
        return Trial(one, observed(busiest(one.votes, WORKERS), fraction, seed))
    return Trial.voted(one, "partly-observed", seed, workers=WORKERS, fraction=fraction)


def one_against_rest(data: Data, label: int) -> Data:
    votes = data.votes
    if votes is not None:
        two = (votes.label == label).int()
        votes = Votes(votes.task, votes.worker, two, votes.tasks, votes.workers, Axis.counting("classes", 2))
    y, y_test = ((truth == label).astype(int) for truth in (data.y, data.y_test))
    return replace(data, name=f"{data.name}, {label} against the rest", y=y, y_test=y_test, K=2, votes=votes)


# -- claims -----------------------------------------------------------------------------------


def _claims(results: Results) -> list[Claim]:
    few = [case for case in FEW if results.values(case, OURS, "f1")]

    def ahead(measure: str) -> dict[str, float]:
        return {f"{other} {c}": results.gap(c, OURS, other, measure).value for other in VOTES_ONLY for c in few}

    rises = {
        method: results.mean("1", method, "accuracy").value - results.mean("0.1", method, "accuracy").value
        for method in METHODS
    }
    return [
        at_least(
            "BayesDGC is more accurate than methods without features when few votes are observed", ahead("accuracy"), 0
        ),
        at_least("likewise by F1", ahead("f1"), 0),
        at_least("every method gains from more votes", rises, 0),
    ]
