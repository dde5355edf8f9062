"""The default: models of the crowd averaged by how well each foretells votes that were held out.

No single model wins on every crowd. So each candidate is fitted without some of the votes, and asked for
the probability of those. The weights are the mixture that foretells them best (stacking of predictive
distributions, Yao, Vehtari, Simpson, Gelman 2018). Then the candidates that matter are fitted to all
votes, sampled, and their beliefs averaged with these weights. No truth is used anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from voxpop.channels.base import Channel
from voxpop.engines import em
from voxpop.engines.em import Model
from voxpop.engines.events import emit
from voxpop.engines.gibbs import Samples, sample
from voxpop.engines.loop import Run
from voxpop.engines.outcome import Status
from voxpop.engines.starts import shares
from voxpop.methods.base import Ascent, Iterative, judged, left_out
from voxpop.methods.hierarchical import HierarchicalDawidSkene
from voxpop.methods.mace import MACE
from voxpop.methods.mean_field import MeanField
from voxpop.numerics.seeds import generator
from voxpop.numerics.simplex import normalise
from voxpop.options import at_least, fraction, option, whole
from voxpop.results import Consensus
from voxpop.votes import Batch, Votes

FEW_VOTES = 20_000  # up to here every vote is held out once, in FOLDS parts; above, one part of at most so many
FOLDS = 5
ENOUGH = 0.05  # a candidate with less weight than this is left out
SETTLED = 1.1  # R-hat of a model's chain, where its ascent ran out of steps first
SWEEPS_OF_VOTES = 24_000_000  # votes or parameters to resample: 24 to 400 sweeps that the candidates share
LEAST_SWEEPS = 6  # of a candidate
MOST_CELLS = 1 << 23  # parameters of a model: with more, sampling them would take minutes
FEW_CELLS = 1 << 18  # as many never matter
CELLS_A_VOTE = 20  # a model with more cannot learn them, and would take longer than all others together


def consensus(votes: Votes, gold: Any = None, **options: Any) -> Consensus:
    """The truth behind the votes by the default method, which decides by held-out votes what to believe.

    ``gold`` (task -> label, or a frame) is taken as certain. Options: those of ``Default``.
    """
    return Default(**options).infer(votes, gold)


def candidates(votes: Votes) -> Mapping[str, Ascent]:
    """The models that are averaged, from rich to plain; those whose parameters are not too many for these votes."""
    matrices: dict[str, Ascent] = {
        "hierarchical-dawid-skene": HierarchicalDawidSkene(),
        "hierarchical-dawid-skene, classes alike": HierarchicalDawidSkene(class_prior="uniform"),
    }
    vectors: dict[str, Ascent] = {
        "mace": MACE(class_prior="learned"),
        "two-coin": MeanField(workers_prior="two-coin", class_prior="learned"),
    }
    coins: dict[str, Ascent] = {
        "one-coin": MeanField(workers_prior="one-coin", class_prior="learned"),
        "one-coin, classes alike": MeanField(workers_prior="one-coin"),
    }
    most = min(MOST_CELLS, max(FEW_CELLS, CELLS_A_VOTE * votes.V))
    sizes = ((matrices, votes.M * votes.K**2), (vectors, votes.M * votes.K), (coins, 0))
    return {name: model for models, cells in sizes if cells <= most for name, model in models.items()}


@dataclass(frozen=True)
class Default(Iterative):
    """Averages hierarchical Dawid-Skene, MACE, two coins and one coin by held-out votes; confidence is sampled."""

    tol: float = option(
        1e-5, at_least(0), "a fit stops when an iteration gains less than this per vote; 0 never stops early"
    )
    held_out: float = option(
        0.2, fraction(high_included=False), "share of the votes that is held out to weigh the models, up to 20,000"
    )
    sweeps: int = option(
        0, whole(0), "Gibbs sweeps, shared by weight; 0: between 24 and 400, fewer the more votes there are"
    )

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        gold = None if gold is None else gold.to(self.device)
        models = candidates(votes)
        weights, scores, fitted = self._weigh(votes, gold, models)
        kept = {name: w for name, w in weights.items() if w >= ENOUGH}
        total = sum(kept.values())
        kept = {name: w / total for name, w in kept.items()}
        best = max(kept, key=lambda name: kept[name])
        batch, start = votes.whole.to(self.device), shares(votes, gold).to(self.device)
        runs, drawn = {}, {}
        for number, name in enumerate(kept):
            emit(f"fitting {name}", number, len(kept))
            model = models[name].model(votes, gold)
            runs[name] = fitted.get(name) or self._fit(batch, model, start)
            drawn[name] = self._sample(batch, model, runs[name].state, kept[name])
        belief = _mix(kept, {name: d.belief for name, d in drawn.items()})
        belief = normalise(belief).cpu()
        table = None
        if all(d.table is not None for d in drawn.values()):
            table = _mix(kept, {name: d.table for name, d in drawn.items() if d.table is not None}).cpu()
        settled = all(runs[n].status is Status.CONVERGED or drawn[n].r_hat <= SETTLED for n in kept)
        return self.consensus(
            votes,
            belief,
            judged(Status.CONVERGED if settled else Status.OUT_OF_STEPS, votes, belief),
            history=runs[best].history,
            fitted_table=table,
            accuracy_samples=_mixed_samples(kept, {name: d.accuracy.cpu() for name, d in drawn.items()}),
            evidence=None if table is None else left_out(table),
            notes=_in_words(kept, scores),
        )

    # -- weighing the models ---------------------------------------------------------------------

    def _weigh(
        self, votes: Votes, gold: Tensor | None, models: Mapping[str, Ascent]
    ) -> tuple[dict[str, float], dict[str, float], dict[str, Run[em.State]]]:
        """Stacking weights of the models, their mean log probability of a held-out vote, and the fits, if one each."""
        equal = {name: 1 / len(models) for name in models}
        parts = self._parts(votes)
        if not parts:
            return equal, {}, {}
        foretold: dict[str, list[Tensor]] = {name: [] for name in models}
        fitted: dict[str, Run[em.State]] = {}
        for number, hidden in enumerate(parts):
            known, rest = votes.select(~hidden), votes.select(hidden).whole.to(self.device)
            batch, start = known.whole.to(self.device), shares(known, gold).to(self.device)
            for place, (name, method) in enumerate(models.items()):
                emit("weighing models", number * len(models) + place, len(parts) * len(models))
                model = method.model(known, gold)
                fitted[name] = self._fit_to_known(batch, model, start)
                foretold[name].append(_foretell(model.channel, fitted[name].state, rest))
        logs = torch.stack([torch.cat(parts) for parts in foretold.values()], 1).double()  # H,C
        weights = dict(zip(models, stacking_weights(logs).tolist(), strict=True))
        scores = dict(zip(models, logs.mean(0).tolist(), strict=True))
        return weights, scores, fitted if len(parts) == 1 else {}

    def _parts(self, votes: Votes) -> list[Tensor]:
        """Which votes are hidden, in each part; none where there are too few votes to learn anything from them."""
        if self.held_out == 0 or votes.V < 10 or votes.K < 2:
            return []
        luck = torch.rand(votes.V, generator=generator(self.seed, "held out"))
        if votes.V > FEW_VOTES:
            return [luck < min(self.held_out, FEW_VOTES / votes.V)]
        part = (luck * FOLDS).int()
        return [part == number for number in range(FOLDS) if bool((part == number).any())]

    def _fit_to_known(self, batch: Batch, model: Model, start: Tensor) -> Run[em.State]:
        steps, tol = min(self.max_iter, 50), max(self.tol, 1e-5)
        return em.fit(batch, model, start, max_iter=steps, tol=tol, stage="weighing models")

    # -- fitting those that matter ---------------------------------------------------------------

    def _fit(self, batch: Batch, model: Model, start: Tensor) -> Run[em.State]:
        return em.fit(batch, model, start, max_iter=self.max_iter, tol=self.tol, stage="fitting models")

    def _sample(self, batch: Batch, model: Model, state: em.State, weight: float) -> Samples:
        """Sweeps over all votes, in proportion to the model's weight: so the average's error is least."""
        total = self.sweeps or min(400, max(24, SWEEPS_OF_VOTES // max(batch.V, batch.M * batch.K, 1)))
        sweeps = max(LEAST_SWEEPS, round(total * weight))
        return sample(
            batch,
            model,
            state.belief,
            state.theta,
            sweeps=sweeps,
            burn_in=sweeps // 5,
            chains=1,
            seed=self.seed,
        )


def _foretell(channel: Channel, state: em.State, rest: Batch) -> Tensor:
    """log probability of each vote of ``rest`` by a model that was fitted to the other votes: H."""
    given = channel.likelihood(rest, state.theta)  # H,K
    return (state.belief[rest.task.long()] * given).sum(1).log().cpu()


def stacking_weights(logs: Tensor, rounds: int = 200) -> Tensor:
    """The mixture of C models that gives H held-out votes the highest probability, by EM: C. ``logs`` is H,C.

    Each model has one vote more in its favour than it earned: a few held-out votes should not rule a model out.
    """
    p = (logs - logs.amax(1, keepdim=True)).exp()  # H,C
    held_out, models = p.shape
    weight = torch.full((models,), 1 / models, dtype=logs.dtype)
    for _ in range(rounds):
        earned = weight * (p.t() @ (1 / (p @ weight)))  # C: of H votes
        weight = (earned + 1) / (held_out + models)
    return weight


def _mix(weights: Mapping[str, float], values: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([weights[name] * value for name, value in values.items()]).sum(0)


def _mixed_samples(weights: Mapping[str, float], samples: Mapping[str, Tensor]) -> Tensor:
    """Draws of the workers' accuracy, from each model as many as its weight says: T,M."""
    size = min(len(drawn) / weights[name] for name, drawn in samples.items())
    picked = []
    for name, drawn in samples.items():
        count = max(1, round(weights[name] * size))
        picked.append(drawn[torch.linspace(0, len(drawn) - 1, count).round().long()])
    return torch.cat(picked)


def _in_words(weights: Mapping[str, float], scores: Mapping[str, float]) -> tuple[str, ...]:
    ranked = sorted(weights.items(), key=lambda item: -item[1])
    average = ", ".join(f"{name} {weight:.0%}" for name, weight in ranked)
    if not scores:
        return (f"average of {average}: no votes were held out to weigh the models by",)
    foretold = ", ".join(f"{name} {score:.3f}" for name, score in sorted(scores.items(), key=lambda item: -item[1]))
    return (
        f"average of {average}, weighed by how well each foretells votes that were held out",
        f"mean log probability of a held-out vote: {foretold}",
    )
