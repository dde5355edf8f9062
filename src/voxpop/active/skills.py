"""What we know of workers whose votes were counted right or wrong, and how to choose between the good and the unknown.

[Ag12] Agrawal, Goyal 2012, Thompson sampling; [Ka12] Kaufmann, Cappe, Garivier 2012, "On Bayesian upper confidence
bounds"; the schedule of epsilon is that of paper 003, active crowdsourcing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from voxpop.channels.own_label import own_belief
from voxpop.numerics import dirichlet
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import scatter_sum
from voxpop.votes import Votes

ROUNDS = 20  # of EM for the chances of workers
STRENGTH = (2.0, 200.0)  # how many votes the crowd's average may weigh for one worker
SCHEDULE = ((100, 0.5), (1000, 0.05))  # up to this vote, this chance to explore; the last stands from then on


@dataclass(frozen=True)
class Skills:
    """Each worker's chance of being right: Beta(a, b)."""

    a: Tensor  # M
    b: Tensor  # M
    prior: tuple[float, float] = (1.0, 1.0)  # of a worker of whom nothing is known

    @classmethod
    def of_counts(cls, right: Tensor, wrong: Tensor) -> Skills:
        """Expected numbers of right and wrong votes, added to a prior that is the spread of the crowd's own skills.

        So a worker without votes is taken for one of this crowd. The prior has the crowd's mean, and its
        strength comes from how much more the shares of right votes vary than chance explains (moments).
        """
        right, wrong = right.double(), wrong.double()
        votes = right + wrong  # M
        mean = (right.sum() + 2) / (votes.sum() + 3)  # people are rather right than wrong: Beta(2, 1)
        spread = mean * (1 - mean)
        known = votes > 0
        share = right[known] / votes[known]
        between = (share - mean).square().mean() - (spread / votes[known]).mean() if known.sum() > 1 else spread / 3
        strength = (spread / between.clamp_min(1e-12) - 1).clamp(*STRENGTH)
        a, b = float(mean * strength), float((1 - mean) * strength)
        return cls(right + a, wrong + b, (a, b))

    @classmethod
    def of_votes(cls, votes: Votes, belief: Tensor) -> Skills:
        """Counts of right and wrong votes, each worker's by what the others say of the same tasks, by EM.

        The belief (N,K) is freed of a vote by Bayes' rule, as if it were one of the crowd's average worker. A worker
        whom the others contradict so is not thought right because nobody else voted there.
        """
        batch, K = votes.whole, max(votes.K, 2)
        own, count = own_belief(batch, belief).double(), batch.worker_offsets.diff()  # V, M
        mean = float(own.mean().clamp(0.01, 0.99)) if len(own) else 0.5  # of the crowd
        against = (1 - mean) / (K - 1) / mean  # what a vote says against the other classes
        others = _posterior(own, against)  # V: the belief in its label without it
        chance = torch.full((votes.M,), mean, dtype=own.dtype)
        for _ in range(ROUNDS):
            odds = chance * (K - 1) / (1 - chance)
            right = scatter_sum(_posterior(others, odds[batch.worker.long()]), batch.worker, votes.M).double()
            chance = (right + 2 * mean) / (count + 2)
        return cls.of_counts(right, count - right)

    def with_newcomers(self, count: int) -> Skills:
        """``count`` workers more, of whom nothing is known but the crowd they come from."""
        a, b = (
            torch.cat([part, part.new_full((count,), by)])
            for part, by in zip((self.a, self.b), self.prior, strict=True)
        )
        return replace(self, a=a, b=b)

    @property
    def mean(self) -> Tensor:
        return (self.a / (self.a + self.b)).float()  # M

    def thompson(self, seed: int, step: int, draws: int = 1) -> Tensor:
        """Draws for each worker: who may be good gets a chance in proportion ([Ag12]). M,S."""
        rng = generator(seed, "thompson", step)
        rows = torch.stack([self.a, self.b], 1).repeat(draws, 1)
        return dirichlet.sample(rows, rng)[:, 0].float().view(draws, -1).t()

    def upper(self, step: int) -> Tensor:
        """The quantile 1 - 1/step of each worker's Beta: doubt counts in a worker's favour ([Ka12]). M."""
        from scipy.special import betaincinv  # type: ignore[import-untyped]

        level = 1 - 1 / max(step, 2)
        return torch.from_numpy(betaincinv(self.a.double().numpy(), self.b.double().numpy(), level)).float()


def _posterior(p: Tensor, odds: Tensor | float) -> Tensor:
    """A probability after evidence that multiplies its odds."""
    return p * odds / (p * odds + 1 - p).clamp_min(torch.finfo(p.dtype).tiny)


def exploration(step: int, schedule: tuple[tuple[int, float], ...] = SCHEDULE) -> float:
    """The chance that vote number ``step`` (from 1) goes to a worker at random."""
    for until, epsilon in schedule:
        if step <= until:
            return epsilon
    return schedule[-1][1]


def explored(count: int, step: int, seed: int) -> int:
    """How many of ``count`` votes from number ``step`` on go to workers at random."""
    chance = torch.tensor([exploration(step + place) for place in range(count)])
    return int((torch.rand(count, generator=generator(seed, "explore", step)) < chance).sum())
