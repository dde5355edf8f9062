"""The seniors and juniors of Max-MIG, with the numbers of its appendix B.1.

Cao, Xu, Kong and Wang, "Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds". Seniors err
independently of each other. In case 4.1 they are alone; in 4.2 there are juniors who always say the first class; in
4.3 there are juniors who copy a senior. (H) has five seniors of high expertise, (L) ten of low expertise.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from voxpop.errors import unknown
from voxpop.simulate import tables
from voxpop.simulate.assignments import Complete
from voxpop.simulate.copying import Copying
from voxpop.simulate.crowd import Crowd
from voxpop.simulate.kind import Setting

CASES = ("independent", "naive", "correlated")  # 4.1, 4.2, 4.3
LEVELS = ("H", "L")
SENIORS: Mapping[str, int] = MappingProxyType({"H": 5, "L": 10})
JUNIORS: Mapping[tuple[str, str], int] = MappingProxyType(
    {("naive", "H"): 5, ("naive", "L"): 15, ("correlated", "H"): 5, ("correlated", "L"): 2}
)
COPIED: Mapping[str, tuple[int, ...]] = MappingProxyType({"H": (0, 0, 2, 2, 2), "L": (0, 2)})  # A and C are copied

# Two classes: how often experts A..E are right in the first and in the second class; (L) is one number for all.
TWO: Mapping[str, tuple[tuple[float, float], ...]] = MappingProxyType(
    {
        "dogs-vs-cats": ((0.8, 0.6), (0.6, 0.6), (0.6, 0.9), (0.7, 0.7), (0.7, 0.6)),  # cat is the first class
        "luna16": ((0.6, 0.9), (0.7, 0.7), (0.9, 0.6), (0.6, 0.7), (0.7, 0.6)),  # benign is the first class
    }
)
TWO_LOW: Mapping[str, float] = MappingProxyType({"dogs-vs-cats": 0.55, "luna16": 0.6})

# Ten classes, in CIFAR-10's order: cat/dog, deer/horse, airplane/bird, automobile/truck, frog/ship.
HARD_PAIRS = ((3, 5), (4, 7), (0, 2), (1, 9), (6, 8))
MAMMALS = 2  # the first pairs, which C knows; D knows the others


def seniors(s: Setting, *, case: str = "independent", level: str = "H", like: str = "dogs-vs-cats") -> Crowd:
    """Seniors, and juniors who are "naive" or copy ("correlated") if the case has them; level H or L (5 to 25 workers).

    ``like`` ("dogs-vs-cats" or "luna16") says whose numbers two classes have; more classes are as in CIFAR-10.
    """
    junior = min(_juniors(case, level, s.workers), s.workers - 1)
    senior = s.workers - junior
    right = _two(like, level, senior) if s.classes == 2 else _many(s.classes, level, senior)  # M_s,K,K
    naive = tables.constant_spammers(torch.zeros(junior, dtype=torch.int64), s.classes)
    copied = torch.tensor([COPIED[level][i % len(COPIED[level])] for i in range(junior)], dtype=torch.int64)
    source = torch.cat([torch.full((senior,), -1), copied.clamp_max(senior - 1)])
    return Crowd.of(
        ("senior", right),
        ("junior", naive if case == "naive" else right[source[senior:]]),
        assignment=Complete(),
        copying=Copying(source) if case == "correlated" else None,
    )


def crew(tasks: int, votes_per_task: float | None, options: Mapping[str, Any]) -> int:
    """How many workers the paper's case has."""
    case, level = options.get("case", "independent"), options.get("level", "H")
    _check(case, level)
    return SENIORS[level] + JUNIORS.get((case, level), 0)


def _juniors(case: str, level: str, workers: int) -> int:
    """Of so many workers, in the proportion of the paper."""
    _check(case, level)
    juniors = JUNIORS.get((case, level), 0)
    return round(workers * juniors / (SENIORS[level] + juniors))


def _two(like: str, level: str, count: int) -> Tensor:
    """Tables of two classes: A..E in turn, or all alike."""
    if like not in TWO:
        raise unknown("experts", like, TWO)
    if level == "L":
        return tables.from_accuracy(torch.full((count, 2), TWO_LOW[like]))
    right = torch.tensor(TWO[like])  # 5,2
    return tables.from_accuracy(right[torch.arange(count) % len(right)])


def _many(K: int, level: str, count: int) -> Tensor:
    """Tables of more classes: A..E in turn mistake one class of a hard pair for the other; (L) is right in 2 of K."""
    if level == "L":
        return tables.from_accuracy(torch.full((count, K), 2 / K))  # 0.2 where K = 10
    pairs = HARD_PAIRS if K == 10 else tuple((i, i + 1) for i in range(0, K - 1, 2))
    known = round(len(pairs) * MAMMALS / len(HARD_PAIRS))
    same, guess, tell, better = (1.0, 0.0), (0.5, 0.5), (1.0, 1.0), (0.6, 0.6)  # right in the pair's two classes
    mixes = (
        [same] * len(pairs),  # A calls both by the first name
        [guess] * len(pairs),  # B
        [tell] * known + [guess] * (len(pairs) - known),  # C
        [same] * known + [tell] * (len(pairs) - known),  # D
        [better] * len(pairs),  # E
    )
    experts = torch.eye(K).repeat(len(mixes), 1, 1)  # 5,K,K; easy classes are never mistaken
    for table, mix in zip(experts, mixes, strict=True):
        for (a, b), (right_a, right_b) in zip(pairs, mix, strict=True):
            table[a, [a, b]] = torch.tensor([right_a, 1 - right_a])
            table[b, [b, a]] = torch.tensor([right_b, 1 - right_b])
    return experts[torch.arange(count) % len(experts)]


def _check(case: str, level: str) -> None:
    if case not in CASES:
        raise unknown("case", case, CASES)
    if level not in LEVELS:
        raise unknown("level", level, LEVELS)
