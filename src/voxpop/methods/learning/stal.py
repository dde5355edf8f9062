"""STAL: Fang, Zhu, Li, Ding and Wu (2012), "Self-taught active learning from crowds"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voxpop.learn.rows import Rows
from voxpop.learn.topics import Mixture
from voxpop.methods.learning.targeted import Targeted
from voxpop.options import anything, option, whole


@dataclass(repr=False, eq=False)
class STAL(Targeted):
    """Topics from a Gaussian mixture of all features, a reliability of each worker by topic, logistic regression.

    The mixture is found first, from all rows, with and without votes; then the rest by EM.
    """

    model: Any = option("linear", anything(), "the classifier: linear, mlp, mlp:100 (hidden units), cnn, or a Module")
    components: int = option(10, whole(1), "components of the mixture: topics of the tasks")

    def lift(self, rows: Rows) -> Mixture:
        return Mixture(rows, self.components, self.seed)
