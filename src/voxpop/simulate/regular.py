"""Random regular bipartite graphs: every task has l workers and every worker r tasks, nobody twice on a task.

Kim, Cho, Kim and Ok, "Robust Deep Learning from Crowds with Belief Propagation", section 4.1. Two tasks trade
workers as in Strona et al. 2014, "A fast and unbiased procedure to randomize ecological matrices".
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from voxpop.errors import BadOption
from voxpop.simulate import keys


def regular_graph(tasks: int, workers: int, votes_per_task: int, generator: torch.Generator) -> Tensor:
    """The workers of each task (N,l int32), each of them r = N * l / M times; close to uniform over such graphs."""
    _check(tasks, workers, votes_per_task)
    if 2 * votes_per_task > workers:  # the workers who do not vote form the sparser regular graph
        absent = regular_graph(tasks, workers, workers - votes_per_task, generator)
        here = torch.ones(tasks, workers, dtype=torch.bool).scatter_(1, absent.long(), False)
        return here.nonzero()[:, 1].int().view(tasks, votes_per_task)
    deal = torch.randperm(tasks * votes_per_task, dtype=torch.int32, generator=generator).remainder_(max(workers, 1))
    deal = deal.view(tasks, votes_per_task)  # N,l
    bad = _with_repeats(deal, torch.arange(tasks))
    while bad.numel():
        good = torch.ones(tasks, dtype=torch.bool).index_fill_(0, bad, False).nonzero()[:, 0]
        order = torch.cat([_shuffled(bad, generator), _shuffled(good, generator)])
        pairs = min(bad.numel(), tasks // 2)
        one, other = order[:pairs], order[-pairs:]
        deal[one], deal[other] = _trade(deal[one], deal[other], generator)
        bad = _with_repeats(deal, keys.distinct(torch.cat([bad, other])))
    return deal


def _trade(one: Tensor, other: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Deal the workers of two tasks anew: of two equal ones each task gets one, the rest falls by chance.

    The sum over tasks of squared repeats never rises, and falls when a repeated worker meets a task without them.
    """
    both = torch.cat([one, other], 1).sort(1).values  # P,2l
    place = torch.arange(both.shape[1]).expand(both.shape)
    new = torch.ones_like(both, dtype=torch.bool)
    new[:, 1:] = both[:, 1:] != both[:, :-1]
    second = (place - torch.where(new, place, 0).cummax(1).values) % 2 == 1  # the second of two equal workers
    first = torch.zeros_like(second)
    first[:, :-1] = second[:, 1:]
    side = torch.rand(both.shape, generator=generator).masked_fill_(first, -1.0).masked_fill_(second, 2.0)
    both = both.gather(1, side.argsort(1))
    return both.tensor_split(2, 1)  # type: ignore[return-value]


def _with_repeats(deal: Tensor, rows: Tensor) -> Tensor:
    """Those rows in which a worker occurs twice."""
    row = torch.from_numpy(np.sort(deal[rows].numpy(), axis=1))  # five times faster than torch on short rows
    return rows[(row[:, 1:] == row[:, :-1]).any(1)]


def _shuffled(values: Tensor, generator: torch.Generator) -> Tensor:
    return values[torch.randperm(values.numel(), generator=generator)]


def _check(tasks: int, workers: int, votes_per_task: int) -> None:
    if votes_per_task > workers:
        raise BadOption(f"{votes_per_task} votes on every task need as many workers to assign; there are {workers}")
    if workers and tasks * votes_per_task % workers:
        step = workers
        while tasks * votes_per_task % step:
            step -= 1
        raise BadOption(
            f"{tasks} tasks x {votes_per_task} votes cannot be shared equally by the {workers} workers to assign; "
            f"with {step} each does {tasks * votes_per_task // step}"
        )
