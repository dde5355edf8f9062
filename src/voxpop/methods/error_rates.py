"""Known error rates of workers, from a file, a frame or an array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.numerics.simplex import normalise
from voxpop.votes import Votes
from voxpop.votes.axis import as_names

COLUMNS = ("worker", "truth", "label", "p")


def error_rates(known: Any, votes: Votes) -> Tensor:
    """M,K,K as [worker, truth, label], rows summing to one; rows not mentioned get the mean of those that are."""
    shape = (votes.M, votes.K, votes.K)
    if isinstance(known, str | Path):
        path = Path(known)
        if not path.is_file():
            raise BadInput(f"error_rates: no such file '{path}'; give a CSV with columns {', '.join(COLUMNS)}")
        known = pl.read_csv(path, infer_schema=False)
        if "p" in known.columns:
            known = known.with_columns(pl.col("p").cast(pl.Float64, strict=False))
    if hasattr(known, "columns"):
        return _from_frame(nw.from_native(known), votes, shape)
    table = torch.as_tensor(known, dtype=torch.float64)
    if tuple(table.shape) != shape:
        raise BadInput(
            f"error_rates has the shape {tuple(table.shape)}; these votes need {shape} as [worker, truth, label]"
        )
    return _checked(table)


def _from_frame(frame: Any, votes: Votes, shape: tuple[int, int, int]) -> Tensor:
    absent = [c for c in COLUMNS if c not in frame.columns]
    if absent:
        raise BadInput(f"error_rates has no column '{absent[0]}'; it needs {', '.join(COLUMNS)}")
    places = []
    for column, axis in (("worker", votes.workers), ("truth", votes.classes), ("label", votes.classes)):
        names = as_names(frame[column].to_polars(), column)
        codes = axis.codes(names)
        if codes.null_count():
            raise BadInput(
                f"error_rates: {column} '{names.filter(codes.is_null())[0]}' is not among the votes' {axis.kind}"
            )
        places.append(torch.from_numpy(codes.to_numpy().astype("int64")))
    p = torch.tensor(frame["p"].to_numpy(), dtype=torch.float64)
    table = torch.zeros(shape, dtype=torch.float64).index_put_(tuple(places), p)
    return _checked(table)


def _checked(table: Tensor) -> Tensor:
    if not bool(torch.isfinite(table).all()) or bool((table < 0).any()):
        raise BadInput("error_rates holds a negative or missing number; give probabilities")
    given = table.sum(2, keepdim=True) > 0  # M,K,1
    rows = normalise(table)
    mean = torch.where(given, rows, 0.0).sum(0) / given.sum(0).clamp_min(1)  # K,K
    mean = normalise(mean)
    return torch.where(given, rows, mean)
