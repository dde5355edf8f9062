"""Simulate a crowd by the name of its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voxpop.errors import BadInput, BadOption, unknown
from voxpop.numerics.seeds import generator
from voxpop.simulate.assignments import ASSIGNMENTS, Assignment, Random, Regular
from voxpop.simulate.crowd import Crowd
from voxpop.simulate.kind import Kind, Setting
from voxpop.simulate.kinds import KINDS
from voxpop.simulate.sampler import Sampler
from voxpop.simulate.simulated import Simulated


def simulate(
    tasks: int = 1000,
    workers: int | None = None,
    classes: int | None = None,
    kind: str = "believable",
    seed: int = 0,
    *,
    votes_per_task: float | None = None,
    assignment: str | Assignment | None = None,
    prior: Sequence[float] | Tensor | None = None,
    **options: Any,
) -> Simulated:
    """Votes of a crowd of this kind on tasks whose truth is drawn from ``prior`` (uniform unless told).

    ``workers`` and ``classes`` are the kind's own where they are not given (50 and 4 for most). ``assignment``
    ("random", "power-law", "regular", "complete", or an object) and ``votes_per_task`` replace the kind's;
    followers, and spammers who label unasked, come on top. ``options`` are those of the kind.
    """
    named = _find(kind)
    classes = named.classes if classes is None else classes
    for name, size, least in (("tasks", tasks, 1), ("classes", classes, 2)):
        if size < least:
            raise BadOption(f"{name}={size} is too few; give {least} or more")
    shares = _shares(prior, classes)
    truth = Sampler(shares[None]).draw(torch.zeros(tasks, dtype=torch.int64), generator(seed, "truth"))
    return _vote(truth, shares, named, workers, seed, votes_per_task, assignment, options)


def simulate_votes_on(
    truth: Any,
    workers: int | None = None,
    classes: int | None = None,
    kind: str = "believable",
    seed: int = 0,
    *,
    votes_per_task: float | None = None,
    assignment: str | Assignment | None = None,
    **options: Any,
) -> Simulated:
    """Votes of a crowd of this kind on tasks with a given truth: whole numbers 0..classes-1, one for each task."""
    array = truth.detach().cpu().numpy() if isinstance(truth, Tensor) else np.asarray(truth)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise BadInput(f"truth is {array.dtype} of shape {array.shape}; give one whole number for each task")
    most = int(array.max())
    classes = max(most + 1, 2) if classes is None else classes
    wrong = np.flatnonzero((array < 0) | (array >= classes))
    if wrong.size:
        raise BadInput(
            *(f"truth of task {i} is {array[i]}; it must be one of 0..{classes - 1}" for i in wrong[:1000].tolist())
        )
    given = torch.from_numpy(array.astype(np.int64))  # N
    shares = torch.bincount(given, minlength=classes) / array.size
    return _vote(given, shares, _find(kind), workers, seed, votes_per_task, assignment, options)


def _vote(
    truth: Tensor,
    prior: Tensor,
    kind: Kind,
    workers: int | None,
    seed: int,
    votes_per_task: float | None,
    assignment: str | Assignment | None,
    options: Mapping[str, Any],
) -> Simulated:
    kind.check(options)
    workers = kind.size(truth.numel(), votes_per_task, options) if workers is None else workers
    if workers < 1:
        raise BadOption(f"workers={workers} is too few; give 1 or more")
    setting = Setting(truth.numel(), workers, prior.numel(), prior, generator(seed, "workers"))
    crowd = kind.crowd(setting, options)
    return replace(crowd, assignment=_assignment(crowd, assignment, votes_per_task)).vote(truth, seed)


def _find(kind: str) -> Kind:
    if kind not in KINDS:
        raise unknown("kind of crowd", kind, KINDS)
    return KINDS[kind]


def _assignment(crowd: Crowd, given: str | Assignment | None, votes_per_task: float | None) -> Assignment:
    """The crowd's own assignment or the one given, with the votes per task that were asked for."""
    if isinstance(given, str) and given not in ASSIGNMENTS:
        raise unknown("assignment", given, ASSIGNMENTS)
    chosen = crowd.assignment if given is None else ASSIGNMENTS[given]() if isinstance(given, str) else given
    if votes_per_task is None:
        return chosen
    if isinstance(chosen, Random):
        return replace(chosen, votes_per_task=votes_per_task)
    if isinstance(chosen, Regular):
        if votes_per_task != int(votes_per_task):
            raise BadOption(f"votes_per_task={votes_per_task} must be whole for a regular graph")
        return replace(chosen, votes_per_task=int(votes_per_task))
    raise BadOption(
        f"votes_per_task={votes_per_task} has no meaning where everyone votes on everything; "
        "leave it out, or give assignment='random'"
    )


def _shares(prior: Sequence[float] | Tensor | None, classes: int) -> Tensor:
    if prior is None:
        return torch.full((classes,), 1 / classes)
    shares = torch.as_tensor(prior, dtype=torch.float32)
    if shares.shape != (classes,) or bool((shares < 0).any()) or not bool(shares.sum() > 0):
        raise BadOption(f"prior={prior}: give {classes} frequencies of classes, none below zero")
    return shares / shares.sum()  # K
