"""Which method to learn by, without truth: each candidate foretells the votes on tasks that were held out.

The candidates answer differently what a worker does to the truth, and are found differently. All are asked for the
probability of the same held-out votes, those of tasks that they have never seen, and the one that gives them the
highest mean log probability is trained on everything, for as many epochs as were best there.

What this cannot see: mistakes that are alike in all workers foretell votes as well as truths do. Where a majority
is wrong together, name the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voxpop.engines.events import emit
from voxpop.errors import BadOption
from voxpop.learn.held_out import Choice
from voxpop.learn.learner import Learner
from voxpop.methods.registry import LEARNERS, find

CANDIDATES = ("aggnet", "max-mig", "crowd-layer", "deep-mf", "geo-crowdnet")
ABOUT_X = ("texts_", "shape_", "n_features_in_", "feature_names_in_")  # what a learner remembers of features


def train(X: Any, y: Any, gold: Any = None, *, methods: Sequence[str] | None = None, **options: Any) -> Learner:
    """A classifier from features and votes, by the method that foretells held-out votes best; already fitted.

    ``X``, ``y`` and ``gold`` are those of ``Learner.fit``. ``methods``: names to choose among (``CANDIDATES`` unless
    given). Options are those that all learners have: model, epochs, lr, seed, ... The result's
    ``consensus_.notes`` say what was chosen and by how much. Where there are too few votes to hold some out, the
    first candidate is taken.
    """
    names = candidates() if methods is None else list(methods)
    if not names:
        raise BadOption("methods: give at least one name of a method that learns")
    learners: dict[str, Learner] = {name: find(name, LEARNERS).load()(**options) for name in names}
    first = next(iter(learners.values()))
    data = first._data(X, y, gold)
    with first._listening():
        tried: dict[str, tuple[Learner, Choice | None]] = {}
        for number, (name, learner) in enumerate(learners.items()):
            emit("trying methods", number, len(learners))
            tried[name] = learner._by_held_out(data, dict(learner.variants(data)) or {"": {}})
        scores = {name: choice.foretold for name, (_, choice) in tried.items() if choice is not None}
        best = max(scores, key=lambda name: scores[name]) if scores else names[0]
        winner, (variant, choice) = learners[best], tried[best]
        for name in ABOUT_X:
            if hasattr(first, name):
                setattr(winner, name, getattr(first, name))
        return winner._learn(data, variant, choice, (_in_words(best, scores),))


def candidates() -> list[str]:
    return [name for name in CANDIDATES if name in LEARNERS]


def _in_words(best: str, scores: dict[str, float]) -> str:
    if not scores:
        return f"{best}: too few votes to hold some out and choose by"
    ranked = ", ".join(f"{name} {score:.3f}" for name, score in sorted(scores.items(), key=lambda item: -item[1]))
    return f"{best} foretells held-out votes best (mean log probability of one: {ranked})"
