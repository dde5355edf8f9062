"""How long to train, and which of several variants, by the likelihood of held-out votes: no truth is used.

All votes of some tasks are held out, so that what is judged is the classifier on tasks it has never seen:
p(votes of the task | x) = sum over truths of p(truth | x) product of p(label | worker, truth). The votes of a task
count together: one by one they cannot tell a blurred truth and exact workers from an exact truth and blurred workers,
which explain any single vote as well; that several workers depart from the features together can. Small data are held
out in parts, each once; large data only so much as is needed to tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from voxpop.engines.events import emit
from voxpop.learn.data import Data
from voxpop.learn.loop import Settings, Training, in_batches
from voxpop.learn.objective import Objective, asking
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import segment_sum

FEW_VOTES = 20_000  # up to here every task is held out once, in FOLDS parts; above, one part of about so many votes
FOLDS = 5
LEAST = 10  # tasks, or nothing can be held out
SHARE = 0.2
LIMIT = 100  # epochs at most
PATIENCE = 10  # epochs without a better one before it stops
HOTTEST = 5.0  # temperatures are looked for from 1 / 5 to 5
GOLDEN = (5**0.5 - 1) / 2

Maker = Callable[[Data], Objective]


@dataclass(frozen=True, eq=False)
class Held:
    """What was said of the tasks that were held out, by networks without their votes."""

    tasks: Tensor  # H, positions
    logp: Tensor  # H,K: log p(truth | x)
    temperature: float  # at which it foretells their votes best

    def over(self, size: int) -> Tensor:
        """The same at that temperature for all of so many tasks, N,K: NaN where a task was not held out."""
        out = torch.full((size, self.logp.shape[1]), torch.nan)
        out[self.tasks] = (self.logp / self.temperature).log_softmax(1).float()
        return out


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was chosen by."""

    name: str
    epochs: int
    foretold: float  # log probability of the held-out votes, over their number, at that epoch and temperature
    curve: tuple[float, ...]  # the same after each epoch, at a temperature of 1
    score: float  # what variants were compared by
    temperature: float = 1.0  # of the classifier, at which held-out votes are likeliest
    held: Held | None = field(default=None, repr=False, compare=False)  # what was said at that epoch


def parts(data: Data, seed: int) -> list[Tensor]:
    """Which tasks are held out together: positions. Tasks without votes and of known truth are not."""
    some = data.batch.votes_per_task > 0
    if data.known is not None:
        some &= data.known < 0
    tasks = data.positions[some]
    if tasks.numel() < LEAST:
        return []
    order = tasks[torch.randperm(tasks.numel(), generator=generator(seed, "held out tasks"))]
    if data.batch.V <= FEW_VOTES:
        return list(torch.tensor_split(order, FOLDS))
    share = min(SHARE, FEW_VOTES / data.batch.V)
    return [order[: max(1, round(share * order.numel()))]]


def choose(makers: Mapping[str, Maker], data: Data, settings: Settings, *, epochs: int | None) -> Choice | None:
    """The variant that foretells held-out votes best, and after how many epochs (all of them where given)."""
    held = parts(data, settings.seed)
    if not held:
        return None
    tried = [_try(name, make, data, held, settings, epochs) for name, make in makers.items()]
    return max(tried, key=lambda choice: choice.score)  # of equals the first


def _try(name: str, make: Maker, data: Data, held: Sequence[Tensor], settings: Settings, epochs: int | None) -> Choice:
    limit = epochs or LIMIT
    runs = [without(make, data, part, settings, limit) for part in held]
    votes = sum(hidden.batch.V for _, hidden in runs)
    curve: list[float] = []
    scores: list[float] = []
    best_said: list[tuple[Tensor, Tensor]] = []
    for number in range(limit):
        for training, _ in runs:
            training.epoch()
        found = [_foretold(training, hidden) for training, hidden in runs]
        curve.append(sum(log for log, _, _ in found) / votes)
        own = [(score, count) for _, score, count in found if count]
        scores.append(sum(score for score, _ in own) / sum(count for _, count in own) if own else curve[-1])
        emit(f"held-out votes, {name}", number + 1, limit, curve[-1])
        if number + 1 == limit if epochs else number == _best(scores):
            best_said = [said(training, hidden) for training, hidden in runs]
        if epochs is None and number - _best(scores) >= PATIENCE:
            break
    best = len(curve) - 1 if epochs else _best(scores)
    logp, given = (torch.cat(each) for each in zip(*best_said, strict=True))
    t = temperature(logp, given)
    foretold = curve[best] if t == 1 else likelihood(logp, given, t) / votes
    seen = Held(torch.cat([hidden.positions for _, hidden in runs]), logp, t)
    return Choice(name, best + 1, foretold, tuple(curve), scores[best] if own else foretold, t, seen)


def _best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda i: values[i])


def without(make: Maker, data: Data, hidden: Tensor, settings: Settings, limit: int) -> tuple[Training, Data]:
    """A training on all tasks but these, for so many epochs at most; and these."""
    out = torch.zeros(data.votes.N, dtype=torch.bool)
    out[hidden] = True
    rest = data.part(data.positions[~out[data.positions]])
    return Training(make(rest), rest, settings, limit), data.part(hidden.sort().values)


def _foretold(training: Training, hidden: Data) -> tuple[float, float, int]:
    """The log probability of the hidden votes; the sum of the objective's own scores and their number, if any."""
    objective, device = training.objective, training.fabric.device
    logs, scores, count = 0.0, 0.0, 0
    with asking(objective):
        for x, parcel in in_batches(hidden, device):
            logs += float(objective.together(x, parcel.batch).double().sum())
            own = objective.score(x, parcel.batch)
            if own is not None:
                scores, count = scores + float(own.double().sum()), count + own.numel()
    return logs, scores, count


def said(training: Training, hidden: Data) -> tuple[Tensor, Tensor]:
    """For each hidden task, log p(truth | x), and log p(its votes | truth) under each truth: B,K both."""
    logs, given = [], []
    with asking(training.objective):
        for x, parcel in in_batches(hidden, training.fabric.device):
            logs.append(training.objective.logp(x).double().cpu())
            by_votes = segment_sum(training.objective.unseen(x, parcel.batch).double(), parcel.batch.offsets)
            given.append(by_votes.cpu())
    return torch.cat(logs), torch.cat(given)


def likelihood(logp: Tensor, given: Tensor, t: float) -> float:
    """The log probability of all tasks' votes by softmax(logp / t): both B,K."""
    return float(torch.logsumexp((logp / t).log_softmax(1) + given, 1).sum())


def temperature(logp: Tensor, given: Tensor) -> float:
    """The T at which softmax(logp / T) foretells the votes best; 1 where that gains less than chance would.

    Twice the log likelihood that one free number gains by chance alone is below 4 with 95%.
    """
    low, high = -math.log(HOTTEST), math.log(HOTTEST)
    while high - low > 0.01:  # golden section
        first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if likelihood(logp, given, math.exp(first)) >= likelihood(logp, given, math.exp(second)):
            high = second
        else:
            low = first
    best = math.exp((low + high) / 2)
    return best if likelihood(logp, given, best) - likelihood(logp, given, 1.0) > 2 else 1.0


def described(choice: Choice) -> str:
    name = f"{choice.name}, " if choice.name else ""
    tempered = "" if choice.temperature == 1 else f"; calibrated by the temperature {choice.temperature:.2f}"
    return (
        f"{name}{choice.epochs} epochs: the mean log probability of a held-out vote was {choice.foretold:.3f}{tempered}"
    )
