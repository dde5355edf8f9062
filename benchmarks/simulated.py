"""The simulated votes of the speed tables: K = 4, 5 votes a task, 1,000 workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from voxpop.simulate import simulate
from voxpop.votes import Axis, Votes

K, PER_TASK, WORKERS = 4, 5, 1000


def columns(votes: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(task, worker, label), sorted by task."""
    made = simulate(
        tasks=votes // PER_TASK, workers=WORKERS, classes=K, kind="dirichlet", votes_per_task=PER_TASK, seed=1
    ).votes
    return made.task, made.worker, made.label


def fresh(columns: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> Votes:
    """Votes that remember nothing of an earlier fit."""
    tasks = int(columns[0][-1]) + 1
    axes = (Axis.counting("tasks", tasks), Axis.counting("workers", WORKERS), Axis.counting("classes", K))
    return Votes(*columns, *axes)


def save(file: Path, votes: int) -> None:
    np.save(file, torch.stack(columns(votes)).numpy())


def load(file: Path) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    task, worker, label = torch.from_numpy(np.load(file)).unbind()
    return task, worker, label
