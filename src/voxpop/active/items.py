"""What may be asked about, and what is believed of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.votes import Axis


@dataclass(frozen=True, eq=False)
class Items:
    """Names and beliefs of the tasks to choose from. Rows of everything are in the order of ``names``."""

    names: Axis
    belief: Tensor  # N,K: with all that is known, the votes of the task too
    samples: Tensor | None = None  # T,N,K: p(class) by draws of the model, before the task's own votes
    evidence: Tensor | None = None  # N,K: log-likelihood of the task's own votes, zeros for none

    def __post_init__(self) -> None:
        N, K = len(self.names), self.belief.shape[-1]
        for name, part, shape in (
            ("belief", self.belief, (N, K)),
            ("samples", self.samples, (None if self.samples is None else len(self.samples), N, K)),
            ("evidence", self.evidence, (N, K)),
        ):
            if part is None:
                continue
            if tuple(part.shape) != shape:
                raise BadInput(f"{name} of the items has the shape {tuple(part.shape)}, where {shape} is needed")
            if not bool(torch.isfinite(part).all()):
                raise BadInput(f"{name} of the items holds a number that is not finite; the fit has failed")
