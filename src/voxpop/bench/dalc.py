"""Yang, Drake, Damianou and Maarek, "Leveraging crowdsourcing data for deep active learning": tables 1 and 2, figure 4.

Table 1 is on a simulated crowd: as many users as items, u and F uniform on (-0.3, 0.6) with d = 10, and an annotation
is right where eta = sigmoid(u'Fx) is above a half (section 5.2; its sign is that of eq. 6). The paper has 50,000 users,
of which 1 in 10,000 to 1 in 10 annotate an item: here it is the votes of an item that are kept, 5, 50 and 500.

How many votes are wrong is up to the features. The paper's are queries, that is a few words. With a one for each of
three words eta is 0.65 on average as it stands, as in figure 2, and 10% of the votes are wrong, so that of five votes
the majority is right in 99.1% (the paper finds 99.06). So images are put in three words. Pixels are many small numbers,
which must be scaled to bring eta to 0.65; then 3% are wrong. The third crowd has pixels, with topics shifted until 10%
are.

The other parts are on people's votes where there are some, else on those of a crowd whose members are right in a part
of the features' space.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from voxpop.active.expertise import grouped
from voxpop.bench.claims import Claim, at_least
from voxpop.bench.data import Data, load
from voxpop.bench.experiment import Experiment, Key, Part, Settings
from voxpop.bench.results import Results
from voxpop.bench.trials import accuracy
from voxpop.loop.rehearsal import STRATEGIES, chosen
from voxpop.methods.registry import make
from voxpop.numerics.seeds import generator
from voxpop.numerics.segments import scatter_sum
from voxpop.simulate import ByExpertise, Crowd, Random, simulate_votes_on
from voxpop.simulate.subsets import on_tasks
from voxpop.votes import Votes

TOPICS, BETWEEN, RELIABLE = 10, (-0.3, 0.6), 0.65  # section 5.2
WORDS, KINDS_OF_WORD = 3, 32  # of an item, and for each of them
TABLE_1 = {  # votes of an item -> accuracy of the labels, correlation of the users' expertise, of the reliability
    "5": (0.9906, 0.9438, 0.5751),
    "50": (0.9996, 0.9921, 0.5891),
    "500": (0.9998, 0.9956, 0.6323),
}
FEW, MANY = ("5", "50"), ("500",)
CORRELATIONS = ("labels", "expertise", "reliability")
TABLE_2 = {  # accuracy and AUC on Alexa's data
    "MV": (0.6068, 0.6302),
    "LFC": (0.6070, 0.6304),
    "STAL": (0.6091, 0.6325),
    "DLC/LR": (0.6093, 0.6325),
    "DLC/Sparse": (0.6710, 0.6860),
    "DLC": (0.6886, 0.7235),
}
FORMS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "MV": ("two-stage", {"model": "linear", "aggregate": "majority-vote", "hard": True}),
    "LFC": ("lfc", {}),
    "STAL": ("stal", {}),
    "DLC/LR": ("dalc", {"model": "linear"}),
    "DLC/Sparse": ("dalc", {"low_rank": False}),
    "DLC": ("dalc", {}),
}
PARTS_2 = ("classifier", "auc")
CASE, OURS, MAJORITY = "test", "dalc", "majority-vote"
SURE = "dalc without doubt"  # workers' embeddings are points, as in the paper
RIGHT = "whether right"  # as if it were the reliability: what knowing nothing else of a vote would give
ALL = "all votes"
EXPERTS = {"the expert's vote": 1, "two experts' votes": 2, "three experts' votes": 3}
ANY = {"any one vote": 1, "any two votes": 2, "any three votes": 3}
CROWDED = 5  # votes of an item, where a crowd is simulated and experts are to be chosen among its members
ALGORITHM_2 = "Algorithm 2"


def parts(settings: Settings) -> tuple[Part, ...]:
    quick = settings.quick
    return (
        *(
            Part(
                name,
                f"table 1: a simulated crowd, {what}, by votes of an item",
                cases,
                (OURS, SURE, MAJORITY, RIGHT),
                partial(_simulated, crowd),
                (*CORRELATIONS, "expertise everywhere"),
                "votes of an item",
                "accuracy or correlation",
                published=_published_1(),
                seeds=min(settings.seeds, seeds),
                claims=_claims_1,
            )
            for name, what, crowd, cases, seeds in (
                ("table-1", "items of three words", in_words, FEW, 5),
                ("table-1-many", "items of three words", in_words, MANY, 3),
                ("table-1-pixels", "pixels, scaled", in_pixels, FEW, 3),
                ("table-1-wrong", "pixels, 10% of the votes wrong", partial(in_pixels, wrong=0.1), FEW, 3),
            )
            if not (quick and cases == MANY)
        ),
        Part(
            "table-2",
            f"table 2: methods on {settings.on}",
            (CASE,),
            tuple(FORMS),
            _methods,
            ("classifier", "auc", "inference"),
            "tasks",
            published={(CASE, m, part): v for m, row in TABLE_2.items() for part, v in zip(PARTS_2, row, strict=True)},
            beside="the paper, on Alexa's data",
            claims=_claims_2,
        ),
        *(
            Part(
                name,
                f"figure 4: {what}, and what held-out votes say of it",
                cases[1:4] if quick else cases,
                (OURS,),
                run,
                ("classifier", "auc", "foretold"),
                what,
                "accuracy, AUC, log probability of a held-out vote",
                shares=False,
                seeds=min(settings.seeds, 3),
                claims=_claims_4,
            )
            for name, what, run, cases in (
                ("topics", "topics d", _topics, ("5", "10", "20", "50", "100")),
                ("penalty", "penalty lambda", _penalty, ("0.01", "0.1", "1", "10", "100")),
            )
        ),
        Part(
            "inner",
            "the crowd's M-step: L-BFGS against Algorithm 2",
            ("5", "10", "20"),
            ("L-BFGS", ALGORITHM_2),
            _inner,
            ("bound", "classifier", "inference", "seconds"),
            "steps, or passes over the votes, in an M-step",
            "see each panel",
            shares=False,
            seeds=min(settings.seeds, 5),
            claims=_claims_inner,
        ),
        Part(
            "saving",
            "votes of chosen experts against all votes on the same items",
            (CASE,),
            (ALL, *EXPERTS, *ANY),
            _saving,
            ("classifier", "auc", "inference", "votes of an item"),
            "tasks",
            "accuracy, AUC, votes",
            shares=False,
            claims=_claims_saving,
        ),
    )


EXPERIMENT = Experiment(
    "dalc",
    "Yang, Drake, Damianou and Maarek: DALC",
    "Labels, expertise and reliability from sparse votes; the low rank; one expert's vote for all votes.",
    parts,
    defaults=Settings(seeds=10),
    quick=Settings(seeds=2, epochs=10, quick=True),
    data=("digits", "fashion", "cifar10n", "labelme"),
)


# -- cells ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Targeted:
    """A crowd of section 5.2: what the learner sees, the votes, and each one's true reliability eta."""

    x: Tensor  # N,D
    votes: Votes
    reliability: Tensor  # V

    @classmethod
    def of(cls, x: Tensor, u: Tensor, z: Tensor, data: Data, each: int, seed: int) -> Targeted:
        """Users u (M,d) on items at z (N,d); ``each``: votes of an item."""
        crowd = Crowd(("user",) * len(u), ByExpertise(u, z, data.K), Random(each))
        votes = crowd.vote(torch.from_numpy(data.y), seed).votes
        return cls(x, votes, torch.sigmoid((u[votes.worker] * z[votes.task]).sum(1)))


def users_and_map(users: int, features: int, seed: int) -> tuple[Tensor, Tensor]:
    """u and F as section 5.2 draws them: M,d and D,d."""
    low, high = BETWEEN
    rng = generator(seed, "targeted crowd")
    u, factor = (low + (high - low) * torch.rand(size, TOPICS, generator=rng) for size in (users, features))
    return u, factor


def in_words(data: Data, each: int, seed: int) -> Targeted:
    """Items are three words: a third of the image each, as the nearest of its kinds. Nothing is scaled."""
    thirds = torch.tensor_split(torch.from_numpy(data.x).float().flatten(1), WORDS, 1)
    x = torch.cat([one_hot(grouped(third, KINDS_OF_WORD)[1], KINDS_OF_WORD) for third in thirds], 1).float()  # N,D
    u, factor = users_and_map(len(x), x.shape[1], seed)
    return Targeted.of(x, u, x @ factor, data, each, seed)


def in_pixels(data: Data, each: int, seed: int, wrong: float | None = None) -> Targeted:
    """Items are pixels, at a scale for eta's mean. ``wrong``: the share of wrong votes, set by a bias of all topics."""
    x = torch.from_numpy(data.x).float().flatten(1)  # N,D
    u, factor = users_and_map(len(x), x.shape[1], seed)
    z, some = x @ factor, slice(None, None, max(1, len(x) // 1000))  # N,d
    if wrong is not None:
        z = (z - z.mean(0)) / z.std(0)
        score, total = u @ z[some].t(), u.sum(1, keepdim=True)
        z = z + where(lambda bias: float((score + bias * total > 0).float().mean()), 1 - wrong)
    score = u @ z[some].t()
    z = z * where(lambda scale: float(torch.sigmoid(scale * score).mean()), RELIABLE)
    return Targeted.of(x, u, z, data, each, seed)


def where(rising: Callable[[float], float], level: float) -> float:
    """Where a function that rises from zero on reaches a level, by bisection."""
    low, high = 0.0, 1e-6
    while rising(high) < level and high < 1e6:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return high


def _simulated(
    crowd: Callable[[Data, int, int], Targeted], settings: Settings, case: str, method: str, seed: int
) -> dict[str, float]:
    data = load(settings.on, settings.folder, seed)
    data = data.two() if data.K > 2 else data
    made = crowd(data, int(case), seed)
    votes = made.votes
    right = torch.from_numpy(data.y)[votes.task] == votes.label  # V
    if method == RIGHT:
        return {"reliability": correlation(right, made.reliability)}
    expertise = _share_of(right, votes)
    if method == MAJORITY:
        label = make(method).infer(votes).label
        agreed = _share_of(label[votes.task] == votes.label, votes)
        return {"labels": _share_right(label, data), "expertise": correlation(agreed, expertise)}
    options = {"model": settings.model, "epochs": settings.epochs, "doubt": method == OURS, "seed": seed}
    model = make(OURS, **options).fit(made.x.numpy(), votes)
    found = model.expertise_
    return {
        "labels": _share_right(model.consensus_.label, data),
        "expertise": correlation(found["right"].to_numpy(), expertise),
        "expertise everywhere": correlation(found["expertise"].to_numpy(), expertise),
        "reliability": correlation(model.reliability_["reliability"].to_numpy(), made.reliability),
    }


def _share_of(which: Tensor, votes: Votes) -> Tensor:
    """The share of each user's votes that are among these: M, NaN for a user without votes."""
    return scatter_sum(which.double(), votes.worker, votes.M) / votes.whole.worker_offsets.diff()


def correlation(found: Any, truth: Any) -> float:
    both = np.stack([np.asarray(found, float), np.asarray(truth, float)])
    return float(np.corrcoef(both[:, np.isfinite(both.sum(0))])[0, 1])


def _share_right(label: Tensor, data: Data) -> float:
    return float((label.numpy() == data.y).mean())


def _with_votes(settings: Settings, seed: int, votes_per_task: int = 3) -> tuple[Data, Votes]:
    """People's votes, or those of a crowd whose members are right in a part of the features' space."""
    data = load(settings.on, settings.folder, seed)
    if data.votes is not None:
        return data, data.votes
    features = data.x.reshape(len(data.x), -1)
    made = simulate_votes_on(
        data.y, classes=data.K, kind="expertise", seed=seed, features=features, votes_per_task=votes_per_task
    )
    return data, made.votes


def _learned(
    data: Data, votes: Votes, settings: Settings, seed: int, method: str = OURS, **options: Any
) -> tuple[Any, dict[str, float]]:
    options = {"model": settings.model, "epochs": settings.epochs, "seed": seed} | options
    if method in ("lfc", "stal"):
        del options["model"]  # logistic regression
    model = make(method, **options).fit(data.x, votes)
    shares = model.predict_proba(data.x_test)
    return model, {
        "classifier": accuracy(shares, data.y_test),
        "auc": auc(shares, data.y_test),
        "inference": _share_right(model.consensus_.label, data),
    }


def auc(shares: NDArray[Any], truth: NDArray[Any]) -> float:
    """The area under the ROC curve; of more than two classes the mean of each against the rest."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, shares[:, 1] if shares.shape[1] == 2 else shares, multi_class="ovr"))


def _methods(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    name, options = FORMS[method]
    return _learned(*_with_votes(settings, seed), settings, seed, name, **options)[1]


def _topics(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    return _foretold(settings, seed, topics=int(case))


def _penalty(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    return _foretold(settings, seed, penalty=float(case))


def _foretold(settings: Settings, seed: int, **options: Any) -> dict[str, float]:
    """With these options: the classifier, and how likely the votes on held-out tasks were."""
    data, votes = _with_votes(settings, seed)
    model, found = _learned(data, votes, settings, seed, **options)
    _, choice = model._by_held_out(model._data(data.x, votes, None), {"": {}})
    return found | {"foretold": choice.foretold}


def _inner(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    data, votes = _with_votes(settings, seed)
    inner = "sgd" if method == ALGORITHM_2 else "lbfgs"
    began = time.process_time()
    model, found = _learned(data, votes, settings, seed, inner=inner, inner_steps=int(case))
    return found | {"seconds": time.process_time() - began, "bound": model.history_[-1]["bound"] / votes.V}


def _saving(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    """Half of the items teach who is good at what (section 5.4); of the others, these votes."""
    data, votes = _with_votes(settings, seed, CROWDED)
    order = torch.randperm(votes.N, generator=generator(seed, "halves"))
    new = torch.zeros(votes.N, dtype=torch.bool)
    new[order[: votes.N // 2]] = True
    old, rows = ~new[votes.task], (new & (votes.whole.votes_per_task > 0)).nonzero()[:, 0]
    left = votes.select(~old)
    if method == ALL:
        take = ~old
    else:
        expert, _ = _learned(*_some(data, votes, (~new).nonzero()[:, 0]), settings, seed)
        each = (EXPERTS | ANY)[method]
        strategy = STRATEGIES["active worker" if method in EXPERTS else "random"]
        _, how = chosen(strategy, len(rows), left, "entropy", seed)
        names = on_tasks(left, rows).tasks.names
        asked = expert.ask(each * len(rows), X=data.x[rows.numpy()], tasks=names, at_once=each, **how)
        pairs = set(zip(asked["task"].to_list(), asked["worker"].to_list(), strict=True))
        named = zip(votes.to_frame()["task"].to_list(), votes.to_frame()["worker"].to_list(), strict=True)
        take = ~old & torch.tensor([pair in pairs for pair in named])
    _, found = _learned(data, votes.select(old | take), settings, seed)
    return found | {"votes of an item": int(take.sum()) / len(rows)}


def _some(data: Data, votes: Votes, rows: Tensor) -> tuple[Data, Votes]:
    return replace(data, x=data.x[rows.numpy()], y=data.y[rows.numpy()], votes=None), on_tasks(votes, rows)


# -- claims -----------------------------------------------------------------------------------


def _published_1() -> Mapping[Key, float]:
    return {
        (case, OURS, measure): value
        for case, row in TABLE_1.items()
        for measure, value in zip(CORRELATIONS, row, strict=True)
    }


def _claims_1(results: Results) -> list[Claim]:
    def found(measure: str) -> dict[str, float]:
        return {
            case: results.mean(case, OURS, measure).value for case in TABLE_1 if results.values(case, OURS, measure)
        }

    return [
        at_least("inferred labels are right in 99% (table 1)", found("labels"), 0.99),
        at_least("users' expertise correlates by 0.94 with the truth", found("expertise"), 0.94),
        at_least("the reliability of votes correlates by 0.57 with the truth", found("reliability"), 0.57),
    ]


def _claims_2(results: Results) -> list[Claim]:
    def ahead(measure: str, *methods: str) -> dict[str, float]:
        """Each method's lead over the next."""
        return {f"{a} - {b}": results.gap(CASE, a, b, measure).value for a, b in pairwise(methods)}

    order = ("DLC", "DLC/Sparse", "DLC/LR")
    rest = {f"{m} - MV": results.gap(CASE, m, "MV").value for m in FORMS if m != "MV"}
    return [
        at_least("low rank beats sparse beats logistic regression, by accuracy", ahead("classifier", *order), 0),
        at_least("likewise by AUC", ahead("auc", *order), 0),
        at_least("every method beats training on the majority", rest, 0),
        at_least("DLC/LR beats STAL beats LFC", ahead("classifier", "DLC/LR", "STAL", "LFC"), 0),
    ]


def _claims_4(results: Results) -> list[Claim]:
    cases = sorted({row.cell.case for row in results.rows}, key=float)
    foretold, right = (
        np.array([results.values(case, OURS, measure) for case in cases]) for measure in ("foretold", "classifier")
    )  # cases, seeds
    if not cases or foretold.size == 0:
        return []
    chosen = [float(right[place, seed]) for seed, place in enumerate(foretold.argmax(0))]
    means = right.mean(1)
    words = ", ".join(cases[place] for place in foretold.argmax(0))
    return [
        at_least(
            f"what held-out votes choose (seed by seed: {words}) is within a point of the best on average",
            {f"{cases[int(means.argmax())]} is best": float(np.mean(chosen) - means.max())},
            -0.01,
        ),
        at_least("no setting is two points below the best", {"worst": float(means.min() - means.max())}, -0.02),
    ]


def _claims_inner(results: Results) -> list[Claim]:
    cases = ("5", "10", "20")

    def ahead(measure: str) -> dict[str, float]:
        return {case: results.gap(case, "L-BFGS", ALGORITHM_2, measure).value for case in cases}

    return [
        at_least("L-BFGS reaches at least the bound of Algorithm 2 (nats a vote, x 100)", ahead("bound"), 0),
        at_least("its classifier is as good (within a point)", ahead("classifier"), -0.01),
    ]


def _claims_saving(results: Results) -> list[Claim]:
    """The paper saves 36% of the votes."""

    def gaps(method: str, other: str, *measures: str) -> dict[str, float]:
        return {measure: results.gap(CASE, method, other, measure).value for measure in measures}

    def saved(method: str) -> float:
        few, every = (results.mean(CASE, name, "votes of an item").value for name in (method, ALL))
        return 100 * (1 - few / every)

    same = [
        at_least(
            f"{name} of an item teach as much as all (within a point): {saved(name):.0f}% of the votes saved",
            gaps(name, ALL, "classifier", "auc"),
            -0.01,
        )
        for name in EXPERTS
    ]
    more = [
        at_least(f"{expert} beat {some}", gaps(expert, some, "classifier", "inference"), 0)
        for expert, some in zip(EXPERTS, ANY, strict=True)
    ]
    return [*same, *more]
