"""Which learner, with which options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from voxpop.cli.choosing import check_device
from voxpop.cli.settings import settings
from voxpop.errors import BadOption
from voxpop.methods.registry import LEARNERS, find

Train = Callable[[Any, Any, Any], Any]  # features, votes, gold -> a fitted learner


def learner_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in LEARNERS if name.startswith(incomplete)]


def chosen_learner(method: str | None, given: Mapping[str, Any], set_: Sequence[str]) -> Train:
    """What trains: the method by name, or else the one that held-out votes choose."""
    from voxpop.learn.learner import Learner
    from voxpop.learn.networks import preset
    from voxpop.options import check_options, parse_option

    kind: Any = Learner if method is None else find(method, LEARNERS).load()
    more = settings(set_, partial(parse_option, kind))
    twice = [name for name in given if name in more]
    if twice:
        raise BadOption(*(f"--{name} and --set {name}= are the same option; give one of them" for name in twice))
    options = {**given, **more}
    check_device(options.get("device"))
    model = options.get("model", "mlp")
    if not isinstance(model, str):
        raise BadOption(f"model={model}: give the name of a network")
    preset(model)
    if method is None:
        from voxpop.methods.learning.choose import candidates, train

        for name in candidates():
            check_options(find(name).load()(**options))
        return partial(_by_held_out, train, options)
    learner = kind(**options)
    check_options(learner)
    fit: Train = learner.fit
    return fit


def _by_held_out(train: Any, options: Mapping[str, Any], X: Any, votes: Any, gold: Any) -> Any:
    return train(X, votes, gold, **options)
