"""Topics of tasks as the components of a Gaussian mixture of their features; tasks without votes help to find them.

Fang, Zhu, Li, Ding and Wu (2012), "Self-taught active learning from crowds".
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor, nn

from voxpop.learn.networks import Scale
from voxpop.learn.rows import Rows

LOOKED_AT = 20_000  # rows that the mixture is found on
FLOOR = 1e-2  # least variance of a feature within a component, where features have variance one


class Mixture(nn.Module):
    """Rows as the probabilities of the mixture's components: B,G."""

    log_weight: Tensor
    mean: Tensor
    precision: Tensor

    def __init__(self, rows: Rows, components: int, seed: int) -> None:
        super().__init__()
        self.scale = Scale(rows.shape).learn(rows)
        self.width, self.seed = components, seed  # G
        D = int(torch.Size(rows.shape).numel())
        self.register_buffer("log_weight", torch.zeros(components))  # G
        self.register_buffer("mean", torch.zeros(components, D))  # G,D
        self.register_buffer("precision", torch.ones(components, D))  # G,D: one over the variances

    def learn(self, rows: Rows) -> None:
        """The mixture of these rows, by EM from k-means; components that there are too few rows for stay empty."""
        from sklearn.mixture import GaussianMixture

        index = torch.linspace(0, len(rows) - 1, min(len(rows), LOOKED_AT), dtype=torch.float64).round().long()
        where = self.mean.device
        x = torch.cat([self._flat(rows.take(part).to(where)) for part in torch.split(index, 1024)]).double().cpu()
        G = min(self.width, len(x))
        found = GaussianMixture(G, covariance_type="diag", reg_covar=FLOOR, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it might go on, or that rows are alike
            found.fit(x.numpy())
        self.log_weight.fill_(-math.inf)[:G] = torch.from_numpy(found.weights_).log()
        self.mean[:G] = torch.from_numpy(found.means_).to(self.mean)
        self.precision[:G] = torch.from_numpy(found.precisions_).to(self.mean)

    def forward(self, x: Tensor) -> Tensor:
        x = self._flat(x)
        scaled = self.mean * self.precision  # G,D
        square = x.square() @ self.precision.t() - 2 * x @ scaled.t() + (self.mean * scaled).sum(1)  # B,G
        return (self.log_weight + 0.5 * self.precision.log().sum(1) - 0.5 * square).softmax(1)

    def _flat(self, x: Tensor) -> Tensor:
        scaled: Tensor = self.scale(x)
        return scaled.flatten(1)
