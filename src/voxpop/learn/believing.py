"""Training on a belief about every task: soft labels that somebody makes, and may make anew before each epoch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from voxpop.engines.starts import shares
from voxpop.learn.classical import Classical
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective, Parcel, soft_cross_entropy
from voxpop.votes import Batch


class Believing(Objective):
    """The network learns ``belief``, and needs no more than that: so a scikit-learn classifier may be in its place."""

    def __init__(self, network: nn.Module, data: Data) -> None:
        super().__init__(network)
        self.belief = shares(data.votes, data.gold)  # N,K: kept for all tasks, found for the data's

    def learned(self, data: Data, done: int) -> Tensor:
        """At first nothing is believed of tasks without votes; later what the network says of them is a belief too."""
        return data.positions if done and self.refreshes else data.voted

    def forward(self, x: Tensor, parcel: Parcel) -> Tensor:
        """The votes are in the belief already, and so are known truths."""
        return self._loss(x, parcel.rows)

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        assert batch.rows is not None
        return self._loss(x, batch.rows)

    def _loss(self, x: Tensor, rows: Tensor) -> Tensor:
        belief = self.belief[rows.to(self.belief.device)].to(x.device)
        return soft_cross_entropy(self.network(x), belief, self.class_weight)

    def refit(self, data: Data, tasks: Tensor) -> float:
        """A scikit-learn classifier learns the belief in these tasks, from the beginning; its loss there."""
        assert isinstance(self.network, Classical)
        belief = self.belief[tasks.to(self.belief.device)].cpu()
        weight = None if self.class_weight is None else self.class_weight.cpu()
        self.network.learn(data.rows, tasks, belief, weight)
        logits = torch.cat([self.network(data.rows.take(part)) for part in torch.split(tasks, 4096)])
        return float(soft_cross_entropy(logits, belief, weight))

    def believed(self) -> Tensor | None:
        return self.belief

    def carry(self, move: Callable[[Tensor], Tensor]) -> None:
        self.belief = move(self.belief)

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "belief": self.belief}

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: t for name, t in state.items() if name != "belief"})
        self.belief = state["belief"]
