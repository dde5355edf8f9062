"""What label-only methods share: checks of the input, starts, and turning an outcome into a Consensus."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from voxpop.engines import em
from voxpop.engines.em import Model
from voxpop.engines.gibbs import Samples, sample
from voxpop.engines.loop import Run
from voxpop.engines.outcome import Status
from voxpop.engines.starts import beliefs_to_start
from voxpop.errors import BadInput, warn
from voxpop.numerics.simplex import first_best
from voxpop.options import WithOptions, anything, at_least, option, whole
from voxpop.results import Consensus, Evidence
from voxpop.votes import Batch, Votes


@dataclass(frozen=True)
class Method(WithOptions):
    """A frozen bag of options; ``infer`` is pure."""

    def infer(self, votes: Votes, gold: Any = None) -> Consensus:
        """The truth behind the votes. ``gold`` (task -> label, or a frame) is taken as certain."""
        if not isinstance(votes, Votes):
            raise BadInput(
                f"infer takes Votes, not {type(votes).__name__}: make them with vp.read or vp.Votes.from_frame"
            )
        if votes.K == 0:
            raise BadInput("there are no votes and no classes: nothing to infer")
        _warn_of_the_unknowable(votes)
        known = votes.gold(gold)
        return replace(self._infer(votes, known), gold=known)

    @abstractmethod
    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus: ...

    @property
    def name(self) -> str:
        return type(self).__name__

    def consensus(self, votes: Votes, belief: Tensor, status: Status, **found: Any) -> Consensus:
        """A result with this method's name and options on it."""
        return Consensus(votes, belief.detach().cpu(), self.name, status, options=self.plain(), **found)


def _warn_of_the_unknowable(votes: Votes) -> None:
    if votes.V == 0:
        warn("there are no votes: every belief is the prior")
    elif votes.K == 1 or int(votes.label.min()) == int(votes.label.max()):
        warn(f"every vote says '{votes.classes[int(votes.label[0])]}': how good the workers are cannot be known")
    elif int(votes.worker.min()) == int(votes.worker.max()):
        warn(f"all votes are by worker '{votes.workers[int(votes.worker[0])]}': how good they are cannot be known")


@dataclass(frozen=True)
class Iterative(Method):
    """Options that every iterative method has."""

    max_iter: int = option(100, whole(1), "iterations at most")
    tol: float = option(1e-6, at_least(0), "stop when an iteration gains less than this per vote; 0 never stops early")
    seed: int = option(0, whole(0), "seed of everything random")
    device: str = option("cpu", anything(), "where to compute: cpu, cuda, cuda:1, ...")


@dataclass(frozen=True)
class Ascent(Iterative):
    """A channel and a prior, found by EM or mean-field VB from one or several starts."""

    starts: int = option(
        1, whole(1), "starts: the first from the majority (or start=), the rest random; the best bound is kept"
    )
    start: Any = option(None, anything(), "a belief to start from: a Consensus, or N,K numbers")

    @abstractmethod
    def model(self, votes: Votes, gold: Tensor | None) -> Model: ...

    def first_theta(self, votes: Votes) -> Any:
        """Parameters of the channel to start from, in place of a belief."""
        return None

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        batch = votes.whole.to(self.device)
        model = self.model(votes, None if gold is None else gold.to(self.device))
        best, notes = self._best_run(votes, batch, model)
        return self.finish(votes, batch, model, best, notes)

    def _best_run(self, votes: Votes, batch: Batch, model: Model) -> tuple[Run[em.State], tuple[str, ...]]:
        """Of several starts the one with the best bound; the first of those that tie (within 1e-9 of its size)."""
        runs = []
        for number, belief in enumerate(beliefs_to_start(votes, model.gold, self.start, self.starts, self.seed)):
            theta = self.first_theta(votes) if number == 0 else None
            if number == 0 and theta is None and self.start is not None:
                theta = em.settle(batch, model, belief.to(self.device))
            runs.append(
                em.fit(
                    batch,
                    model,
                    belief.to(self.device),
                    max_iter=self.max_iter,
                    tol=self.tol,
                    stage=self.name,
                    theta=theta,
                )
            )
        top = max(run.bound for run in runs)
        near = [i for i, run in enumerate(runs) if run.bound >= top - 1e-9 * abs(top)]
        best = runs[near[0] if near else 0]
        if len(runs) == 1:
            return best, ()
        tied = f"; {len(near)} starts tie for it" if len(near) > 1 else ""
        bounds = ", ".join(f"{run.bound:.6g}" for run in runs)
        return best, (f"kept start {near[0] + 1 if near else 1} of {len(runs)} by the bound ({bounds}){tied}",)

    def finish(self, votes: Votes, batch: Batch, model: Model, run: Run[em.State], notes: tuple[str, ...]) -> Consensus:
        belief, theta = run.state.belief, run.state.theta
        table = model.channel.table(theta)
        return self.consensus(
            votes,
            belief,
            judged(run.status, votes, belief.cpu()),
            history=run.history,
            fitted_table=None if table is None else table.cpu(),
            evidence=Evidence.of_channel(model.channel, theta, log_prior(model, run.state, votes.K)),
            notes=notes,
        )


@dataclass(frozen=True)
class MeanFieldAscent(Ascent):
    """Mean-field VB. Its belief is overconfident by nature, so confidence is read from a short Gibbs run.

    The run starts at the mean field's optimum and samples the same model (docs/fidelity.md has the numbers).
    """

    sweeps: int = option(100, whole(10), "Gibbs sweeps from the optimum, for the confidence (a fifth is burn-in)")

    def finish(self, votes: Votes, batch: Batch, model: Model, run: Run[em.State], notes: tuple[str, ...]) -> Consensus:
        found = super().finish(votes, batch, model, run, notes)
        drawn = self.sampled(batch, model, run)
        return replace(found, sure=drawn.belief.cpu(), accuracy_samples=drawn.accuracy.cpu())

    def sampled(self, batch: Batch, model: Model, run: Run[em.State]) -> Samples:
        return sample(
            batch,
            model,
            run.state.belief,
            run.state.theta,
            sweeps=self.sweeps,
            burn_in=self.sweeps // 5,
            chains=1,
            seed=self.seed,
        )


def log_prior(model: Model, state: em.State, classes: int) -> Tensor:
    return model.prior.logp(state.pi).expand(classes).cpu()


def judged(status: Status, votes: Votes, belief: Tensor) -> Status:
    """Degenerate where the answer is one class although the majority names several."""
    if votes.N < 10:
        return status
    label, _ = first_best(belief)
    majority, _ = first_best(votes.whole.counts())
    one = int(label.min()) == int(label.max())
    return Status.DEGENERATE if one and int(majority.min()) != int(majority.max()) else status


def left_out(table: Tensor) -> Evidence:
    """Evidence of a sampler or an average: a vote is left out by Bayes' rule with the mean confusion matrices."""
    log = table.clamp_min(torch.finfo(table.dtype).tiny).log().transpose(1, 2).contiguous()
    return Evidence("average", {"log": log}, torch.zeros(table.shape[1]))
