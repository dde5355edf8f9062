"""Reading back what was saved: a consensus, or a learner of any method."""

from __future__ import annotations

from os import PathLike
from typing import Any

from voxpop.errors import BadInput


def load(path: str | PathLike[str], model: Any = None) -> Any:
    """Read what ``Consensus.save`` or ``Learner.save`` wrote: the Consensus, or the fitted learner.

    ``model``: your own torch Module, for a learner that was trained with one; its weights come from the file.
    """
    from voxpop.results.store import put_together, read_file

    header, tensors = read_file(path)
    kind = header.get("kind")
    if kind == "learner":
        from voxpop.learn.store import learner_again

        try:
            return learner_again(header, tensors, _method, model)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None
    if model is not None:
        raise BadInput(f"{path}: holds a {kind}, which has no network; load it without model=")
    if kind == "online":
        from voxpop.methods.online import OnlineDawidSkene

        return OnlineDawidSkene.load(path)
    if kind != "consensus":
        raise BadInput(f"{path}: holds a {kind}, which this voxpop does not know; upgrade")
    return put_together(header, tensors)


def _method(name: str) -> Any:
    """The class of a method that learns or aggregates."""
    from voxpop.methods.registry import BY_CLASS

    if name not in BY_CLASS:
        raise BadInput(f"made by the method {name}, which this voxpop does not know; upgrade")
    return BY_CLASS[name].load()
