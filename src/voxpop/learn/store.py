"""A learner in one file, without pickle: safetensors, whose header carries one JSON document.

Format 1, kind "learner". Tensors: ``state.*`` is what was learned (network and crowd), ``consensus.*`` the
Consensus of the training tasks (see ``results.store``), ``option.*`` options that are tensors, ``texts.*`` how
texts become features. JSON under the key "voxpop": format, kind, method (its class), options, variant (options
that held-out votes chose), module (the class of the user's own network, or null), shape (of a row), temperature,
feature_names, history, choice, texts, consensus.

A network by name is made again from its name. The code of a user's own Module is not in the file: it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import torch
from torch import Tensor, nn

from voxpop.errors import BadInput
from voxpop.learn.averaged import Averaged
from voxpop.learn.data import Data
from voxpop.learn.held_out import Choice
from voxpop.learn.objective import Objective
from voxpop.learn.rows import Rows
from voxpop.learn.texts import texts_again
from voxpop.options import option_names
from voxpop.results.store import FORMAT, Header, Tensors, put_together, taken_apart, write_file

if TYPE_CHECKING:
    from voxpop.learn.learner import Learner

STATE, CONSENSUS, OPTION, TEXTS = "state.", "consensus.", "option.", "texts."
PASSING = ("progress", "checkpoint")  # options of one run, not of what was learned

FindMethod = Callable[[str], Any]  # the class of a method by its name


def save(learner: Learner, path: str | PathLike[str]) -> None:
    from voxpop.io.write import writing

    header, tensors = taken_apart_learner(learner)
    with writing(path) as file:
        write_file(header, tensors, file)


def write(learner: Learner, file: BinaryIO) -> None:
    """The same into a file that is open already."""
    write_file(*taken_apart_learner(learner), file)


def taken_apart_learner(learner: Learner) -> tuple[Header, Tensors]:
    """What ``learner_again`` makes the same learner of."""
    learner._require_fitted()
    tensors: Tensors = {STATE + name: tensor for name, tensor in learner.objective_.state().items()}
    consensus, parts = taken_apart(learner.consensus_)
    tensors |= {CONSENSUS + name: tensor for name, tensor in parts.items()}
    texts = None
    if learner.texts_ is not None:
        texts, parts = learner.texts_.taken_apart()
        tensors |= {TEXTS + name: tensor for name, tensor in parts.items()}
    names = getattr(learner, "feature_names_in_", None)
    header: Header = {
        "format": FORMAT,
        "kind": "learner",
        "method": type(learner).__name__,
        "options": _options(learner, tensors),
        "variant": dict(learner.variant_),
        "module": type(learner.model).__name__ if isinstance(learner.model, nn.Module) else None,
        "shape": list(learner.shape_),
        "temperature": learner.temperature_,
        "feature_names": None if names is None else [str(name) for name in names],
        "history": learner.history_,
        "choice": None if learner.choice_ is None else asdict(learner.choice_),
        "texts": texts,
        "consensus": consensus,
    }
    return header, {name: tensor.clone() for name, tensor in tensors.items()}  # no two share their memory


def learner_again(header: Header, tensors: Tensors, find: FindMethod, model: Any = None) -> Learner:
    """A fitted learner from what ``taken_apart_learner`` gave. ``model``: the user's own Module, if it was one."""
    kind = find(header["method"])
    learner: Learner = kind(**_given(kind, header, tensors, find, model))
    learner.consensus_ = put_together(header["consensus"], _below(CONSENSUS, tensors))
    votes = learner.consensus_.votes
    learner.axes_ = (votes.workers, votes.classes)
    learner.classes_ = votes.classes.names.to_numpy()
    learner.shape_ = tuple(header["shape"])
    learner.variant_, learner.temperature_ = header["variant"], header["temperature"]
    learner.history_ = header["history"]
    learner.texts_ = texts_again(header["texts"], _below(TEXTS, tensors)) if header["texts"] else None
    if len(learner.shape_) == 1:
        learner.n_features_in_ = learner.shape_[0]
    if header["feature_names"] is not None:
        learner.feature_names_in_ = np.asarray(header["feature_names"], dtype=object)
    choice = header["choice"]
    learner.choice_ = None if choice is None else Choice(**{**choice, "curve": tuple(choice["curve"])})
    objective = _objective(learner, Data(Blank(votes.N, learner.shape_), votes, learner.consensus_.gold))
    try:
        objective.restore(_below(STATE, tensors))
    except (RuntimeError, KeyError) as error:
        if header["module"] is None:
            raise BadInput(f"the file's weights do not fit {header['method']} ({_first_line(error)})") from None
        raise BadInput(
            f"the weights in the file do not fit the given {type(model).__name__}: {_first_line(error)}; "
            "give the Module that was trained"
        ) from None
    learner.objective_ = objective.eval()
    learner._temper()
    learner.model_ = objective.classifier().eval()
    return learner


class Blank(Rows):
    """Rows of zeros in the place of features that are not kept."""

    def __init__(self, count: int, shape: tuple[int, ...]) -> None:
        self.count, self.shape = count, shape

    def __len__(self) -> int:
        return self.count

    def take(self, index: Tensor) -> Tensor:
        return torch.zeros(index.numel(), *self.shape)


def _objective(learner: Learner, data: Data) -> Objective:
    """The method around a network of the same form, on the CPU; what it learned is put into it afterwards."""
    used = learner._with(learner.variant_)
    with torch.random.fork_rng([]):
        made = [used.objective(used._network(data), data) for _ in range(used.members)]
    return made[0] if len(made) == 1 else Averaged(made)


# -- options ----------------------------------------------------------------------------------------


def _options(learner: Learner, tensors: Tensors) -> dict[str, Any]:
    kept = {}
    for spec in fields(learner):
        value = getattr(learner, spec.name)
        if spec.name in PASSING or (spec.name == "model" and isinstance(value, nn.Module)):
            continue
        kept[spec.name] = _kept(value, spec.name, type(learner).__name__, tensors)
    return kept


def _kept(value: Any, name: str, method: str, tensors: Tensors) -> Any:
    """A value as JSON can hold it; what JSON has no form for is an object of one key."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_kept(v, name, method, tensors) for v in value]
    if isinstance(value, dict):
        return {"map": [[_kept(k, name, method, tensors), _kept(v, name, method, tensors)] for k, v in value.items()]}
    if isinstance(value, Tensor | np.ndarray):
        tensors[OPTION + name] = torch.as_tensor(value)
        return {"tensor": OPTION + name}
    if hasattr(value, "infer") and hasattr(value, "plain"):  # a method of aggregation with its options
        return {"method": type(value).__name__, "options": value.plain()}
    raise BadInput(
        f"{method}: {name} is a {type(value).__name__}, which a file without pickle cannot hold; "
        "give its values (numbers, names or a tensor) instead, or keep the learner in Python"
    )


def _given(kind: Any, header: Header, tensors: Tensors, find: FindMethod, model: Any) -> dict[str, Any]:
    """The options that the learner is made with."""
    specs = option_names(kind)
    absent = [name for name in header["options"] if name not in specs]
    if absent:
        raise BadInput(f"the file's {header['method']} has an option {absent[0]}, which this voxpop does not know")
    options = {
        name: _again(value, isinstance(specs[name].default, tuple), tensors, find)
        for name, value in header["options"].items()
    }
    if header["module"] is None:
        if model is not None:
            raise BadInput(f"the file's network is {options['model']}, made by its name; load it without model=")
        return options
    if not isinstance(model, nn.Module):
        raise BadInput(
            f"the network is your own {header['module']}, whose code is not in the file; "
            f"load it with model={header['module']}(...)"
        )
    return {**options, "model": model}


def _again(value: Any, as_tuple: bool, tensors: Tensors, find: FindMethod) -> Any:
    if isinstance(value, list):
        return tuple(value) if as_tuple else value
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "method" in value:
        return find(value["method"])(**value["options"])
    return {k: v for k, v in value["map"]}  # noqa: C416


def _below(prefix: str, tensors: Tensors) -> Tensors:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[1] if len(lines) > 1 else lines[0]
