"""Ask: the next pairs of task and worker, by what an answer is worth, who is likely to be right, and what that costs.

Paper 002 (Yang et al.), section 3.3: the most doubtful items, each to the worker with the most expertise on it;
here both at once, under costs, capacities and caps. Paper 003, active crowdsourcing: chances of exploring.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.active import values
from voxpop.active.assign import SLACK, Assignment, assign
from voxpop.active.expertise import Expertise, grouped
from voxpop.active.gains import Gain, Information, Rise, Unequal, Worth
from voxpop.active.items import Items
from voxpop.active.people import People, people_of
from voxpop.active.problem import Problem, keys
from voxpop.active.search import Search
from voxpop.active.skills import Skills, explored
from voxpop.errors import BadInput, BadOption, VoxWarning, unknown, warn
from voxpop.numerics.seeds import generator
from voxpop.votes import Axis, Votes
from voxpop.votes.axis import as_names

SCORES = ("entropy", "margin", "bald", "information", "error", "relabel", "random")
WORKER_SCORES = ("mean", "thompson", "ucb", "epsilon", "random")
WORKER_SCORE = "thompson"  # the mean may settle on one who was lucky
DRAWS = (8, 32)  # of everybody's skill in a batch: so many at least, and at most
DEALT = (
    1 << 23
)  # numbers: which of many tasks has which draw; more draws than fit would take longer than they are worth
AHEAD = 3  # votes that the score "error" looks ahead
TIES = 1e-5  # equal scores are told apart at random by so much
LOOKED_AT = 20_000  # items on which topics are found


class StopAsking(VoxWarning):
    """No vote is worth what it costs, or none can be had; the message says why."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Pairs to ask, and where there are fewer than were wanted, the reason in words."""

    frame: pl.DataFrame  # task, worker, score, right, cost
    reason: str  # empty where all k were found
    bound: float  # no choice of pairs has a larger sum of scores, less what crowding takes


def ask(
    k: int,
    *,
    items: Items,
    expertise: Expertise | Skills,
    votes: Votes,
    workers: Any = None,
    cost: Any = None,
    capacity: Any = None,
    cap_per_task: int | None = None,
    at_once: int | None = None,
    outstanding: Any = None,
    barred: Any = None,
    score: str | Tensor = "entropy",
    worker_score: str = WORKER_SCORE,
    diversity: float = 0.0,
    features: Any = None,
    worth: float = 1.0,
    budget: float | None = None,
    stop: float = 0.0,
    seed: int = 0,
) -> pl.DataFrame:
    """The best ``k`` pairs to ask: a frame task, worker, score (and right: the chance of a right answer; cost).

    Fewer, or none, where no vote is worth its cost or the limits leave no more; ``StopAsking`` warns and says why.
    ``plan`` takes the same and returns the reason beside the frame.

    items: what may be asked, with beliefs (``Items``); any tasks, with or without votes.
    expertise: ``Expertise`` (rows for the workers axis of ``votes`` and for ``items``), or ``Skills`` of those workers.
    votes: all votes so far: nobody is asked again about what he answered. Tasks that are no items do not matter.
    workers: who is available: names, or a frame with a column worker and any of cost, capacity, available. None: all
        workers of the votes. A name that no vote has is a newcomer, taken for one of this crowd.
    cost: of a vote: a number, or worker -> number. capacity: most votes of a worker now: a number, or worker -> number.
    cap_per_task: most votes a task may have in all: those it has, those outstanding, and those asked now.
    at_once: most votes on one task in this batch; none: as few as let ``k`` be reached.
    outstanding: pairs that were asked and not answered yet (a frame task, worker, or pairs): not asked again, counted
        by ``cap_per_task`` and against ``capacity``; another vote on their items gains what they will leave.
    barred: pairs that may not be asked for any other reason (in the same forms): a conflict of interest, a language.
    score: what a vote on an item is worth: "entropy" (paper 002), "margin", "bald" and "relabel" (both need
        ``items.samples``), "information" (what this worker's vote tells, in nats), "error" (the expected
        rise of the chance that the consensus is right), "random", or N numbers. Those of the item alone (all but
        "information" and "error", which know the worker) are multiplied by the chance that the worker is right.
    worker_score: how likely right: "thompson" (by draws of that: who may be good is tried), "mean" (as believed, paper
        002), "ucb" (an upper bound), "epsilon" (now and then a worker at random, paper 003), "random".
    diversity: 0 to 1: each further vote of the batch on a topic counts so much less, as a share of the best score.
        Topics are found in ``features`` (a row an item), or ``features`` is one integer an item and names them.
    worth: what one unit of the score is worth in the unit of ``cost``. budget: the most that the batch may cost.
    stop: a pair whose worth x score - cost is not above this is not worth asking.
    """
    found = plan(
        k,
        items=items,
        expertise=expertise,
        votes=votes,
        workers=workers,
        cost=cost,
        capacity=capacity,
        cap_per_task=cap_per_task,
        at_once=at_once,
        outstanding=outstanding,
        barred=barred,
        score=score,
        worker_score=worker_score,
        diversity=diversity,
        features=features,
        worth=worth,
        budget=budget,
        stop=stop,
        seed=seed,
    )
    return told(found)


def told(asked: Asked) -> pl.DataFrame:
    """The pairs; where there are fewer than were wanted, ``StopAsking`` warns and says why."""
    if asked.reason:
        warn(asked.reason, StopAsking)
    return asked.frame


def plan(
    k: int,
    *,
    items: Items,
    expertise: Expertise | Skills,
    votes: Votes,
    workers: Any = None,
    cost: Any = None,
    capacity: Any = None,
    cap_per_task: int | None = None,
    at_once: int | None = None,
    outstanding: Any = None,
    barred: Any = None,
    score: str | Tensor = "entropy",
    worker_score: str = WORKER_SCORE,
    diversity: float = 0.0,
    features: Any = None,
    worth: float = 1.0,
    budget: float | None = None,
    stop: float = 0.0,
    seed: int = 0,
) -> Asked:
    """As ``ask``, with the reason in words where there are fewer pairs than were wanted."""
    _check(k, score, worker_score, diversity, worth, budget, cap_per_task, at_once)
    N = len(items.names)
    if N == 0:
        raise BadInput("there is nothing to ask about: the pool has no items")
    people = people_of(votes.workers, workers, cost, capacity)
    if not bool((people.capacity > 0).any()):
        raise BadInput("nobody can be asked: no worker is available with a capacity above zero")
    out_task, out_worker = _pairs(outstanding, items.names, people)
    task, worker = _voted(votes, items.names)
    busy = torch.bincount(out_worker, minlength=len(people.names))
    task, worker = torch.cat([task, out_task[out_task >= 0]]), torch.cat([worker, out_worker[out_task >= 0]])
    had = torch.bincount(task, minlength=N)
    not_task, not_worker = _pairs(barred, items.names, people)
    taken = keys(
        torch.cat([task, not_task[not_task >= 0]]),
        torch.cat([worker, not_worker[not_task >= 0]]),
        len(people.names),
    )
    room = torch.full((N,), k) if cap_per_task is None else (cap_per_task - had).clamp(0, k)
    room = room.clamp_max(at_once or _at_once(room.minimum(_free(taken, people.capacity > 0, N)), k))

    step = votes.V + len(out_task) + 1
    known, typical = _known(expertise, votes, people, N)
    chance = _chances(known, expertise, votes, people, worker_score, step, seed)
    pending = torch.bincount(out_task[out_task >= 0], minlength=N)
    gain, crowding, topic = _gain(items, score, typical, pending, seed), 0.0, None
    everything = torch.arange(N)
    if diversity > 0:
        topic = _topics(features, gain.of(everything, torch.full((N,), typical)), k, N)
        crowding = diversity * float(gain.of(everything, torch.full((N,), typical)).max())
    capacity_left = (people.capacity - busy).clamp_min(0)
    problem = Problem(
        gain,
        chance,
        people.cost / worth,
        capacity_left,
        room,
        taken,
        _fade(items.belief, typical) if int(room.max()) > 1 else None,
        topic,
        crowding,
        None if budget is None else budget / worth,
        stop / worth,
    )
    best = assign(problem, k)
    best = _explored(problem, best, worker_score, step, seed)
    return Asked(_frame(best, known, items, people, worth), _reason(problem, best, k, worth, stop), worth * best.bound)


def _check(
    k: int,
    score: str | Tensor,
    worker_score: str,
    diversity: float,
    worth: float,
    budget: float | None,
    cap_per_task: int | None,
    at_once: int | None,
) -> None:
    problems = []
    if k < 1:
        problems.append(f"k={k}: a batch of no votes asks nothing; give 1 or more")
    if budget is not None and not budget > 0:
        problems.append(f"budget={budget:g}: nothing can be asked for that; give more than 0")
    if not 0 <= diversity <= 1:
        problems.append(f"diversity={diversity:g} is not between 0 and 1")
    if not worth > 0:
        problems.append(f"worth={worth:g}: a unit of the score must be worth more than 0")
    for name, value in (("cap_per_task", cap_per_task), ("at_once", at_once)):
        if value is not None and value < 1:
            problems.append(f"{name}={value}; give 1 or more")
    if problems:
        raise BadOption(*problems)
    if isinstance(score, str) and score not in SCORES:
        raise unknown("score of items", score, SCORES)
    if worker_score not in WORKER_SCORES:
        raise unknown("score of workers", worker_score, WORKER_SCORES)


def _free(taken: Tensor, present: Tensor, N: int) -> Tensor:
    """How many of those present have not been asked about each item: N."""
    task, worker = taken // len(present), taken % len(present)
    return int(present.sum()) - torch.bincount(task[present[worker]], minlength=N)


def _at_once(room: Tensor, k: int) -> int:
    """The fewest votes on a task with which ``k`` fit, or as many as can."""
    k = min(k, int(room.sum()))
    return next((most for most in range(1, k) if int(room.clamp_max(most).sum()) >= k), max(k, 1))


def _voted(votes: Votes, names: Axis) -> tuple[Tensor, Tensor]:
    """Items and workers of the votes that are on items."""
    if names == votes.tasks:
        return votes.task.long(), votes.worker.long()
    place = names.codes(votes.tasks.names).cast(pl.Int64).fill_null(-1)
    task = torch.from_numpy(place.to_numpy().copy())[votes.task.long()]
    return task[task >= 0], votes.worker[task >= 0].long()


def _pairs(outstanding: Any, names: Axis, people: People) -> tuple[Tensor, Tensor]:
    """Positions of pairs that are out: -1 for a task that is no item; without workers who are not here."""
    if outstanding is None:
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    if hasattr(outstanding, "columns"):
        frame = pl.DataFrame({c: list(outstanding[c]) for c in ("task", "worker")})
    else:
        frame = pl.DataFrame(list(outstanding), schema=["task", "worker"], orient="row")
    if frame.is_empty():
        return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    frame = frame.unique(maintain_order=True)
    task, worker = (
        torch.from_numpy(axis.codes(as_names(frame[c], c)).cast(pl.Int64).fill_null(-1).to_numpy().copy())
        for axis, c in ((names, "task"), (people.names, "worker"))
    )
    return task[worker >= 0], worker[worker >= 0]


def _known(expertise: Expertise | Skills, votes: Votes, people: People, N: int) -> tuple[Expertise, float]:
    """p(right) of everybody on every item, and what is typical of those available."""
    if isinstance(expertise, Skills):
        chance = Expertise.alike(expertise.with_newcomers(people.newcomers).mean, N)
    else:
        chance = expertise.with_newcomers(people.newcomers)
        if len(chance.tasks) != N:
            raise BadInput(f"expertise has {len(chance.tasks):,} rows of tasks for {N:,} items; give one for each")
    if len(chance.workers) != len(people.names):
        M = len(chance.workers) - people.newcomers
        raise BadInput(f"expertise is of {M:,} workers, the votes of {votes.M:,}; give a row for each of votes.workers")
    return chance, float(_mean_chance(chance)[people.capacity > 0].mean())


def _chances(
    known: Expertise,
    expertise: Expertise | Skills,
    votes: Votes,
    people: People,
    worker_score: str,
    step: int,
    seed: int,
) -> Expertise:
    """p(right) to choose by. Items are dealt to groups, each with its own draw of everybody's skill.

    The best of each draw are made alike: what is drawn says who answers an item, not which item is asked about.
    """
    mean = _mean_chance(known)  # M
    if worker_score == "random":
        typical = mean[people.capacity > 0].mean()
        return Expertise.alike(typical.expand(len(mean)), len(known.tasks))
    if worker_score not in ("thompson", "ucb"):
        return known
    if isinstance(expertise, Skills):
        skills = expertise.with_newcomers(people.newcomers)
    else:
        count = torch.nn.functional.pad(votes.whole.worker_offsets.diff(), (0, people.newcomers)) + 2.0
        skills = Skills(mean.double() * count, (1 - mean.double()) * count)
    draws = min(max(DEALT // max(len(known.tasks), 1), DRAWS[0]), DRAWS[1])
    drawn = skills.thompson(seed, step, draws) if worker_score == "thompson" else skills.upper(step)[:, None]  # M,S
    dealt = torch.randperm(len(known.tasks), generator=generator(seed, "dealt", step)) % drawn.shape[1]  # N
    eps = torch.finfo(torch.float32).eps
    best = drawn[people.capacity > 0].amax(0)  # S
    drawn = drawn * (best.mean() / best.clamp_min(eps))  # M,S
    return known.shifted(torch.logit(drawn, eps) - torch.logit(skills.mean, eps)[:, None], dealt)


def _mean_chance(chance: Expertise) -> Tensor:
    """Each worker's mean p(right) over (some evenly spread) items: M."""
    N = len(chance.tasks)
    rows = torch.arange(0, N, max(1, N // 1000))[: 1 if chance.same_everywhere else None]
    return torch.sigmoid(chance.block(rows)).mean(0)


def _gain(items: Items, score: str | Tensor, typical: float, pending: Tensor, seed: int) -> Gain:
    """What a vote on each item is worth, after those that are out (``pending``: N); equal ones in random order."""
    N = len(items.names)
    weight = 1 - TIES * torch.rand(N, generator=generator(seed, "ties"))
    if bool(pending.any()):
        weight = weight * _fade(items.belief, typical) ** pending
    if score == "information":
        return Unequal(Information(items.belief), weight)
    if score == "error":
        return Unequal(Rise(items.belief, AHEAD), weight)
    return Worth(_values(items, score, typical, seed) * weight)


def _values(items: Items, score: str | Tensor, typical: float, seed: int) -> Tensor:
    if not isinstance(score, str):
        value = torch.as_tensor(score).float()
        if value.shape != (len(items.names),) or not bool((value >= 0).all()):
            raise BadInput(f"score has the shape {tuple(value.shape)}; give a number, zero or more, for each item")
        return value
    if score == "random":
        return 1 - torch.rand(len(items.names), generator=generator(seed, "items"))
    if score in ("bald", "relabel") and items.samples is None:
        raise BadInput(
            f"score={score} needs draws of a model, and there are none: give X to the ask of one with dropout, such "
            "as DALC, or use entropy, margin, information or error"
        )
    if score == "bald":
        assert items.samples is not None
        return values.bald(items.samples)
    if score == "relabel":
        assert items.samples is not None
        evidence = torch.zeros_like(items.belief) if items.evidence is None else items.evidence
        return values.label_or_relabel(items.samples, evidence, typical)
    return values.entropy(items.belief) if score == "entropy" else values.margin(items.belief)


def _fade(belief: Tensor, typical: float) -> Tensor:
    """The share of an item's doubt that a typical vote leaves: N."""
    doubt = values.entropy(belief)
    left = doubt - values.information(belief, typical)
    return torch.where(doubt > 0, left / doubt.clamp_min(torch.finfo(doubt.dtype).tiny), 0.0).clamp(0, 1)


def _topics(features: Any, gain: Tensor, k: int, N: int) -> Tensor:
    """A topic for each item: as given, or by k-means of the features of the most promising items."""
    if features is None:
        raise BadOption("diversity needs features (a row for each item), or the topic of each item as an integer")
    rows = torch.as_tensor(np.asarray(features))
    if len(rows) != N:
        raise BadInput(f"features has {len(rows):,} rows for {N:,} items; give one for each")
    if rows.dim() == 1 and not rows.is_floating_point():
        topic: Tensor = torch.unique(rows, return_inverse=True)[1]
        return topic
    rows = rows.reshape(N, -1).float()
    some = gain.topk(min(N, LOOKED_AT)).indices
    centres, _ = grouped(rows[some], k)
    parts = [torch.cdist(part, centres).argmin(1) for part in torch.split(rows, 1 << 14)]
    return torch.cat(parts)


def _explored(problem: Problem, best: Assignment, worker_score: str, step: int, seed: int) -> Assignment:
    """Some of the pairs with another worker, at random among all who may be asked about the task."""
    count = len(best)
    if worker_score == "epsilon":
        rng = generator(seed, "explorers", step)
        which = torch.randperm(count, generator=rng)[: explored(count, step, seed)]
    elif worker_score == "random":
        which = torch.arange(count)
    else:
        return best
    rng = generator(seed, "explored", step)
    worker, score = best.worker.clone(), best.score.clone()
    taken = set(problem.taken.tolist()) | set((best.task * problem.M + worker).tolist())
    left = problem.capacity - torch.bincount(worker, minlength=problem.M)
    money = None if problem.budget is None else problem.budget - float(problem.price[worker].sum())
    for row in which.tolist():
        task, was = int(best.task[row]), int(worker[row])
        left[was] += 1
        taken.discard(task * problem.M + was)
        may = left > 0
        if money is not None:
            may &= problem.price <= money + problem.price[was]
            may[was] = True  # whatever rounding says
        names = torch.tensor([w for w in may.nonzero()[:, 0].tolist() if task * problem.M + w not in taken])
        now = int(names[torch.randint(len(names), (1,), generator=rng)])
        if money is not None:
            money += float(problem.price[was] - problem.price[now])
        left[now] -= 1
        taken.add(task * problem.M + now)
        worker[row] = now
        before, after = _gains(problem, task, [was, now])
        place = (score[row] + problem.price[was]) / before if before > 0 else 1.0  # what counts of it there
        score[row] = place * after - problem.price[now]
    return Assignment(best.task, worker, score, float(score.sum()), best.bound)


def _gains(problem: Problem, task: int, workers: list[int]) -> list[float]:
    """What each of these workers would gain on a task that nobody else is asked about."""
    tasks, who = torch.full((len(workers),), task), torch.tensor(workers)
    out: list[float] = problem.gain.of(tasks, problem.expertise.right(tasks, who)).tolist()
    return out


def _frame(best: Assignment, known: Expertise, items: Items, people: People, worth: float) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "task": items.names.names.gather(best.task.numpy()),
            "worker": people.names.names.gather(best.worker.numpy()),
            "score": (worth * best.score).numpy(),
            "right": known.right(best.task, best.worker).numpy(),
            "cost": people.cost[best.worker].numpy(),
        }
    )


def _reason(problem: Problem, best: Assignment, k: int, worth: float, stop: float) -> str:
    """Why there are fewer than ``k`` pairs; empty where there are as many."""
    found = len(best)
    if found == k:
        return ""
    start = "stop: " if found == 0 else f"{found:,} of {k:,} votes: "
    if not bool((problem.room > 0).any()):
        return start + "every item has as many votes as cap_per_task allows"
    if int(problem.capacity.clamp_max(k).sum()) <= found:
        return start + "the available workers can give no more votes"
    if int(problem.room.sum()) <= found:
        return start + "the items can take no more votes"
    if problem.budget is not None and found:
        money = problem.budget - float(problem.price[best.worker].sum())
        if money < float(problem.price[problem.capacity > 0].min()):
            return start + "the budget is spent"
    gain, price = _best_left(problem, best)
    if gain == -torch.inf:
        return start + "everyone available has been asked about every item already"
    if gain - price <= problem.least + SLACK * float(Search(problem).bound.max()):
        than = f"{worth * price:.3g}" + (f" and the {stop:g} that a vote must bring" if stop else "")
        return start + f"the best vote left is expected to gain {worth * gain:.3g}, not more than its cost of {than}"
    return start + "the limits leave no other pair that fits"


def _best_left(problem: Problem, best: Assignment) -> tuple[float, float]:
    """Gain and price of the best pair that is left: -inf where none is."""
    M = problem.M
    left = replace(
        problem,
        room=problem.room - torch.bincount(best.task, minlength=len(problem.room)),
        capacity=problem.capacity - torch.bincount(best.worker, minlength=M),
        taken=torch.unique(torch.cat([problem.taken, best.task * M + best.worker])),
    )
    found = (-torch.inf, 0.0)
    for tasks in torch.split(Search(left).order, 256):
        tasks = tasks[left.room[tasks] > 0]
        if len(tasks):
            gain = left.gains(tasks)
            place = int((gain - left.price).argmax())
            found = float(gain.flatten()[place]), float(left.price[place % M])
        if found[0] > -torch.inf:
            break
    return found
