"""What a method asks of a network: a loss on some tasks and their votes, and what the crowd adds to a prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voxpop.learn.data import Data
from voxpop.numerics.segments import segment_sum
from voxpop.results import Evidence
from voxpop.votes import Batch


class Parcels:
    """Tasks in some order, a few at a time. Their votes are looked up together, when they are first asked for."""

    def __init__(self, data: Data, order: Tensor, size: int, device: torch.device) -> None:
        self.data, self.order, self.size, self.device = data, order, size, device
        self._wide: tuple[int, list[Batch]] | None = None

    def __iter__(self) -> Iterator[Parcel]:
        return (Parcel(self, number, rows) for number, rows in enumerate(torch.split(self.order, self.size)))

    @cached_property
    def batches(self) -> list[Batch]:
        return list(self.data.votes.batch(self.order).to(self.device).pieces(self.size))

    def together(self, many: int) -> list[Batch]:
        """Batches of so many parcels."""
        if self._wide is None or self._wide[0] != many:
            whole = self.data.votes.batch(self.order).to(self.device)
            self._wide = (many, list(whole.pieces(self.size * many)))
        return self._wide[1]


class Parcel:
    """Some tasks: their positions, their votes, their known truths (or -1).

    A plain object: wrappers of modules would take a dataclass apart.
    """

    def __init__(self, among: Parcels, number: int, rows: Tensor) -> None:
        self._among, self._number = among, number
        self.rows = rows  # B

    @property
    def batch(self) -> Batch:
        return self._among.batches[self._number]

    @property
    def usual_size(self) -> int:
        """Of parcels; the last may be smaller."""
        return self._among.size

    def together(self, many: int) -> tuple[Batch, slice]:
        """The batch of the so many parcels, one after the other, that this is one of; and its own tasks in there."""
        group, place = divmod(self._number, many)
        start = place * self._among.size
        return self._among.together(many)[group], slice(start, start + len(self.rows))

    @cached_property
    def gold(self) -> Tensor | None:
        gold = self._among.data.gold
        return None if gold is None else gold[self.rows].to(self._among.device)


class Objective(nn.Module, ABC):
    """A network, and what is learned of the crowd with it. Everything learned is in ``state``."""

    refreshes = False  # whether ``refresh`` wants the predictions of all tasks before each epoch
    learns_from_all = False  # whether tasks without votes teach it anything
    class_weight: Tensor | None = None  # K: how much a task of each class weighs in the network's loss
    divides = True  # whether several devices may each take a part of a batch: only slopes are made of it
    devices = 1  # that train together so
    temperature = 1.0  # at which held-out votes were likeliest: how sure the network is to be where it meets votes

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    # -- while it trains --------------------------------------------------------------------------

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        """The loss of these tasks, known truths with it: as the network's own error, a task as much as any other."""
        loss = self.loss(x, parcel.batch)
        if parcel.gold is None or not bool((parcel.gold >= 0).any()):
            return loss
        known = parcel.gold >= 0
        logits = self.network(x)[known].float()
        errors = F.cross_entropy(logits, parcel.gold[known], weight=self.class_weight, reduction="sum")
        return loss + errors / len(x)

    def learned(self, data: Data, done: int) -> Tensor:
        """Positions of the tasks that teach it something, after so many epochs."""
        return data.positions if self.learns_from_all else data.voted

    def weighed(self, terms: Tensor, batch: Batch) -> Tensor:
        """Terms of votes (V), each with the weight of the class that it names."""
        return terms if self.class_weight is None else terms * self.class_weight[batch.label.long()]

    @abstractmethod
    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        """A scalar: per task, so that batches of any size weigh alike."""

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        """Before an epoch, given log predictions for all of the data's tasks (None before the first): the bound."""
        return None

    def refit(self, data: Data, tasks: Tensor) -> float:
        """Where the network is a scikit-learn classifier: fit it to these tasks (positions); the loss there."""
        raise NotImplementedError(f"{type(self).__name__} learns by gradient descent")

    def after_step(self) -> None:
        """What follows a step of the optimiser."""

    def groups(self, lr: float) -> list[dict[str, Any]]:
        """Parameters and their learning rates; the optimiser's settings for each group."""
        return [{"params": list(self.parameters()), "lr": lr}]

    # -- what it knows ----------------------------------------------------------------------------

    def classifier(self) -> nn.Module:
        """The plain classifier: rows in, a logit for each class out."""
        return self.network

    def logp(self, x: Tensor) -> Tensor:
        """log p(truth | x): B,K."""
        logits: Tensor = self.classifier()(x)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(1)

    @abstractmethod
    def given(self, x: Tensor, batch: Batch) -> Tensor:
        """log p(label | truth) of each vote under each truth: V,K."""

    def foretell(self, x: Tensor, batch: Batch) -> Tensor:
        """log p(label | x) of each vote, its task's other votes unseen: V."""
        return torch.logsumexp(self.logp(x)[batch.task.long()] + self.given(x, batch), 1)

    def unseen(self, x: Tensor, batch: Batch) -> Tensor:
        """As ``given``, before any vote of the task is seen: V,K."""
        return self.given(x, batch)

    def together(self, x: Tensor, batch: Batch) -> Tensor:
        """log p(all votes of the task | x): B. Given the truth they are independent."""
        said = segment_sum(self.unseen(x, batch), batch.offsets)  # B,K
        return torch.logsumexp(self.logp(x) + said, 1)

    def score(self, x: Tensor, batch: Batch) -> Tensor | None:
        """What variants of one method are compared by instead of ``together``, for each task: the more the better."""
        return None

    def prior_of(self, x: Tensor) -> Tensor:
        """The log of what the data alone say where they meet the votes: B,K."""
        logp = self.logp(x)
        return logp if self.temperature == 1 else (logp / self.temperature).log_softmax(1)

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        """p(truth | x, votes), prediction (``prior_of``, or another) and votes together: B,K."""
        said = segment_sum(self.given(x, batch), batch.offsets).float()  # B,K
        return (prior + said).softmax(1)

    def table(self) -> Tensor | None:
        """Confusion matrices M,K,K as [worker, truth, label], where there are any."""
        return None

    def log_table(self) -> Tensor | None:
        """What each vote says for each truth, M,K,K as [worker, truth, label], where ``combine`` adds just that up."""
        return None

    def evidence(self, prior: Tensor) -> Evidence | None:
        """What explains the belief in the tasks that were trained on; ``prior`` is ``prior_of`` them: N,K."""
        log = self.log_table()
        return None if log is None else Evidence("table", {"log": log.transpose(1, 2).float().contiguous()}, prior)

    def believed(self) -> Tensor | None:
        """The belief in the tasks that were trained on, where ``combine`` cannot find it a few tasks at a time: N,K."""
        return None

    # -- kept, moved and brought back ---------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """To another device: what was learned beside weights goes with them."""
        self.carry(fn)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def carry(self, move: Callable[[Tensor], Tensor]) -> None:
        """Move what was learned and is neither a parameter nor a buffer."""

    def state(self) -> dict[str, Tensor]:
        return dict(self.state_dict())

    def restore(self, state: dict[str, Tensor]) -> None:
        self.load_state_dict(state)


def per_task(terms: Tensor, batch: Batch) -> Tensor:
    """Terms of votes (V) as a loss per task: each vote weighs the same in every batch."""
    return terms.sum() * (batch.total_tasks / max(batch.total_votes, 1) / max(batch.B, 1))


def own_rows(table: Tensor, batch: Batch) -> Tensor:
    """The row of each vote's (worker, label) in a table M,K,K as [worker, label, truth]: V,K."""
    return table.reshape(-1, batch.K)[batch.pair.long()]


def soft_cross_entropy(logits: Tensor, belief: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean over tasks of - sum_k belief log p, each class with its weight."""
    terms = belief * logits.float().log_softmax(1)  # B,K
    return -(terms if weight is None else terms * weight).sum(1).mean()


@contextmanager
def asking(objective: nn.Module) -> Iterator[None]:
    """No dropout, no gradients."""
    was = objective.training
    objective.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        objective.train(was)
