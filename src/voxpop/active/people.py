"""Who can be asked: names, costs and capacities of the workers, known and new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from voxpop.errors import BadInput, unknown
from voxpop.votes import Axis
from voxpop.votes.axis import alike, as_names
from voxpop.votes.votes import _eager, _to_polars

UNLIMITED = 1 << 40
KNOWN = ("worker", "cost", "capacity", "available")


@dataclass(frozen=True, eq=False)
class People:
    """Workers of the votes in their order, then newcomers."""

    names: Axis
    newcomers: int
    cost: Tensor  # M, float32
    capacity: Tensor  # M, int64; 0: not available


def people_of(known: Axis, workers: Any, cost: Any, capacity: Any) -> People:
    """Everyone known and everyone named, with what a vote costs and how many each can give."""
    frame = _frame(workers)
    if frame is None:
        names, new = known, 0
        given = pl.DataFrame({"worker": known.names})
    else:
        given = frame
        names, new = _with_newcomers(known, frame["worker"])
    row = torch.from_numpy(names.codes(given["worker"]).cast(pl.Int64).to_numpy().copy())
    available = _column(given, "available")
    costs, capacities = _column(given, "cost"), _column(given, "capacity")
    M = len(names)
    price = torch.zeros(M)
    room = torch.zeros(M, dtype=torch.int64)
    if costs is not None:
        price[row] = torch.from_numpy(costs.fill_null(0.0).to_numpy().copy()).float()
    most = np.full(len(row), float(UNLIMITED)) if capacities is None else capacities.fill_null(UNLIMITED).to_numpy()
    here = np.ones(len(row)) if available is None else available.fill_null(1.0).to_numpy()
    room[row] = torch.from_numpy(np.where(here > 0, np.minimum(most, UNLIMITED), 0).astype(np.int64))
    if cost is not None:
        price = _each(cost, names, price, "cost")
    if capacity is not None:
        limit = _each(capacity, names, torch.full((M,), float(UNLIMITED)), "capacity")
        room = torch.minimum(room, limit.clamp_max(UNLIMITED).long())
    return People(names, new, price, room)


def _frame(workers: Any) -> pl.DataFrame | None:
    """Names, or a frame of them with what is known, as a frame."""
    if workers is None:
        return None
    if hasattr(workers, "columns"):
        native = _eager(workers, "workers")
        if "worker" not in native.columns:
            raise BadInput(f"workers has no column 'worker'; it has {', '.join(native.columns)}")
        columns = {c: _to_polars(native[c]) for c in native.columns if c in KNOWN}
        frame = pl.DataFrame(columns | {"worker": as_names(columns["worker"], "worker")})
    else:
        frame = pl.DataFrame({"worker": as_names(workers, "worker")})
    gaps, twice = frame["worker"].is_null(), frame["worker"].is_duplicated()
    if gaps.any():
        raise BadInput(f"workers, row {int(gaps.arg_max() or 0) + 1}: no worker; fill it in, or drop the row")
    if twice.any():
        raise BadInput(f"workers names '{frame['worker'].filter(twice)[0]}' twice; give each worker once")
    return frame


def _with_newcomers(known: Axis, given: pl.Series) -> tuple[Axis, int]:
    new = given.filter(known.codes(given).is_null())
    if new.is_empty():
        return known, 0
    return Axis("workers", pl.concat(alike(known.names, new))), len(new)


def _column(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """A column of numbers (or yes and no), or none; each zero or more."""
    if name not in frame.columns:
        return None
    column = frame[name]
    if column.dtype == pl.String:
        words = {"true": "1", "yes": "1", "false": "0", "no": "0", "": None} if name == "available" else {"": None}
        column = column.str.strip_chars().str.to_lowercase().replace(words)
    numbers = column.cast(pl.Float64, strict=False)
    bad = (numbers.is_null() & column.is_not_null()) | (~numbers.is_finite() | (numbers < 0)).fill_null(False)
    if bad.any():
        expected = "yes or no" if name == "available" else "a number, zero or more"
        rows = bad.arg_true()
        raise BadInput(
            *(f"workers, row {r + 1}: {name} is '{frame[name][r]}'; give {expected}" for r in rows.head(1000))
        )
    return numbers


def _each(value: Any, names: Axis, default: Tensor, what: str) -> Tensor:
    """A number for each worker, from one number or from worker -> number."""
    if not isinstance(value, Mapping):
        out = torch.as_tensor(value, dtype=torch.float32)
        if out.dim() != 0:
            raise BadInput(f"{what} is no number; give one number, or worker -> number")
        out = out.expand(len(names)).clone()
    else:
        code = names.codes(as_names(list(value.keys()), "worker"))
        if code.null_count():
            odd = list(value.keys())[int(code.is_null().arg_max() or 0)]
            raise unknown(f"worker in {what}", odd, names.names.head(100_000))
        out = default.clone()
        out[code.to_numpy().astype(np.int64)] = torch.tensor(list(value.values()), dtype=torch.float32)
    if not bool((out >= 0).all()):  # NaN too
        raise BadInput(f"{what} has a number below zero, or none; give zero or more")
    return out
