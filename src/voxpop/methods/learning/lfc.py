"""LFC, learning from crowds: Yan et al. (2010), "Modeling annotator expertise"; Yan et al. (2011), "Active learning
from crowds". The baseline of paper 002 under that name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voxpop.learn.places import Flat
from voxpop.learn.rows import Rows
from voxpop.methods.learning.targeted import Targeted
from voxpop.options import anything, option


@dataclass(repr=False, eq=False)
class LFC(Targeted):
    """Logistic regression, and a logistic reliability of each worker in the features, by EM.

    p(right) = sigmoid(w_j' x + g_j): each worker has weights of his own for all features.
    """

    model: Any = option("linear", anything(), "the classifier: linear, mlp, mlp:100 (hidden units), cnn, or a Module")

    def lift(self, rows: Rows) -> Flat:
        return Flat(rows)
