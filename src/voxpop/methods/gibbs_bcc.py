"""BCC: Kim, Ghahramani (2012), Bayesian classifier combination, by Gibbs sampling. The sampling twin of BayesGC."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.engines.em import Model
from voxpop.engines.gibbs import sample
from voxpop.engines.loop import Info
from voxpop.engines.outcome import Status
from voxpop.engines.starts import shares
from voxpop.methods.base import Iterative, judged, left_out
from voxpop.options import above, at_least, option, pair_above, whole
from voxpop.priors import DirichletClasses
from voxpop.results import Consensus
from voxpop.votes import Votes


@dataclass(frozen=True)
class GibbsBCC(Iterative):
    """The model of BayesGC, sampled: confidence and intervals are those of the model, not of an approximation."""

    max_iter: int = option(500, whole(20), "sweeps of each chain; a fifth is burn-in")
    tol: float = option(0.05, at_least(0), "the chains agree when R-hat is below 1 + tol")
    chains: int = option(2, whole(1), "chains, each with a seed of its own")
    alpha: float = option(1.0, above(0), "Dirichlet parameter of each class")
    beta: tuple[float, float] = option(
        (2.0, 1.0), pair_above(0), "Dirichlet parameters of a row: right, and wrong shared by the wrong labels"
    )

    def _infer(self, votes: Votes, gold: Tensor | None) -> Consensus:
        batch = votes.whole.to(self.device)
        rows = prior_rows(votes.K, *self.beta).to(self.device)
        gold = None if gold is None else gold.to(self.device)
        drawn = sample(
            batch,
            Model(DirichletConfusion(rows), DirichletClasses(self.alpha), gold),
            shares(votes, gold).to(self.device),
            {},
            sweeps=self.max_iter,
            burn_in=self.max_iter // 5,
            chains=self.chains,
            seed=self.seed,
        )
        assert drawn.table is not None
        table, belief = drawn.table.cpu(), drawn.belief.cpu()
        agree = self.tol > 0 and drawn.r_hat <= 1 + self.tol
        status = Status.CONVERGED if agree else Status.OUT_OF_STEPS
        return self.consensus(
            votes,
            belief,
            judged(status, votes, belief),
            history=tuple(Info(value) for value in drawn.trace),
            fitted_table=table,
            accuracy_samples=drawn.accuracy.cpu(),
            evidence=left_out(table),
            notes=(f"R-hat of the log likelihood {drawn.r_hat:.3f} over {self.chains} chains",),
        )
