"""What another vote on a task is worth, one number a task. More is worth more.

[Se09] Settles 2009, "Active learning literature survey": entropy and margin.
[Ho11] Houlsby, Huszar, Ghahramani, Lengyel 2011, "Bayesian active learning by disagreement": BALD.
[FP10] Frazier, Powell 2010, "Paradoxes in learning and the marginal value of information": looking several votes ahead.

``right`` is the chance that the vote to come is right (a number, or one a task); wrong labels are alike. A chance
below 1/K counts as 1/K: a vote that we would have to turn round is not one to ask for.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import factorial, prod

import torch
from torch import Tensor

from voxpop.numerics import simplex
from voxpop.numerics.simplex import normalise

Chance = float | Tensor
BLOCK = 1 << 14  # tasks at a time
TOP = 3  # classes that votes decide among


def entropy(belief: Tensor) -> Tensor:
    """How unsure we are of the truth, in nats: N. With the mean of dropout samples, eq. 10 of paper 002."""
    return simplex.entropy(belief)


def margin(belief: Tensor) -> Tensor:
    """1 - (belief in the best class - belief in the second): N."""
    if belief.shape[1] == 1:
        return belief.new_zeros(belief.shape[0])
    best, second = belief.topk(2, 1).values.unbind(1)
    return 1 - (best - second)


def bald(samples: Tensor) -> Tensor:
    """What the truth would tell about the model ([Ho11] eq. 2): entropy of the mean less the mean entropy. N."""
    return beyond(simplex.entropy(samples.mean(0)), simplex.entropy(samples).mean(0))  # samples: T,N,K


def information(belief: Tensor, right: Chance) -> Tensor:
    """What a vote tells about the truth, in nats: I(vote; truth) = H(vote) - H(vote | truth). N."""
    right = usable(right, belief)
    return beyond(simplex.entropy(said(belief, right)), noise(right, belief.shape[-1]))


def error_reduction(belief: Tensor, right: Chance, ahead: int = 1) -> Tensor:
    """By how much a vote is expected to raise the chance that the consensus is right: N.

    A single vote often cannot turn a label round, and would be worth nothing although a few could. So
    up to ``ahead`` votes are looked at, and it is the best of their gains a vote that counts ([FP10], KG(*)).
    Votes decide among the classes believed most: exact for K of 2 and 3, else a lower bound.
    """
    if belief.shape[1] == 1:
        return belief.new_zeros(belief.shape[0])
    right = usable(right, belief)
    blocks = zip(torch.split(belief, BLOCK), torch.split(right, BLOCK), strict=True)
    return torch.cat([_best_gain(b.double(), r.double(), ahead) for b, r in blocks]).float()


def _best_gain(belief: Tensor, right: Tensor, ahead: int) -> Tensor:
    best = belief.topk(min(belief.shape[1], TOP), 1).values.t()  # L,B
    others = belief.shape[1] - len(best)
    wrong = (1 - right) / (belief.shape[1] - 1)  # B
    out = belief.new_zeros(len(belief))
    for votes in range(1, ahead + 1):
        joint = [best * right**count * wrong ** (votes - count) for count in range(votes + 1)]  # L,B by its votes
        correct = torch.zeros_like(out)
        for counts, ways in outcomes(votes, len(best), others):
            found = joint[counts[0]][0]
            for place, count in enumerate(counts[1:], 1):
                found = torch.maximum(found, joint[count][place])
            correct += ways * found
        out = torch.maximum(out, beyond(correct, best[0]) / votes)
    return out


@cache
def outcomes(votes: int, classes: int, others: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """How votes may fall on some classes, the rest on others: the counts, and the number of ways to get them."""
    found = []
    for counts in product(range(votes + 1), repeat=classes):
        rest = votes - sum(counts)
        if rest >= 0 and (others or not rest):
            ways = factorial(votes) // prod(map(factorial, (*counts, rest))) * others**rest
            found.append((counts, ways))
    return tuple(found)


def label_or_relabel(samples: Tensor, evidence: Tensor, right: Chance, teach: float = 1.0, own: float = 1.0) -> Tensor:
    """A vote on a doubtful old task against one on a new task, on one scale: N, in nats.

    ``samples`` (T,N,K) are predictions by draws of the model, ``evidence`` (N,K) is the log-likelihood of the votes
    that a task has (zeros for none). What a vote tells of the truth is what it tells of the model, of use
    for all other tasks, and what it tells of this task alone: I(vote; truth) = I(vote; model) + I(vote; truth | model).
    ``teach`` and ``own`` weigh the two. Old votes make the draws of the model agree, so that another vote
    teaches less; whether the task itself still needs it is the second part.
    """
    right = usable(right, samples[0])
    joint = samples * (evidence - evidence.amax(1, keepdim=True)).exp()  # T,N,K
    weight = joint.sum(2)
    weight = weight / weight.sum(0).clamp_min(torch.finfo(weight.dtype).tiny)  # T,N: p(draw | votes of this task)
    vote = said(normalise(joint), right)  # T,N,K
    given = (weight * simplex.entropy(vote)).sum(0)  # H(vote | model)
    model = beyond(simplex.entropy((weight[:, :, None] * vote).sum(0)), given)
    task = beyond(given, noise(right, samples.shape[2]))
    return teach * model + own * task


def beyond(more: Tensor, less: Tensor) -> Tensor:
    """``more - less``, and zero where rounding may have made it: what is worth nothing is not asked for."""
    gap = more - less
    return torch.where(gap > 16 * torch.finfo(more.dtype).eps * more, gap, 0.0)


def usable(right: Chance, belief: Tensor) -> Tensor:
    """The chance of a right vote for each row of a belief, at least 1/K: N."""
    chance = torch.as_tensor(right, dtype=belief.dtype, device=belief.device).clamp(1 / belief.shape[1], 1)
    return chance.expand(belief.shape[0])


def said(belief: Tensor, right: Tensor) -> Tensor:
    """p(label) of a vote that is right with this chance (the shape of the belief without its classes)."""
    wrong: Tensor = (1 - right) / max(belief.shape[-1] - 1, 1)
    return wrong[..., None] + (right - wrong)[..., None] * belief


def noise(right: Tensor, classes: int) -> Tensor:
    """H(vote | truth)."""
    wrong: Tensor = (1 - right) / max(classes - 1, 1)
    out: Tensor = torch.special.entr(right) + (classes - 1) * torch.special.entr(wrong)
    return out
