"""Where iterations begin: the majority, something given, or random beliefs near the votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.numerics.seeds import generator
from voxpop.numerics.simplex import normalise
from voxpop.votes import Votes


def shares(votes: Votes, gold: Tensor | None = None) -> Tensor:
    """The share of a task's votes for each class (uniform without votes), known truths in place: N,K."""
    belief = normalise(votes.whole.counts())
    if gold is not None:
        known = gold >= 0
        belief[known.cpu()] = torch.nn.functional.one_hot(gold[known].cpu(), votes.K).float()
    return belief


def beliefs_to_start(votes: Votes, gold: Tensor | None, given: Any, count: int, seed: int) -> Iterator[Tensor]:
    """First the given belief or the majority's shares; then shares perturbed at random, each with its own seed."""
    yield shares(votes, gold) if given is None else given_belief(given, votes)
    for number in range(1, count):
        rng = generator(seed, "start", number)
        noise = torch._standard_gamma(votes.whole.counts() + 0.5, rng)
        yield normalise(noise)


def given_belief(given: Any, votes: Votes) -> Tensor:
    """N,K numbers, or a Consensus on the same tasks and classes."""
    belief = torch.as_tensor(getattr(given, "belief", given), dtype=torch.float32)
    if tuple(belief.shape) != (votes.N, votes.K):
        raise BadInput(f"start has the shape {tuple(belief.shape)}; these votes need ({votes.N}, {votes.K})")
    if bool((belief < 0).any()) or not bool(torch.isfinite(belief).all()):
        raise BadInput("start holds a negative or non-finite number; give the belief in each class")
    return normalise(belief)
