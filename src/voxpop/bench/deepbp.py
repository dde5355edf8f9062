"""Kim, Cho, Kim and Ok, "Robust Deep Learning from Crowds with Belief Propagation": figures 1 to 8.

Two classes, a thousand tasks with three votes each, four tasks a worker, one-coin workers (section 4.1). The paper's
figures have no numbers in the text, so their claims are what is compared.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from voxpop.bench.claims import Claim, at_least, at_most
from voxpop.bench.data import Data, load
from voxpop.bench.experiment import Experiment, Part, Settings
from voxpop.bench.results import Results
from voxpop.bench.trials import Trial, infer, learn
from voxpop.methods.registry import METHODS, make
from voxpop.simulate.subsets import few_each, with_spammers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MF, BP, DEEP_MF, DEEP_BP = "mean-field", "belief-propagation", "deep-mf", "deep-bp"
MAJORITY, LAYER, DGC, TRACE = "majority-vote", "crowd-layer", "bayes-dgc", "trace-reg"
EQUAL_DGC = f"{DGC} equal"  # with classes as frequent as each other, as all others here have them
LITERAL_DGC = f"{DGC} literal"  # eq. 4 of paper 000 as it stands: class frequencies count twice
TASKS = 1000
SURE = 1e4  # alpha of BayesDGC that makes its classes equally frequent
LEVELS = 8  # grey levels that a blurred digit keeps
BOTH = ("inference", "classifier")
EVERYBODY = (MAJORITY, MF, BP, LAYER, LITERAL_DGC, DGC, EQUAL_DGC, DEEP_MF, DEEP_BP)
LEARNERS = (LAYER, LITERAL_DGC, DGC, EQUAL_DGC, DEEP_MF, DEEP_BP)
CLIPS = ("0.55", "0.7", "0.9", "1")
SAMPLES = ("10", "30", "100", "300", "1000", "3000")
EXACT = "exact"
BLURRED = "512"  # the largest radius: a classifier trained on the truth guesses
IRRELEVANT = "irrelevant"  # each task has the image of another: nothing to learn, much to learn by heart


def parts(settings: Settings) -> tuple[Part, ...]:
    quick = settings.quick
    data = load(settings.on, settings.folder)
    synthetic = (
        _features(("0", BLURRED, IRRELEVANT) if quick else ("0", "64", "128", BLURRED, IRRELEVANT)),
        _part(
            "prior", "figure 2: the true prior is Dir(a, a/2), and known", "a", ("0.2", "0.5", "1", "2"), _claims_prior
        ),
        _part(
            "mismatch",
            "figure 3a, b: one extreme spammer; true prior Dir(2, 1), model prior Dir(2, a)",
            "a",
            ("1", "1.6") if quick else ("0.8", "1", "1.2", "1.4", "1.6"),
            _claims_mismatch,
        ),
        _part(
            "spammers",
            "figure 3c, d: extreme spammers; model prior Dir(2, 1.4)",
            "extreme spammers",
            ("0", "5") if quick else ("0", "1", "3", "5"),
            _claims_spammers,
        ),
        _worst(20 if quick else 100),
        _budget(),
        _samples(),
        _adversary(),
    )
    return synthetic if data.votes is None or data.K > 2 else (*synthetic, _real())


EXPERIMENT = Experiment(
    "deepbp",
    "Kim, Cho, Kim and Ok: DeepBP",
    "Belief propagation against mean field: sparse priors, extreme spammers, blurred features.",
    parts,
)


# -- parts ------------------------------------------------------------------------------------


def _part(name: str, title: str, axis: str, cases: tuple[str, ...], claims: Any) -> Part:
    return Part(name, title, cases, EVERYBODY, partial(_synthetic, name), BOTH, axis, claims=claims)


def _features(radii: tuple[str, ...]) -> Part:
    methods = (BP, MF, *(f"{method} {clip}" for method in (DEEP_MF, DEEP_BP) for clip in CLIPS))
    return Part(
        "features",
        "figure 1: blurred images; methods with what the network may say at most",
        radii,
        methods,
        partial(_synthetic, "features"),
        BOTH,
        "radius of the blur",
        claims=_claims_features,
    )


def _worst(seeds: int) -> Part:
    return Part(
        "worst",
        f"figure 4: one extreme spammer, model prior Dir(2, 1.6), {seeds} seeds, votes only",
        ("1",),
        (MF, BP),
        partial(_synthetic, "worst"),
        ("inference",),
        "extreme spammers",
        seeds=seeds,
        claims=_claims_worst,
        draw=_sorted,
    )


def _budget() -> Part:
    return Part(
        "budget",
        "figure 6: 2,000 votes, on many tasks or on few",
        ("2", "4", "8"),
        LEARNERS,
        partial(_synthetic, "budget"),
        ("classifier",),
        "votes a task",
        claims=_claims_budget,
    )


def _samples() -> Part:
    return Part(
        "samples",
        "figure 8: Monte Carlo of so many draws of the prior, beside the exact recursion; votes only",
        (*SAMPLES, EXACT),
        ("Dir(2, 1)", "Dir(1, 0.5)", "Dir(0.2, 0.1)"),
        _drawn,
        ("inference", "difference"),
        "draws",
        unit="accuracy; mean difference of a belief from the exact one",
        claims=_claims_samples,
    )


def _adversary() -> Part:
    return Part(
        "adversary",
        "figure 7: the weight of the trace; workers from Dir(3, 1)",
        ("0", "0.01", "0.1", "0.5", "1", "2"),
        (LAYER, TRACE, f"{TRACE} log"),
        partial(_synthetic, "adversary"),
        BOTH,
        "weight of the trace",
        claims=_claims_adversary,
    )


def _real() -> Part:
    return Part(
        "real",
        "figure 5: people's votes, four a worker, and extreme spammers; model prior Dir(2, 1.3)",
        ("0", "1", "3", "5"),
        EVERYBODY,
        _people,
        BOTH,
        "extreme spammers",
        claims=_claims_real,
    )


# -- cells ------------------------------------------------------------------------------------


def _synthetic(part: str, settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    data, crowd, alpha = _scene(part, settings, inf if case == IRRELEVANT else float(case), seed)
    trial = Trial.voted(data, "regular", seed, **crowd)
    found = _method(trial, method, alpha, settings, seed, weight=float(case) if part == "adversary" else None)
    return found | _sureness(trial, method, alpha, seed) if part == "worst" else found


def _scene(part: str, settings: Settings, value: float, seed: int) -> tuple[Data, dict[str, Any], tuple[float, float]]:
    """The data, the crowd, and the model's prior."""
    if part == "features":
        data = _binary(settings, seed, TASKS, blur=value)
        return data, {"alpha": (1.0, 0.5)}, (1.0, 0.5)
    if part == "budget":
        tasks = _divisible(2000 / value, value)
        return _binary(settings, seed, tasks), {"votes_per_task": int(value), "alpha": (2.0, 1.0)}, (2.0, 1.0)
    data = _binary(settings, seed, TASKS)
    if part == "prior":
        return data, {"alpha": (value, value / 2)}, (value, value / 2)
    if part == "mismatch":
        return data, {"alpha": (2.0, 1.0), "spammers": 1}, (2.0, value)
    if part == "worst":
        return data, {"alpha": (2.0, 1.0), "spammers": int(value)}, (2.0, 1.6)
    if part == "adversary":
        return data, {"alpha": (3.0, 1.0)}, (3.0, 1.0)
    return data, {"alpha": (2.0, 1.0), "spammers": int(value)}, (2.0, 1.4)


def _divisible(tasks: float, votes: float) -> int:
    """So many tasks, or a few less, that workers with four votes each share the work equally."""
    return next(n for n in range(int(tasks), 0, -1) if n * int(votes) % 4 == 0)


def _binary(settings: Settings, seed: int, tasks: int, blur: float = 0.0) -> Data:
    data = load(settings.on, settings.folder, seed)
    if blur == inf:
        data = data.shuffled(seed)
    elif blur:
        data = data.blurred(blur, LEVELS)
    data = data if data.K == 2 else data.two()
    kept = min(tasks, len(data.y) // 4 * 4)
    return data.first(kept)


def _method(
    trial: Trial, name: str, alpha: tuple[float, float], settings: Settings, seed: int, weight: float | None = None
) -> dict[str, float]:
    """Those who know priors are told the model's."""
    method, _, more = name.partition(" ")
    if method in METHODS:
        prior = {} if method == MAJORITY else {"workers_prior": "one-coin", "alpha": alpha}
        return infer(trial, method, **prior)
    if method in (DEEP_MF, DEEP_BP):
        clip = float(more) if more else 0.9  # appendix F.2
        return learn(trial, method, settings, seed, workers_prior="one-coin", alpha=alpha, clip=clip)
    if method == DGC:
        classes: dict[str, Any] = {"alpha": SURE} if more == "equal" else {"ratio": more != "literal"}
        return learn(trial, method, settings, seed, beta=alpha, **classes)
    if method == TRACE:
        return learn(trial, method, settings, seed, weight=weight, log=more == "log")
    return learn(trial, method, settings, seed)


def _sureness(trial: Trial, method: str, alpha: tuple[float, float], seed: int) -> dict[str, float]:
    """How far the mean confidence is above the accuracy, and the share of marginals within 0.01 of 0 or 1."""
    found = make(method, workers_prior="one-coin", alpha=alpha, seed=seed).infer(trial.votes)
    top = found.belief.amax(1)
    right = found.label.numpy() == trial.data.y
    return {"overconfidence": float(top.mean()) - float(right.mean()), "extreme": float((top > 0.99).float().mean())}


def _drawn(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    right, wrong = (float(number) for number in method.removeprefix("Dir(").removesuffix(")").split(","))
    trial = Trial.voted(_binary(settings, seed, TASKS), "regular", seed, alpha=(right, wrong))
    options: dict[str, Any] = {"alpha": (right, wrong), "tol": 1e-6}
    exact = make(BP, workers_prior="one-coin", **options).infer(trial.votes)
    if case == EXACT:
        found = exact
    else:
        draw = partial(_coins, right, wrong)
        found = make(BP, workers_prior=draw, samples=int(case), seed=seed, **options).infer(trial.votes)
    accuracy = float((found.label.numpy() == trial.data.y).mean())
    return {"inference": accuracy, "difference": float((found.belief - exact.belief).abs().mean())}


def _coins(right: float, wrong: float, samples: int, seed: int) -> Tensor:
    """Draws of the one-coin prior as plain prototypes S,2,2: what eq. 42 needs and no more."""
    p = torch.from_numpy(np.random.default_rng(seed).beta(right, wrong, samples)).float()
    return torch.stack([torch.stack([p, 1 - p], 1), torch.stack([1 - p, p], 1)], 1)


def _people(settings: Settings, case: str, method: str, seed: int) -> dict[str, float]:
    data = load(settings.on, settings.folder, seed)
    assert data.votes is not None
    votes = with_spammers(few_each(data.votes, 4, seed), int(case), seed)
    return _method(Trial(data, votes), method, (2.0, 1.3), settings, seed)


# -- claims -----------------------------------------------------------------------------------


def _gaps(results: Results, ours: str, other: str, cases: tuple[str, ...], measure: str) -> dict[str, float]:
    return {
        case: results.gap(case, ours, other, measure).value for case in cases if results.values(case, ours, measure)
    }


def _ahead(
    results: Results,
    text: str,
    cases: tuple[str, ...],
    bound: float = 0.0,
    others: tuple[str, ...] = (DEEP_MF, DGC, EQUAL_DGC),
) -> list[Claim]:
    """DeepBP against the others by inference and by its classifier, and BP against MF."""
    claims = [
        at_least(f"DeepBP's {measure} beats {other} {text}", _gaps(results, DEEP_BP, other, cases, measure), bound)
        for other in others
        for measure in BOTH
    ]
    return [at_least(f"BP beats MF {text}", _gaps(results, BP, MF, cases, "inference"), bound), *claims]


def _claims_prior(results: Results) -> list[Claim]:
    return _ahead(results, "where the prior is sparse", ("0.2",))


def _claims_mismatch(results: Results) -> list[Claim]:
    return _ahead(results, "where the model's prior is unsure of the workers", ("1.4", "1.6"))


def _claims_spammers(results: Results) -> list[Claim]:
    return _ahead(results, "with five extreme spammers", ("5",))


def _claims_real(results: Results) -> list[Claim]:
    return _ahead(results, "with extreme spammers among people", ("3", "5"))


def _claims_features(results: Results) -> list[Claim]:
    clear = {clip: results.gap("0", f"{DEEP_BP} {clip}", BP, "inference").value for clip in CLIPS}
    useless = [(case, *both) for case in (BLURRED, IRRELEVANT) for both in ((DEEP_MF, MF), (DEEP_BP, BP))]
    low, high = CLIPS[0], CLIPS[-1]
    cost = {f"{c} {m}": results.gap(c, f"{m} {low}", plain, "inference").value for c, m, plain in useless}
    bounded = {f"{c} {m}": results.gap(c, f"{m} {low}", f"{m} {high}", "inference").value for c, m, _ in useless}
    return [
        at_least("informative features help the inference", clear, 0.0),
        at_least("clipped low, useless features cost at most two points", cost, -0.02),
        at_least("clipping low is no worse than not clipping where features are useless", bounded, -0.005),
    ]


def _claims_worst(results: Results) -> list[Claim]:
    worst = min(results.values("1", BP, "inference"), default=np.nan) - min(
        results.values("1", MF, "inference"), default=np.nan
    )
    sure = results.gap("1", MF, BP, "overconfidence").value
    extreme = results.gap("1", MF, BP, "extreme").value
    return [
        at_least("the worst seed of BP is far above that of MF", {"difference": worst}, 0.1),
        at_least("MF is more overconfident than BP", {"difference": sure}, 0.0),
        at_least("MF's marginals skew to zero and one, BP's do not", {"difference in share": extreme}, 0.1),
    ]


def _claims_budget(results: Results) -> list[Claim]:
    sound = [method for method in LEARNERS if method != LITERAL_DGC]  # which loses a class with two votes a task
    fewer = {method: results.mean("2", method).value - results.mean("8", method).value for method in sound}
    return [at_least("many tasks with few votes teach more than few tasks with many", fewer, 0.0)]


def _claims_samples(results: Results) -> list[Claim]:
    priors = ("Dir(2, 1)", "Dir(1, 0.5)", "Dir(0.2, 0.1)")
    behind = {p: results.mean(EXACT, p, "inference").value - results.mean("300", p, "inference").value for p in priors}
    near = {p: results.mean(SAMPLES[-1], p, "difference").value for p in priors}
    closer = {
        p: results.mean(SAMPLES[0], p, "difference").value - results.mean(SAMPLES[-1], p, "difference").value
        for p in priors
    }
    return [
        at_most("300 draws infer as well as the exact recursion (within one point)", behind, 0.01),
        at_least("more draws come closer to the exact beliefs", closer, 0.0),
        at_most("3,000 draws are within two points of the exact beliefs on average", near, 0.02),
    ]


def _claims_adversary(results: Results) -> list[Claim]:
    means = {case: results.mean(case, TRACE).value for case in ("0", "0.01", "0.1", "0.5", "1", "2")}
    known = [value for value in means.values() if not np.isnan(value)]
    spread = max(known) - min(known) if known else np.nan
    ahead = {case: results.gap(case, LAYER, TRACE).value for case in ("0.5", "1", "2")}
    return [
        at_least("TraceReg is sensitive to its weight (five points between weights)", {"spread": spread}, 0.05),
        at_least("TraceReg is worse than CrowdLayer at weights of 0.5 to 2", ahead, 0.0),
    ]


# -- figures ----------------------------------------------------------------------------------


def _sorted(axes: Axes, part: Part, results: Results, measure: str) -> None:
    """Figure 4b: the accuracies of all seeds in ascending order."""
    for method in part.methods:
        axes.plot(sorted(results.values(part.cases[0], method, measure)), label=method)
    axes.set_xlabel("seeds, the worst first")
    axes.set_ylabel(part.unit)
    axes.legend()
