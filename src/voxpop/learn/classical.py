"""A scikit-learn classifier in the place of a network: fitted anew to the belief, once an epoch."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from voxpop.errors import BadInput, BadOption
from voxpop.learn.rows import Rows, SparseRows

LEAST = 1e-4  # a class that is believed less of a task is not among the task's labels
FLOOR = 1e-6  # of a predicted probability: trees and neighbours say 0 of what they have not seen


class Classical(nn.Module):
    """Soft labels are rows repeated for each class, weighted by the belief in it; outputs are log probabilities."""

    def __init__(self, estimator: Any, classes: int) -> None:
        super().__init__()
        self.template, self.classes = estimator, classes
        self.estimator: Any = None  # fitted; before that all classes are alike

    @property
    def name(self) -> str:
        return type(self.template).__name__

    def learn(self, rows: Rows, tasks: Tensor, belief: Tensor, class_weight: Tensor | None = None) -> None:
        """Fit a fresh copy to these tasks (positions in ``rows``) and the belief in each class (n,K)."""
        from sklearn.base import clone

        task, label = (belief > LEAST).nonzero().unbind(1)
        weight = belief[task, label].double()
        if class_weight is not None:
            weight = weight * class_weight[label]
        if label.numel() == 0:
            return
        self.estimator = clone(self.template)
        x = as_matrix(rows, tasks)[task.numpy()]
        if bool((weight == 1).all()):  # hard labels of equal weight: any classifier will do
            self.estimator.fit(x, label.numpy())
            return
        self.estimator.fit(x, label.numpy(), **{self._weight_name(): weight.numpy()})

    def _weight_name(self) -> str:
        """How ``fit`` calls the weights of rows: in a pipeline they are its last step's."""
        last, name = self.template, "sample_weight"
        while hasattr(last, "steps"):
            name, last = f"{last.steps[-1][0]}__{name}", last.steps[-1][1]
        known = signature(last.fit).parameters.values()
        if any(p.name == "sample_weight" or p.kind is Parameter.VAR_KEYWORD for p in known):
            return name
        raise BadOption(
            f"{type(last).__name__}.fit takes no sample_weight, so it cannot learn soft labels; use one that does "
            "(LogisticRegression, RandomForestClassifier, ...), or TwoStage(hard=True)"
        )

    def forward(self, x: Tensor) -> Tensor:
        """log p(class) of rows: B,K."""
        if self.estimator is None:
            return torch.zeros(len(x), self.classes, device=x.device)
        found = np.asarray(self.estimator.predict_proba(x.detach().cpu().flatten(1).numpy()))
        p = torch.full((len(x), self.classes), FLOOR)
        p[:, torch.as_tensor(self.estimator.classes_).long()] = torch.from_numpy(found).float().clamp_min(FLOOR)
        return (p / p.sum(1, keepdim=True)).log().to(x.device)

    def get_extra_state(self) -> Any:
        raise BadInput(
            f"a scikit-learn model ({self.name}) cannot be written without pickle; use a network that can "
            "(linear, mlp, cnn, resnet or a torch Module), or keep .model_.estimator with joblib yourself"
        )


def is_classical(model: Any) -> bool:
    """Whether this is a scikit-learn classifier rather than a torch Module, or a name."""
    return hasattr(model, "fit") and hasattr(model, "get_params") and not isinstance(model, nn.Module)


def classical(model: Any, classes: int) -> Classical:
    if not hasattr(model, "predict_proba"):
        raise BadOption(
            f"{type(model).__name__} has no predict_proba; calibrate it (CalibratedClassifierCV), or choose another"
        )
    return Classical(model, classes)


def as_matrix(rows: Rows, tasks: Tensor) -> Any:
    """The rows as scikit-learn wants them: two axes, sparse if they are."""
    if isinstance(rows, SparseRows):
        return rows.matrix[tasks.numpy()]
    return rows.take(tasks).flatten(1).numpy()
