"""How far the votes agree beyond chance, with bootstrap intervals.

[Fl71] Fleiss 1971, "Measuring nominal scale agreement among many raters".
[Gw14] Gwet 2014, "Handbook of Inter-Rater Reliability", 4th edition.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import pad

from voxpop.audit.metrics import Interval, Metric, Nominal, Ordinal
from voxpop.errors import BadInput, BadOption, unknown, warn
from voxpop.numerics.seeds import generator
from voxpop.votes import Axis, Votes

MetricName = Literal["nominal", "ordinal", "interval"]

_GROUPS = 2048  # rows that are resampled: tasks, or random groups of them where there are more
_CELLS = 1 << 22  # numbers held at a time


@dataclass(frozen=True)
class Estimate:
    """A value and its bootstrap interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """Agreement among the votes of tasks that have two or more."""

    alpha: Estimate  # Krippendorff's
    kappa: Estimate  # Fleiss'
    agreeing_pairs: Estimate  # percentage agreement, as a share
    compared_tasks: int  # with two votes or more
    compared_votes: int  # on those tasks
    votes: int  # all
    metric: MetricName  # of alpha
    level: float
    resamples: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: None instead of NaN."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def agreement(
    votes: Votes, level: float = 0.9, resamples: int = 1000, seed: int = 0, metric: MetricName = "nominal"
) -> Agreement:
    """Krippendorff's alpha, Fleiss' kappa and percentage agreement; intervals hold ``level`` of the resamples of tasks.

    Only tasks with two or more votes say anything; a worker's second vote on a task counts like any other.

    - ``agreeing_pairs``: take one of those tasks at random, then two of its votes: the chance that they agree.
    - ``kappa``: (P - E) / (1 - E) with that chance P, and E the chance that two votes agree which come from two tasks
      taken that way. So each task weighs the same, however many votes it has ([Gw14]); where all have equally
      many, it is Fleiss' kappa as printed ([Fl71]).
    - ``alpha``: each vote weighs the same. ``metric`` says how far apart two labels are: "nominal" (names),
      or "ordinal" and "interval" for classes that are numbers. The other two take labels as names always.

    Where all votes name one class, agreement by chance is certain: alpha and kappa are undefined (NaN).
    Above 2048 tasks, random groups of tasks are resampled instead: the same interval, at a fixed cost.
    """
    if not 0 < level < 1:
        raise BadOption(f"level={level} must lie between 0 and 1, such as 0.9")
    if resamples < 1:
        raise BadOption(f"resamples={resamples} is too few; give 1 or more (1000 are usual)")
    distance = _metric(metric, votes.classes)
    per_task = votes.offsets.diff()  # N
    tasks = (per_task > 1).nonzero()[:, 0]  # T
    if tasks.numel():
        draw = generator(seed, "agreement")
        rows = _rows(votes, tasks, distance, draw)  # G,C
        found = _measure(rows.sum(0, keepdim=True), votes.K, distance)[0]  # 3
        if math.isnan(found[0]):
            warn("the votes that can be compared name one class only, so alpha and kappa are undefined")
        ends = _interval(rows, votes.K, distance, level, resamples, draw)  # 2,3
    else:
        warn("no task has two votes, so there is no agreement to measure; ask for more votes on some tasks")
        found, ends = torch.full((3,), torch.nan), torch.full((2, 3), torch.nan)
    alpha, kappa, agreeing = (Estimate(*numbers) for numbers in torch.cat([found[None], ends]).t().tolist())
    compared = int(per_task[tasks].sum())
    return Agreement(alpha, kappa, agreeing, tasks.numel(), compared, votes.V, metric, level, resamples)


def _metric(name: MetricName, classes: Axis) -> Metric:
    if name not in get_args(MetricName):
        raise unknown("metric", name, get_args(MetricName))
    if name == "nominal":
        return Nominal()
    numbers = classes.names.cast(pl.Float64, strict=False)
    odd = classes.names.filter(numbers.is_null() | ~numbers.is_finite())
    if len(odd):
        raise BadInput(f"class '{odd[0]}' is not a number, as metric='{name}' needs; take metric='nominal'")
    values = torch.from_numpy(numbers.to_numpy().copy())  # K
    return Interval(values - values.mean()) if name == "interval" else Ordinal(values.argsort())


def _rows(votes: Votes, tasks: Tensor, metric: Metric, draw: torch.Generator) -> Tensor:
    """Sums over each group of tasks (G,C): their number, agreement, shares of classes, and what the metric needs."""
    T, K = tasks.numel(), votes.K
    width = metric.sums(torch.zeros(1, 1, K, dtype=torch.float64)).shape[1]  # S
    n = math.ceil(T / min(_GROUPS, max(64, _CELLS // width)))  # tasks in a group
    if n > 1:
        tasks = tasks[torch.randperm(T, generator=draw)]
    out = []
    step = n * max(1, _CELLS // (n * K + width))
    for start in range(0, T, step):
        some = tasks[start : start + step]
        counts = votes.batch(some).counts().double()  # B,K
        groups = pad(counts, (0, 0, 0, -len(some) % n)).view(-1, n, K)  # g,n,K
        m = groups.sum(2)  # g,n
        agreeing = (groups.square().sum(2) - m) / (m * (m - 1)).clamp_min(1)  # g,n: P_i of [Fl71] eq. 2
        shares = groups / m.clamp_min(1)[:, :, None]
        named = ((m > 0).sum(1, keepdim=True), agreeing.sum(1, keepdim=True), shares.sum(1))
        out.append(torch.cat([*named, metric.sums(groups)], 1))
    return torch.cat(out)


def _measure(sums: Tensor, K: int, metric: Metric) -> Tensor:
    """alpha, kappa and agreeing pairs from sums over tasks: R,C -> R,3."""
    tasks, agreeing, shares = sums[:, 0], sums[:, 1], sums[:, 2 : 2 + K]
    P = agreeing / tasks  # R, [Fl71] eq. 3
    p = shares / tasks[:, None]  # R,K, [Fl71] eq. 4
    E = p.square().sum(1)  # R, [Fl71] eq. 5
    varied = (shares > 0).sum(1) > 1
    kappa = torch.where(varied, (P - E) / (1 - E), torch.nan)
    return torch.stack([metric.alpha(sums[:, 2 + K :]), kappa, P], 1)


def _interval(rows: Tensor, K: int, metric: Metric, level: float, resamples: int, draw: torch.Generator) -> Tensor:
    """Both ends (2,3) from resampled rows; those resamples in which a measure is undefined are left out."""
    G, C = rows.shape
    if G == 1:
        return torch.full((2, 3), torch.nan, dtype=torch.float64)
    measured = []
    step = max(1, _CELLS // (G + C))
    for start in range(0, resamples, step):
        R = min(step, resamples - start)
        place = torch.randint(G, (R, G), generator=draw) + G * torch.arange(R)[:, None]
        times = torch.bincount(place.view(-1), minlength=R * G).view(R, G)  # how often each row was drawn
        measured.append(_measure(times.double() @ rows, K, metric))
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=torch.float64)
    return torch.cat(measured).nanquantile(tails, 0)  # 2,3


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
