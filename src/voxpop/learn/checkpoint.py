"""The state of a training in one file without pickle, so that it goes on after a kill where it was.

Tensors come back in the order and alignment of a training without a kill: both show in the last digit of a sum.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from torch import Tensor

from voxpop.errors import BadInput

FORMAT = 1


def save(path: Path, state: dict[str, Tensor], optimiser: dict[str, Any], done: int, history: Sequence[Any]) -> None:
    from safetensors.torch import save as as_bytes

    from voxpop.io.write import writing

    tensors = {f"state.{name}": t.detach().cpu().contiguous().clone() for name, t in state.items()}
    for key, slots in optimiser["state"].items():
        tensors |= {f"optimiser.{key}.{name}": t.detach().cpu().contiguous().clone() for name, t in slots.items()}
    header = {
        "format": FORMAT,
        "done": done,
        "history": [astuple(epoch) for epoch in history],
        "names": list(tensors),  # in order, which the file does not keep
    }
    with writing(path) as file:
        file.write(as_bytes(tensors, {"voxpop": json.dumps(header)}))


def load(path: Path, optimiser: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any], int, list[Any]]:
    """The state, the optimiser's state in the form of ``optimiser``, epochs done, and the history."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["voxpop"])
            tensors = {name: file.get_tensor(name).clone() for name in header["names"]}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadInput(f"{path}: not a checkpoint of voxpop, or a damaged one ({error}); delete it") from None
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, key, slot = name.split(".", 2)
            slots.setdefault(int(key), {})[slot] = tensor
    state = {name.removeprefix("state."): t for name, t in tensors.items() if name.startswith("state.")}
    return state, {**optimiser, "state": slots}, header["done"], header["history"]
