"""Asking: paper 002 (Yang, Drake, Damianou and Maarek), figure 5, and paper 003's test of active crowdsourcing.

Figure 5: tasks at random or by the network's doubt, workers at random or by their expertise, or both chosen. Random
asking goes on for longer, to see how many votes it needs for what choosing both has reached. Where people have voted
on the data only their votes can be asked for; else a simulated crowd answers anything.

Paper 003: without features; the most doubtful task, the best worker but for a share epsilon at random, 0.5 for the
first 100 votes and 0.05 after; stepwise EM with lambda_t = t^-0.6 against EM from the start after every round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.bench.claims import Claim, at_least
from voxpop.bench.data import load
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Results
from voxpop.loop.rehearsal import STRATEGIES, ByFeatures, ByVotes, Guide, Pool, Strategy, rehearse, votes_to_reach
from voxpop.methods.learning.dalc import DALC
from voxpop.methods.learning.targeted import Targeted
from voxpop.methods.online import OnlineDawidSkene
from voxpop.methods.registry import make
from voxpop.votes import Votes

RANDOM, ITEM, WORKER, BOTH = STRATEGIES
MARGIN = "both, by margin"
DRAWN = "both, by margin, Thompson"
METHODS = {name: (strategy, "entropy", "mean") for name, strategy in STRATEGIES.items()} | {  # not in the paper:
    MARGIN: (STRATEGIES[BOTH], "margin", "mean"),
    DRAWN: (STRATEGIES[BOTH], "margin", "thompson"),
}
CHOSEN = (100, 200, 300, 400, 500)  # votes after each round
FURTHER = (800, 1200, 2000)  # where random asking goes on
QUICK, QUICKLY = (100, 200, 300), (400, 600)
PEOPLE = "people"
UNVOTED = ("digits", "fashion")  # data on which nobody has voted
SIMULATED = ("believable", "expertise")  # crowds there
MEASURES = ("classifier", "consensus")
MOST = 2000  # tasks of a pool
CHEAP: dict[str, Any] = {
    "batch_size": 16,
    "lr": 2e-3,
    "inner_steps": 5,
    "samples": 10,
}  # it is trained anew after every round

TASKS, ROUND, TOLD = 400, 100, tuple(range(200, 1601, 200))  # of paper 003's test
GREEDY = Strategy(tasks=True, workers=True)
ONLINE = {
    "stepwise EM, random": (True, STRATEGIES[RANDOM]),
    "EM, random": (False, STRATEGIES[RANDOM]),
    "stepwise EM, active": (True, GREEDY),
    "EM, active": (False, GREEDY),
}


def parts(settings: Settings) -> tuple[Part, ...]:
    chosen, further = (QUICK, QUICKLY) if settings.quick else (CHOSEN, FURTHER)
    crowds = SIMULATED if settings.on in UNVOTED else (PEOPLE,)
    told = TOLD[:3] if settings.quick else TOLD
    return (
        *(
            Part(
                crowd,
                f"figure 5: {settings.on}, answered by {PEOPLE if crowd == PEOPLE else f'a crowd, {crowd}'}",
                tuple(map(str, (*chosen, *further))),
                tuple(METHODS),
                partial(_curve, crowd, chosen, further),
                MEASURES,
                "votes",
                together=True,
                claims=partial(_claims, chosen),
            )
            for crowd in crowds
        ),
        Part(
            "online",
            "paper 003's test: stepwise EM against EM, votes at random and asked for",
            tuple(map(str, told)),
            tuple(ONLINE),
            partial(_online, told),
            ("inference",),
            "votes",
            together=True,
            claims=_claims_online,
        ),
    )


EXPERIMENT = Experiment(
    "active",
    "Yang, Drake, Damianou and Maarek: DALC, figure 5; Ibrahim et al.: active crowdsourcing",
    "Which item next, and whom: votes saved by choosing both.",
    parts,
    defaults=Settings(seeds=10, epochs=15),
    quick=Settings(seeds=2, epochs=10, quick=True),
    data=(*UNVOTED, "cifar10n", "labelme"),
)


# -- cells ------------------------------------------------------------------------------------


def _curve(
    crowd: str,
    chosen: tuple[int, ...],
    further: tuple[int, ...],
    settings: Settings,
    case: str,
    method: str,
    seed: int,
) -> dict[str, float]:
    pool = pool_of(settings, crowd, seed)
    ends = (*chosen, *further) if method == RANDOM else chosen
    strategy, score, worker_score = METHODS[method]
    guide = ByFeatures(pool, strategy, learner(settings, seed), score, worker_score, seed=seed)
    return measured(pool, guide, ends, seed)


def measured(pool: Pool, guide: Guide, ends: tuple[int, ...], seed: int) -> dict[str, float]:
    """The scores with so many votes (``ends``), as "score@votes"."""
    points = rehearse(pool, guide, pool.first(ends[0], seed), np.diff(ends).tolist())
    return {f"{name}@{p.votes}": score for p in points if p.votes in ends for name, score in p.scores.items()}


def learner(settings: Settings, seed: int) -> Callable[[], Targeted]:
    return partial(DALC, model=settings.model, epochs=settings.epochs, seed=seed, **CHEAP)


def pool_of(settings: Settings, crowd: str, seed: int) -> Pool:
    """The data's tasks with people's votes, or with those of a simulated crowd in which everyone answers everything."""
    data = load(settings.on, settings.folder, seed).first(MOST)
    test: dict[str, Any] = {"x_test": data.x_test, "y_test": data.y_test}
    if crowd == PEOPLE:
        assert data.votes is not None
        return Pool(data.votes, torch.from_numpy(data.y), data.x, **test)
    return Pool.answered(data.y, data.K, crowd, seed, x=data.x, **test)


def _online(told: tuple[int, ...], settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    data = load(settings.on, settings.folder, seed).first(TASKS)
    if data.votes is None:
        pool = Pool.answered(data.y, data.K, SIMULATED[0], seed)
    else:
        pool = Pool(data.votes, torch.from_numpy(data.y))
    stepwise, strategy = ONLINE[method]
    guide = ByVotes(pool, strategy, Stepwise() if stepwise else make("dawid-skene"), "entropy", "epsilon", seed)
    ends = [end for end in told if end <= pool.votes.V]
    sizes = [ROUND] * (ends[-1] // ROUND - 1)
    points = {point.votes: point.scores for point in rehearse(pool, guide, pool.first(ROUND, seed), sizes)}
    return {f"inference@{end}": points[end]["consensus"] for end in ends if end in points}


@dataclass(eq=False)
class Stepwise:
    """OnlineDawidSkene as a method: only votes that it was not told yet teach it."""

    state: OnlineDawidSkene = field(default_factory=OnlineDawidSkene)

    def infer(self, votes: Votes) -> Found:
        found = self.state.partial_fit(votes).consensus_
        place = found.votes.tasks.codes(votes.tasks.names).cast(pl.Int64).fill_null(-1).to_numpy()
        known = torch.from_numpy(place >= 0)
        belief = torch.full((votes.N, votes.K), 1 / votes.K)
        belief[known] = found.belief[torch.from_numpy(place.copy())[known]]
        return Found(votes, belief)


@dataclass(frozen=True, eq=False)
class Found:
    """As much of a Consensus as asking needs, on the axes of the votes that were told."""

    votes: Votes
    belief: Tensor


# -- claims -----------------------------------------------------------------------------------


def _claims(chosen: tuple[int, ...], results: Results) -> list[Claim]:
    last = str(chosen[-1])

    def ahead(method: str, other: str = RANDOM) -> dict[str, float]:
        """Mean over the rounds after the first, where all are alike."""
        gaps = [results.gap(str(votes), method, other).value for votes in chosen[1:]]
        return {f"{method} - {other}": float(np.mean(gaps))}

    return [
        at_least("choosing both beats random asking (mean of the classifier's accuracy over rounds)", ahead(BOTH), 0),
        at_least("so does choosing the item alone", ahead(ITEM), 0),
        at_least("so does choosing the worker alone", ahead(WORKER), 0),
        at_least("the item matters more than the worker", ahead(ITEM, WORKER), 0),
        at_least("choosing both beats choosing one of them", ahead(BOTH, ITEM) | ahead(BOTH, WORKER), 0),
        at_least("the margin tells doubtful items better than entropy", ahead(MARGIN, BOTH), 0),
        at_least("draws of who is good (Thompson) beat random asking", ahead(DRAWN), 0),
        *(_saved(results, measure, method, last) for method in (BOTH, MARGIN, DRAWN) for measure in MEASURES),
    ]


def _saved(results: Results, measure: str, method: str, last: str) -> Claim:
    text = f"random asking needs more votes for the {measure} that '{method}' reaches with {last}"
    found = needed(results, measure, method, last)
    if found is None:
        return Claim(text, None, "no numbers")
    middle, low, high = found
    return Claim(text, low > float(last), f"{_votes(middle)} (95% interval {_votes(low)} to {_votes(high)})")


def needed(
    results: Results, measure: str, method: str, last: str, other: str = RANDOM
) -> tuple[float, float, float] | None:
    """How many votes ``other`` needs for what a method reaches with its last: by mean curves; a bootstrap over seeds.

    Infinity where it does not get there with all it was given.
    """
    cases = sorted({row.cell.case for row in results.rows if row.cell.method == other}, key=float)
    curves = np.array([results.values(case, other, measure) for case in cases]).T if cases else np.zeros((0, 0))
    level = np.array(results.values(last, method, measure))
    seeds = len(level)
    if not seeds or len(curves) != seeds:
        return None
    votes = [float(case) for case in cases]

    def found(which: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        reached = votes_to_reach(votes, curves[which].mean(0).tolist(), float(level[which].mean()))
        return math.inf if math.isnan(reached) else reached

    rng = np.random.default_rng(0)
    again = sorted(found(rng.integers(0, seeds, seeds)) for _ in range(1000))
    return found(np.arange(seeds)), again[25], again[974]


def _votes(count: float) -> str:
    return "more than it was given" if math.isinf(count) else f"{count:,.0f}"


def _claims_online(results: Results) -> list[Claim]:
    cases = sorted({row.cell.case for row in results.rows if row.measures}, key=float)

    def gaps(method: str, other: str) -> dict[str, float]:
        return {case: results.gap(case, method, other, "inference").value for case in cases[1:]}

    return [
        at_least(
            "stepwise EM is within two points of EM on the same random votes",
            gaps("stepwise EM, random", "EM, random"),
            -0.02,
        ),
        at_least("asking beats random votes, by stepwise EM", gaps("stepwise EM, active", "stepwise EM, random"), 0),
    ]
