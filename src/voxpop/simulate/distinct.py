"""Different workers for each task.

Workers are drawn one after another in proportion to their weights among those who are left. Drawing
with replacement and keeping each worker's first draw gives the same distribution, and so does taking the
smallest of exponential draws divided by the weights (Efraimidis and Spirakis 2006, "Weighted random
sampling with a reservoir"). The first is fast while most draws are new, the second when few are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from voxpop.simulate import keys

_CELLS = 1 << 22  # largest tasks x workers table at a time


def distinct_workers(counts: Tensor, weights: Tensor, generator: torch.Generator) -> Tensor:
    """``counts[i]`` different workers for task i, as keys task * M + worker, in no order."""
    M = weights.numel()
    even = bool((weights == weights[0]).all())
    sums = weights.double().cumsum(0)  # M
    need, taken = counts, torch.empty(0, dtype=torch.int64)
    done: list[Tensor] = []
    while True:
        task = keys.owners(need)
        if not task.numel():
            return torch.cat([*done, taken])
        drawn = _draw(task.numel(), M, even, sums, generator)
        before = taken.numel()
        taken = keys.distinct(torch.cat([taken, task * M + drawn]))
        filled = taken.numel() - before
        owner, _ = keys.split(taken, M)
        need = torch.where(need > 0, counts - torch.bincount(owner, minlength=counts.numel()), 0)
        short = need[owner] > 0
        done.append(taken[~short])
        taken = taken[short]
        if filled * M < 8 * task.numel():  # a draw that is new costs more than looking at every worker
            return torch.cat([*done, taken, _rest(need, taken, weights, generator)])


def _draw(size: int, workers: int, even: bool, sums: Tensor, generator: torch.Generator) -> Tensor:
    if even:
        return torch.randint(workers, (size,), generator=generator)
    uniform = torch.rand(size, generator=generator, dtype=torch.float64) * sums[-1]
    return torch.searchsorted(sums, uniform, right=True).clamp_max_(workers - 1)


def _rest(need: Tensor, taken: Tensor, weights: Tensor, generator: torch.Generator) -> Tensor:
    """The ``need[i]`` workers that task i lacks, none of those it has taken."""
    M = weights.numel()
    tasks = need.nonzero()[:, 0]  # S
    owner, has = keys.split(taken, M)
    row = torch.searchsorted(tasks, owner)
    out, step = [], max(1, _CELLS // M)
    for start in range(0, tasks.numel(), step):
        some = tasks[start : start + step]
        wait = torch.empty(some.numel(), M).exponential_(generator=generator) / weights  # S,M
        here = (row >= start) & (row < start + step)
        wait[row[here] - start, has[here]] = torch.inf
        first = wait.argsort(1)  # S,M
        chosen = torch.arange(M) < need[some][:, None]
        out.append((some[:, None] * M + first)[chosen])
    return torch.cat(out) if out else taken[:0]
