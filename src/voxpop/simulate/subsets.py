"""Real votes made scarcer or worse: a fraction of them, few a worker, the busiest workers only, spammers on top.

Li, Huang and Chen, "Crowdsourcing Aggregation with Deep Bayesian Learning", section 4: a fraction of the votes of the
nine busiest workers. Kim, Cho, Kim and Ok, "Robust Deep Learning from Crowds with Belief Propagation", section 4.2:
four tasks a worker, and extreme spammers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.numerics.seeds import generator
from voxpop.simulate.checks import at_least, chance
from voxpop.votes import Axis, Votes


def observed(votes: Votes, fraction: float, seed: int = 0) -> Votes:
    """This fraction of the votes (rounded), drawn uniformly."""
    keep = round(chance("fraction", fraction) * votes.V)
    return votes.select(_rank(votes.V, seed, "observed") < keep)


def few_each(votes: Votes, each: int = 4, seed: int = 0) -> Votes:
    """At most so many votes of each worker, drawn uniformly."""
    at_least("each", each, 0)
    order = torch.argsort(votes.worker.long() * votes.V + _rank(votes.V, seed, "few each"))  # by worker, then by chance
    worker = votes.worker[order].long()
    first = torch.searchsorted(worker, worker)  # where the worker's votes begin
    keep = torch.zeros(votes.V, dtype=torch.bool)
    keep[order[torch.arange(votes.V) - first < each]] = True
    return votes.select(keep)


def busiest(votes: Votes, workers: int = 9) -> Votes:
    """The votes of the workers who have most, and no other workers (the first ones where they tie)."""
    counts = torch.bincount(votes.worker, minlength=votes.M)
    chosen = torch.argsort(counts, descending=True, stable=True)[:workers].sort().values
    keep = torch.isin(votes.worker, chosen)
    place = torch.searchsorted(chosen, votes.worker[keep].long())
    return Votes(
        votes.task[keep],
        place.int(),
        votes.label[keep],
        votes.tasks,
        Axis("workers", votes.workers.names.gather(chosen.numpy())),
        votes.classes,
        votes.dropped,
        votes.known,
    )


def with_spammers(votes: Votes, spammers: int = 1, seed: int = 0) -> Votes:
    """The same, and workers "spammer 0", "spammer 1", ... who label every task at random."""
    count = int(at_least("spammers", spammers, 0))
    names = [f"spammer {i}" for i in range(count)]
    there = [name for name in names if name in set(map(str, votes.workers))]
    if there:
        raise BadInput(f"there is a worker '{there[0]}' already; rename it")
    label = torch.randint(votes.K, (votes.N * count,), generator=generator(seed, "spammers"))
    everyone = [*map(str, votes.workers), *names]
    new = torch.arange(votes.N).repeat_interleave(count), torch.arange(count).repeat(votes.N) + votes.M, label
    old = votes.task.long(), votes.worker.long(), votes.label.long()
    task, worker, label = (torch.cat(both) for both in zip(old, new, strict=True))
    order = torch.argsort((task * len(everyone) + worker) * votes.K + label)
    return Votes(
        task[order].int(),
        worker[order].int(),
        label[order].int(),
        votes.tasks,
        Axis("workers", everyone),
        votes.classes,
        votes.dropped,
        votes.known,
    )


def on_tasks(votes: Votes, rows: Tensor) -> Votes:
    """The votes on some tasks (in ascending order), which become all there are."""
    part = votes.batch(rows)
    names = Axis("tasks", votes.tasks.names.gather(rows.numpy()))
    return Votes(part.task, part.worker, part.label, names, votes.workers, votes.classes, votes.dropped)


def _rank(size: int, seed: int, purpose: str) -> Tensor:
    """A random order: each of 0..size-1 once."""
    return torch.randperm(size, generator=generator(seed, purpose))
