"""A Consensus in one file, without pickle: safetensors, whose header carries one JSON document.

Format 1. Tensors: task, worker, label (int32), belief, and where there are any: sure, table, accuracy, gold,
evidence.prior, evidence.<name>; names of an axis as UTF-8 bytes and where each begins, or as int64.
JSON under the key "voxpop": format, kind, method, status, options, notes, axes, history, evidence.
"""

from __future__ import annotations

import json
import os
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.engines.loop import Info
from voxpop.engines.outcome import Status
from voxpop.errors import BadInput
from voxpop.results.consensus import Consensus
from voxpop.results.evidence import Evidence
from voxpop.votes import Axis, Votes

FORMAT = 1


Header = dict[str, Any]
Tensors = dict[str, Tensor]


def save(found: Consensus, path: str | PathLike[str]) -> None:
    from voxpop.io.write import writing

    with writing(path) as file:
        write(found, file)


def write(found: Consensus, file: BinaryIO) -> None:
    """The same into a file that is open already."""
    write_file(*taken_apart(found), file)


def load(path: str | PathLike[str]) -> Consensus:
    """Read what ``Consensus.save`` wrote."""
    header, tensors = read_file(path)
    if header["kind"] != "consensus":
        raise BadInput(f"{path}: holds a {header['kind']}, not a consensus; read it with voxpop.load")
    return put_together(header, tensors)


# -- files of any kind ------------------------------------------------------------------------------


def write_file(header: Header, tensors: Tensors, file: BinaryIO) -> None:
    """Tensors and a JSON document, which says its ``format`` and its ``kind``."""
    from safetensors.torch import save as as_bytes

    apart = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    file.write(as_bytes(apart, {"voxpop": json.dumps(header)}))


def read_file(path: str | PathLike[str]) -> tuple[Header, Tensors]:
    """The JSON document and the tensors of a file of any kind that this version reads."""
    from safetensors import SafetensorError, safe_open

    where = Path(path)
    if not where.is_file():
        raise BadInput(f"{where}: {'is a directory, not a file' if where.is_dir() else 'no such file'}")
    try:
        with safe_open(os.fspath(where), framework="pt") as file:
            text = (file.metadata() or {}).get("voxpop")
            if text is None:
                raise BadInput(f"{where}: a safetensors file, but not one that voxpop wrote")
            header = json.loads(text)
            if header["format"] > FORMAT:
                raise BadInput(
                    f"{where}: format {header['format']}, written by a newer voxpop (this one reads {FORMAT}); upgrade"
                )
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{where}: not a file that voxpop wrote, or a damaged one ({error})") from None


# -- a consensus ------------------------------------------------------------------------------------


def taken_apart(found: Consensus) -> tuple[Header, Tensors]:
    """What ``put_together`` makes the same consensus of."""
    votes = found.votes
    tensors: Tensors = {"task": votes.task, "worker": votes.worker, "label": votes.label}
    tensors["belief"] = found.belief
    optional = {"sure": found.sure, "table": found.fitted_table, "accuracy": found.accuracy_samples}
    optional["gold"] = found.gold
    tensors |= {name: tensor for name, tensor in optional.items() if tensor is not None}
    if found.evidence is not None:
        tensors["evidence.prior"] = found.evidence.prior
        tensors |= {f"evidence.{name}": tensor for name, tensor in found.evidence.theta.items()}
    axes = {}
    for kind in ("tasks", "workers", "classes"):
        axes[kind], packed = pack_axis(getattr(votes, kind))
        tensors |= {f"{kind}.{name}": tensor for name, tensor in packed.items()}
    header: Header = {
        "format": FORMAT,
        "kind": "consensus",
        "method": found.method,
        "status": found.status.name,
        "options": dict(found.options),
        "notes": list(found.notes),
        "dropped": dict(votes.dropped),
        "axes": axes,
        "history": [[info.bound, info.change] for info in found.history],
        "evidence": None if found.evidence is None else found.evidence.form,
    }
    return header, tensors


def put_together(header: Header, tensors: Tensors) -> Consensus:
    axes = header["axes"]
    tasks, workers, classes = (unpack_axis(kind, axes[kind], tensors) for kind in ("tasks", "workers", "classes"))
    votes = Votes(
        tensors["task"], tensors["worker"], tensors["label"], tasks, workers, classes, dropped=header["dropped"]
    )
    evidence = None
    if header["evidence"] is not None:
        theta = {n.removeprefix("evidence."): t for n, t in tensors.items() if n.startswith("evidence.")}
        prior = theta.pop("prior")
        evidence = Evidence(header["evidence"], theta, prior)
    return Consensus(
        votes,
        tensors["belief"],
        header["method"],
        Status[header["status"]],
        tuple(Info(*pair) for pair in header["history"]),
        header["options"],
        tensors.get("sure"),
        tensors.get("table"),
        tensors.get("accuracy"),
        evidence,
        tuple(header["notes"]),
        tensors.get("gold"),
    )


def pack_axis(axis: Axis) -> tuple[str, Tensors]:
    """How the names are stored, and the tensors that hold them."""
    names = axis.names
    if names.dtype != pl.String:
        return str(names.dtype), {"names": torch.from_numpy(names.cast(pl.Int64).to_numpy().copy())}
    blob = "".join(names.to_list()).encode()
    ends = names.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy().copy()
    return "String", {"names": torch.from_numpy(np.frombuffer(blob, np.uint8).copy()), "ends": torch.from_numpy(ends)}


def unpack_axis(kind: str, dtype: str, tensors: Tensors) -> Axis:
    stored = tensors[f"{kind}.names"].numpy()
    if dtype != "String":
        return Axis(kind, pl.Series(stored).cast(getattr(pl, dtype)))
    blob, ends = stored.tobytes(), tensors[f"{kind}.ends"].tolist()
    starts = [0, *ends][:-1]
    return Axis(kind, pl.Series([blob[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=pl.String))
