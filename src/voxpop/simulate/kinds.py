"""The named crowds. Their docstrings are what people see in a list.

[Kim] Kim, Cho, Kim and Ok, "Robust Deep Learning from Crowds with Belief Propagation".
[Cao] Cao, Xu, Kong and Wang, "Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds".
[DALC] "Deep Active Learning from targeted Crowds".
[Li] Li, Huang and Chen, "Crowdsourcing Aggregation with Deep Bayesian Learning".
[KOS] Karger, Oh and Shah 2011, "Iterative Learning for Reliable Crowdsourcing Systems".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from voxpop.errors import BadOption, unknown
from voxpop.simulate import tables
from voxpop.simulate.answers import ByDifficulty, ByExpertise, FromTables
from voxpop.simulate.assignments import Complete, Random, Regular
from voxpop.simulate.checks import at_least, chance, right_wrong
from voxpop.simulate.copying import Copying
from voxpop.simulate.crowd import Crowd
from voxpop.simulate.kind import Kind, Setting
from voxpop.simulate.seniors import crew, seniors

Alpha = tuple[float, float]  # right, wrong
STYLES = ("uniform", "constant", "marginal")

# -- everyone of one sort ---------------------------------------------------------------------


def one_coin(s: Setting, *, alpha: Alpha = (2.0, 1.0)) -> Crowd:
    """Each worker has one accuracy, from Beta(right, wrong)."""
    return Crowd.of(("worker", tables.one_coin(s.workers, s.classes, right_wrong(alpha), s.rng)))


def two_coin(s: Setting, *, alpha: Alpha = (2.0, 1.0)) -> Crowd:
    """Each worker has an accuracy for each class, from Beta(right, wrong)."""
    return Crowd.of(("worker", tables.two_coin(s.workers, s.classes, right_wrong(alpha), s.rng)))


def dirichlet(s: Setting, *, alpha: Alpha = (2.0, 1.0)) -> Crowd:
    """Each row of each confusion table is from a Dirichlet: right, and wrong shared by the wrong labels."""
    return Crowd.of(("worker", tables.dirichlet_rows(s.workers, s.classes, right_wrong(alpha), s.rng)))


def regular(s: Setting, *, alpha: Alpha = (2.0, 1.0), spammers: int = 0) -> Crowd:
    """One-coin workers on a regular graph, 3 votes a task and 4 tasks a worker; spammers label everything on top."""
    bad = min(int(at_least("spammers", spammers, 0)), s.workers)
    return Crowd.of(
        ("worker", tables.one_coin(s.workers - bad, s.classes, right_wrong(alpha), s.rng)),
        ("spammer", tables.uniform_spammers(bad, s.classes)),
        assignment=Regular(3),
        reach=_last(s.workers, bad, 1.0),
    )  # [Kim] section 4.1


def _regular_crew(tasks: int, votes_per_task: float | None, options: Mapping[str, Any]) -> int:
    """Four tasks a worker, and the spammers."""
    votes = tasks * (3 if votes_per_task is None else votes_per_task)
    return max(1, int(votes // 4)) + int(at_least("spammers", options.get("spammers", 0), 0))


def sparse(s: Setting, *, alpha: Alpha = (4.0, 1.0)) -> Crowd:
    """1.3 votes a task, 15 classes, and a few workers do most."""
    workers = tables.dirichlet_rows(s.workers, s.classes, right_wrong(alpha), s.rng)
    return Crowd.of(("worker", workers), assignment=Random(1.3, skew=1.0))


def biased(s: Setting, *, bias: float = 0.3, together: bool = False, alpha: Alpha = (8.0, 2.0)) -> Crowd:
    """Workers who often say a favourite label instead of what they think: each its own, or all the first."""
    favourite = torch.randint(s.classes, (s.workers,), generator=s.rng) * (not together)
    sober = tables.one_coin(s.workers, s.classes, right_wrong(alpha), s.rng)
    return Crowd.of(("biased", tables.biased(sober, favourite, chance("bias", bias))))


def class_experts(s: Setting, *, known: float = 0.5, right: float = 0.9) -> Crowd:
    """Each worker is good in some classes, drawn for each, and guesses in the others."""
    classes = max(1, round(chance("known", known) * s.classes))
    workers = tables.class_experts(s.workers, s.classes, classes, chance("right", right), s.rng)
    return Crowd.of(("class expert", workers))


def difficulty(s: Setting, *, skill: tuple[float, float] = (2.0, 1.0), spread: float = 1.0) -> Crowd:
    """Tasks differ in ease: right with the chance sigmoid(skill * ease); skill is normal, log ease too."""
    mean, deviation = skill
    worker = mean + at_least("the deviation of skill", deviation, 0) * torch.randn(s.workers, generator=s.rng)  # M
    ease = (at_least("spread", spread, 0) * torch.randn(s.tasks, generator=s.rng)).exp()  # N
    return Crowd(("worker",) * s.workers, ByDifficulty(worker, ease, s.classes))


def expertise(s: Setting, *, features: Any = None) -> Crowd:
    """Each worker is right in a part of the features' space, about 0.65 of it (N,D; random ones unless given)."""
    x = torch.randn(s.tasks, 10, generator=s.rng) if features is None else torch.as_tensor(features).float()  # N,D
    if x.dim() != 2 or len(x) != s.tasks:
        raise BadOption(f"features of shape {tuple(x.shape)}: give one row for each of the {s.tasks} tasks")
    factor = _between(-0.3, 0.6, (x.shape[1], 10), s)  # D,d: F of [DALC] section 5.2
    worker = _between(-0.3, 0.6, (s.workers, 10), s)  # M,d: u
    place = (x - x.mean(0)) @ factor  # N,d
    place = place / place.square().mean(0).sqrt().clamp_min(1e-6) + 0.3  # the bias that sets the average
    return Crowd(("worker",) * s.workers, ByExpertise(worker, place, s.classes))


def prototypes(s: Setting, *, prototypes: Any = None, weights: Sequence[float] | None = None) -> Crowd:
    """Each worker is one of some given tables (S,K,K); a hammer, a sloppy worker and a spammer unless told."""
    K = s.classes
    if prototypes is None:
        sloppy = tables.from_accuracy(torch.full((1, K), 0.6))
        prototypes = torch.cat([tables.hammers(1, K), sloppy, tables.uniform_spammers(1, K)])
    given = torch.as_tensor(prototypes, dtype=torch.float32)  # S,K,K
    if given.dim() != 3 or given.shape[1:] != (K, K) or not bool(((given >= 0).all(2) & (given.sum(2) > 0)).all()):
        raise BadOption(f"prototypes of shape {tuple(given.shape)}: give S x {K} x {K} chances [which, truth, label]")
    given = given / given.sum(2, keepdim=True)
    share = torch.ones(len(given)) if weights is None else torch.as_tensor(weights, dtype=torch.float32)  # S
    if share.shape != (len(given),) or not (bool((share >= 0).all()) and bool(share.sum() > 0)):
        raise BadOption(f"weights={weights}: give one number for each of the {len(given)} prototypes, none below zero")
    which = torch.multinomial(share, s.workers, replacement=True, generator=s.rng)  # M
    return Crowd(tuple(f"prototype {w}" for w in which.tolist()), FromTables(given[which]))


# -- mixtures ---------------------------------------------------------------------------------


def experts(s: Setting, *, share: float = 0.3, expert: float = 0.95, sloppy: float = 0.6) -> Crowd:
    """A few experts among many sloppy workers."""
    few, many = _parts(s.workers, chance("share", share), 1 - share)
    return Crowd.of(
        ("expert", tables.from_accuracy(torch.full((few, s.classes), chance("expert", expert)))),
        ("sloppy", tables.from_accuracy(torch.full((many, s.classes), chance("sloppy", sloppy)))),
    )


def hammer_spammer(s: Setting, *, hammers: float = 0.5) -> Crowd:
    """Some workers are always right, the others guess."""
    right, guess = _parts(s.workers, chance("hammers", hammers), 1 - hammers)
    return Crowd.of(
        ("hammer", tables.hammers(right, s.classes)), ("spammer", tables.uniform_spammers(guess, s.classes))
    )  # [KOS] section 2.1


def spammers(
    s: Setting, *, share: float = 0.3, style: str = "mixed", reach: float = 0.0, alpha: Alpha = (8.0, 2.0)
) -> Crowd:
    """Good workers and spammers: uniform, constant or marginal (or mixed); with a reach, on that share of all tasks."""
    bad, good = _parts(s.workers, chance("share", share), 1 - share)
    return Crowd.of(
        ("worker", tables.one_coin(good, s.classes, right_wrong(alpha), s.rng)),
        ("spammer", _spammers(bad, s, style)),
        reach=_last(s.workers, bad, chance("reach", reach)),
    )


def extreme_spammers(s: Setting, *, spammers: int = 1, reach: float = 1.0, alpha: Alpha = (2.0, 1.0)) -> Crowd:
    """One-coin workers with 3 votes a task, and a spammer (or more) who labels everything at random."""
    bad = min(int(at_least("spammers", spammers, 0)), s.workers)
    return Crowd.of(
        ("worker", tables.one_coin(s.workers - bad, s.classes, right_wrong(alpha), s.rng)),
        ("spammer", tables.uniform_spammers(bad, s.classes)),
        assignment=Random(3),
        reach=_last(s.workers, bad, chance("reach", reach)),
    )  # [Kim] section 4.1, "Robustness to Extreme-spammer"


def adversaries(s: Setting, *, share: float = 0.2, right: float = 0.1, alpha: Alpha = (8.0, 2.0)) -> Crowd:
    """Good workers, and some who agree to say the next label instead of the true one."""
    bad, good = _parts(s.workers, chance("share", share), 1 - share)
    return Crowd.of(
        ("worker", tables.one_coin(good, s.classes, right_wrong(alpha), s.rng)),
        ("adversary", tables.adversaries(bad, s.classes, chance("right", right))),
    )


def naive_majority(s: Setting, *, juniors: float = 0.5, alpha: Alpha = (14.0, 6.0)) -> Crowd:
    """Seniors, and juniors who say the first class always; everyone votes on everything."""
    naive, senior = _parts(s.workers, chance("juniors", juniors), 1 - juniors)
    return Crowd.of(
        ("senior", tables.one_coin(senior, s.classes, right_wrong(alpha), s.rng)),
        ("junior", tables.constant_spammers(torch.zeros(naive, dtype=torch.int64), s.classes)),
        assignment=Complete(),
    )  # [Cao] case 4.2


def copies(
    s: Setting, *, share: float = 0.5, sources: int = 3, fidelity: float = 1.0, alpha: Alpha = (6.0, 4.0)
) -> Crowd:
    """Independent workers, and followers who copy a few of them wherever those vote."""
    following = min(round(chance("share", share) * s.workers), s.workers - 1)  # someone must be copied
    free = s.workers - following
    copied = min(int(at_least("sources", sources, 1)), free)
    return Crowd.of(
        ("worker", tables.one_coin(free, s.classes, right_wrong(alpha), s.rng)),
        ("copy", tables.one_coin(following, s.classes, right_wrong(alpha), s.rng)),
        assignment=Random(3),
        copying=_copying(s, following, copied, fidelity),
    )  # [Cao] case 4.3


def partly_observed(s: Setting, *, fraction: float = 1.0, f1: tuple[float, float] = (0.7, 0.8)) -> Crowd:
    """Workers with an F1 score between two bounds on everything, of whose votes a fraction is observed (9 workers)."""
    low, high = (chance("f1", bound) for bound in f1)
    score = low + (high - low) * torch.rand(s.workers, generator=s.rng)  # M
    return Crowd.of(
        ("worker", tables.from_f1(score, s.prior)), assignment=Complete(chance("fraction", fraction))
    )  # [Li] section 4


def one_expert(s: Setting) -> Crowd:
    """One worker is always right, one guesses, and all the others copy the guess, on every task."""
    source = torch.full((s.workers,), 1).index_fill_(0, torch.arange(min(2, s.workers)), -1)
    return Crowd.of(
        ("expert", tables.hammers(1, s.classes)),
        ("spammer", tables.uniform_spammers(min(1, s.workers - 1), s.classes)),
        ("copy", tables.uniform_spammers(max(0, s.workers - 2), s.classes)),
        assignment=Complete(),
        copying=Copying(source),
    )  # [Cao] example E.2


def believable(s: Setting, *, fidelity: float = 0.9) -> Crowd:
    """What real crowds look like: experts, sloppy workers, spammers and copies; a few workers do most."""
    expert, sloppy, spam, following = _parts(s.workers, 0.4, 0.35, 0.15, 0.1)
    doubtful = tables.dirichlet_rows(sloppy + following, s.classes, (6.0, 4.0), s.rng)
    return Crowd.of(
        ("expert", tables.dirichlet_rows(expert, s.classes, (18.0, 2.0), s.rng)),
        ("sloppy", doubtful[:sloppy]),
        ("spammer", _spammers(spam, s, "mixed")),
        ("copy", doubtful[sloppy:]),
        assignment=Random(5, varying=True, skew=0.8),
        copying=_copying(s, following, expert + sloppy, fidelity),
    )


# -- parts of them ----------------------------------------------------------------------------


def _parts(whole: int, *shares: float) -> list[int]:
    """Whole numbers in these shares that sum to the whole: the largest remainders are rounded up."""
    exact = [whole * share for share in shares]
    counts = [int(e) for e in exact]
    neediest = sorted(range(len(shares)), key=lambda i: counts[i] - exact[i])
    for i in neediest[: whole - sum(counts)]:
        counts[i] += 1
    return counts


def _between(low: float, high: float, shape: tuple[int, int], s: Setting) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=s.rng)


def _spammers(count: int, s: Setting, style: str) -> Tensor:
    """Tables of spammers of one style, or of all three."""
    if style == "mixed":
        return torch.cat(
            [_spammers(n, s, one) for one, n in zip(STYLES, _parts(count, 1 / 3, 1 / 3, 1 / 3), strict=True)]
        )
    if style == "uniform":
        return tables.uniform_spammers(count, s.classes)
    if style == "constant":
        return tables.constant_spammers(torch.randint(s.classes, (count,), generator=s.rng), s.classes)
    if style == "marginal":
        return tables.marginal_spammers(count, s.prior)
    raise unknown("style of spammers", style, (*STYLES, "mixed"))


def _last(workers: int, count: int, reach: float) -> Tensor:
    """The reach of each worker: only the last ones have one."""
    return torch.where(torch.arange(workers) < workers - count, 0.0, reach)  # M


def _copying(s: Setting, followers: int, sources: int, fidelity: float) -> Copying:
    """The last workers copy some of the first, each drawn at random."""
    source = torch.full((s.workers,), -1)
    source[s.workers - followers :] = torch.randint(max(sources, 1), (followers,), generator=s.rng)
    return Copying(source, fidelity)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("one-coin", one_coin),
            Kind("two-coin", two_coin),
            Kind("dirichlet", dirichlet),
            Kind("regular", regular, workers=750, classes=2, crew=_regular_crew),
            Kind("sparse", sparse, classes=15),
            Kind("biased", biased),
            Kind("class-experts", class_experts),
            Kind("difficulty", difficulty),
            Kind("expertise", expertise),
            Kind("prototypes", prototypes),
            Kind("experts", experts),
            Kind("hammer-spammer", hammer_spammer),
            Kind("spammers", spammers),
            Kind("extreme-spammers", extreme_spammers),
            Kind("adversaries", adversaries),
            Kind("naive-majority", naive_majority, workers=10),
            Kind("copies", copies),
            Kind("seniors", seniors, workers=5, classes=2, crew=crew),
            Kind("partly-observed", partly_observed, workers=9, classes=2),
            Kind("one-expert", one_expert, workers=101, classes=2),
            Kind("believable", believable),
        )
    }
)
