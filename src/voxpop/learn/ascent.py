"""EM with a network: an E-step over all tasks before each epoch, then the network learns the belief.

The E-step is the foundation's, with the network's predictions for the prior. Parameters of the crowd are
updated there in closed form; the network's own step is the loop's, down the cross-entropy with the belief.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from voxpop.channels.base import Channel, Theta
from voxpop.engines import em
from voxpop.engines.starts import shares
from voxpop.learn.data import Data
from voxpop.learn.objective import Objective, soft_cross_entropy
from voxpop.learn.prior import NetworkPrior, clip
from voxpop.votes import Batch


class Ascending(Objective):
    """A channel of the foundation with a network as its prior; ``rounds`` of both steps before each epoch."""

    refreshes = True
    learns_from_all = True

    def __init__(
        self,
        network: nn.Module,
        channel: Channel,
        data: Data,
        *,
        rounds: int = 1,
        most: float = 1.0,
        weight: Tensor | None = None,
    ) -> None:
        super().__init__(network)
        self.channel, self.rounds, self.most = channel, rounds, most
        self.weight = weight
        self.theta: Theta = {}
        self.belief = shares(data.votes, data.gold)  # N,K; kept for all tasks, found for the data's

    def loss(self, x: Tensor, batch: Batch) -> Tensor:
        assert batch.rows is not None
        belief = self.belief[batch.rows.to(self.belief.device)].to(x.device)
        return soft_cross_entropy(self.network(x), belief, None if self.weight is None else self.weight.to(x.device))

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        """Alternate E-step and M-step. Before the first epoch the classes are alike."""
        K = data.votes.K
        device = self.belief.device if logp is None else logp.device
        batch, gold = data.batch.to(device), data.known
        if logp is None:
            logp = torch.full((batch.B, K), 1.0, device=device).log_softmax(1)
        logp = self._clipped(logp)
        model = em.Model(self.channel, NetworkPrior(), None if gold is None else gold.to(device))
        state = em.State(self.belief.to(device)[data.positions], self.theta, {"log": logp})
        bound = None
        for _ in range(self.rounds):
            state, info = model.step(batch, state)
            bound = info.bound
        self.theta = state.theta
        self.belief = self.belief.to(device)
        self.belief[data.positions.to(device)] = state.belief
        return bound

    def given(self, x: Tensor, batch: Batch) -> Tensor:
        return self.channel.likelihood(batch, self.theta).log().float()

    def combine(self, x: Tensor, batch: Batch) -> Tensor:
        return (self.prior_of(x) + self.channel.evidence(batch, self.theta)).softmax(1)

    def prior_of(self, x: Tensor) -> Tensor:
        return self._clipped(self.logp(x))

    def _clipped(self, logp: Tensor) -> Tensor:
        return clip(logp.exp(), self.most).log() if self.most < 1 else logp

    def table(self) -> Tensor | None:
        return self.channel.table(self.theta)

    def log_table(self) -> Tensor | None:
        log = self.theta.get("log")  # as [worker, label, truth]
        return None if log is None or log.dim() != 3 else log.transpose(1, 2)

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), **{f"theta.{name}": t for name, t in self.theta.items()}, "belief": self.belief}

    def restore(self, state: dict[str, Tensor]) -> None:
        own = {name: t for name, t in state.items() if not name.startswith("theta.") and name != "belief"}
        super().restore(own)
        self.theta = {n.removeprefix("theta."): t for n, t in state.items() if n.startswith("theta.")}
        self.belief = state["belief"]
