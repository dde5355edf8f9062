"""The number that stops inference never moves the wrong way.

200 random problems for each model: classes, sizes, priors and gold differ, some workers and tasks have no votes.
E-steps are float32, so a bound may seem to fall by their rounding: at most 1e-6 a vote.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from voxpop.channels.coin import Coin
from voxpop.channels.confusion import Confusion
from voxpop.channels.dirichlet import DirichletConfusion, prior_rows
from voxpop.channels.glad import SkillAndEase
from voxpop.channels.hierarchical import HierarchicalConfusion
from voxpop.channels.mace import Spamming
from voxpop.channels.prototypes import Prototypes
from voxpop.engines import em, starts
from voxpop.engines.em import Model
from voxpop.priors import DirichletClasses, Frequencies, Uniform
from voxpop.votes import Votes

PROBLEMS = 200
STEPS = 10


def dirichlet(rng: np.random.Generator, K: int) -> DirichletConfusion:
    return DirichletConfusion(prior_rows(K, rng.uniform(0.3, 5), rng.uniform(0.3, 3)))


MODELS: dict[str, Callable[[np.random.Generator, int], tuple]] = {
    "DawidSkene": lambda rng, K: (Confusion(rng.choice([0.01, 1.0])), Frequencies(1.0)),
    "DawidSkene, maximum likelihood": lambda rng, K: (Confusion(0.0), Frequencies(0.0)),
    "OneCoin": lambda rng, K: (Coin(K, True, 1 + rng.uniform(), 1 + rng.uniform()), Uniform()),
    "ConfusionVector": lambda rng, K: (Coin(K, False, 1.5, 1.5), Frequencies(1.0)),
    "GLAD": lambda rng, K: (SkillAndEase(skill_sd=rng.uniform(0.5, 3), ease_sd=rng.uniform(0.3, 3)), Uniform()),
    "MACE": lambda rng, K: (Spamming(*rng.uniform(0.05, 1, 3)), Frequencies(1.0)),
    "BayesGC": lambda rng, K: (dirichlet(rng, K), DirichletClasses(1.1)),
    "MeanField, dirichlet": lambda rng, K: (dirichlet(rng, K), Uniform()),
    "MeanField, one-coin": lambda rng, K: (Coin(K, True, 2.0, 1.0, variational=True), Uniform()),
    "MeanField, two-coin": lambda rng, K: (Coin(K, False, *rng.uniform(0.3, 3, 2), variational=True), Uniform()),
    "MeanField, prototypes": lambda rng, K: (
        Prototypes(torch.tensor(rng.dirichlet(np.ones(K), (6, K)), dtype=torch.float32)),
        DirichletClasses(1.0),
    ),
    "HierarchicalDawidSkene": lambda rng, K: (
        HierarchicalConfusion(prior_rows(K, 2.0, 1.0), rng.choice([0.01, 0.1, 1.0])),
        DirichletClasses(1.0),
    ),
}


def problem(rng: np.random.Generator) -> tuple[Votes, torch.Tensor | None]:
    N, M, K, V = rng.integers(3, 20), rng.integers(1, 7), rng.integers(2, 5), rng.integers(5, 60)
    votes = Votes.from_arrays(
        rng.integers(0, N, V),
        rng.integers(0, M, V),
        rng.integers(0, K, V),
        tasks=range(N),
        workers=range(M),
        classes=range(K),
    )
    gold = {int(i): int(rng.integers(0, K)) for i in rng.choice(N, rng.integers(0, 3), replace=False)}
    return votes, votes.gold(gold) if gold else None


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_never_falls(name: str) -> None:
    rng = np.random.default_rng(list(MODELS).index(name))
    rose = 0.0
    for number in range(PROBLEMS):
        votes, gold = problem(rng)
        model = Model(*MODELS[name](rng, votes.K), gold)
        (begin,) = starts.beliefs_to_start(votes, gold, None, 1, 0)
        if number % 2:  # anywhere, not only near the majority
            begin = torch.tensor(rng.dirichlet(np.ones(votes.K), votes.N), dtype=torch.float32)
        run = em.fit(votes.whole, model, begin, max_iter=STEPS, tol=0, stage=name)
        bounds = np.array([info.bound for info in run.history])
        assert np.isfinite(bounds).all()
        assert np.diff(bounds).min() >= -1e-6 * votes.V, f"problem {number}: {bounds}"
        rose += bounds[-1] - bounds[0]
    assert rose > PROBLEMS * 0.1, "a bound that stands still shows nothing"
