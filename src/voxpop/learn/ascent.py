"""EM with a network: an E-step over all tasks before each epoch, then the network learns the belief.

The E-step is the foundation's, with the network's predictions for the prior. Parameters of the crowd are
updated there in closed form; the network's own step is the loop's, down the cross-entropy with the belief.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from voxpop.channels.base import Channel, Theta
from voxpop.engines import em
from voxpop.learn.believing import Believing
from voxpop.learn.data import Data
from voxpop.learn.prior import NetworkPrior, clip
from voxpop.numerics.simplex import softmax_rows
from voxpop.results import Evidence
from voxpop.votes import Batch


class Ascending(Believing):
    """A channel of the foundation with a network as its prior; ``rounds`` of both steps before each epoch."""

    refreshes = True

    def __init__(self, network: nn.Module, channel: Channel, data: Data, *, rounds: int = 1, most: float = 1.0) -> None:
        super().__init__(network, data)
        self.channel, self.rounds, self.most = channel, rounds, most
        self.theta: Theta = {}

    def refresh(self, data: Data, logp: Tensor | None) -> float | None:
        """Alternate M-step and E-step. Before the first epoch the classes are alike."""
        device = self.belief.device if logp is None else logp.device
        batch, gold = data.batch.to(device), data.known
        before = uniform(batch) if logp is None else self.clipped(logp)
        model = em.Model(self.channel, NetworkPrior(before), None if gold is None else gold.to(device))
        state = em.State(self.belief.to(device)[data.positions], self.theta, {})
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

    def combine(self, x: Tensor, batch: Batch, prior: Tensor) -> Tensor:
        return softmax_rows(prior + self.channel.evidence(batch, self.theta))[0]

    def prior_of(self, x: Tensor) -> Tensor:
        return self.clipped(self.logp(x))

    def clipped(self, logp: Tensor) -> Tensor:
        return clip(logp.exp(), self.most).log() if self.most < 1 else logp

    def table(self) -> Tensor | None:
        return self.channel.table(self.theta)

    def evidence(self, prior: Tensor) -> Evidence | None:
        return Evidence.of_channel(self.channel, self.theta, prior)

    def carry(self, move: Callable[[Tensor], Tensor]) -> None:
        super().carry(move)
        self.theta = {name: move(part) for name, part in self.theta.items()}

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), **{f"theta.{name}": t for name, t in self.theta.items()}}

    def restore(self, state: dict[str, Tensor]) -> None:
        super().restore({name: t for name, t in state.items() if not name.startswith("theta.")})
        self.theta = {n.removeprefix("theta."): t for n, t in state.items() if n.startswith("theta.")}


def uniform(batch: Batch) -> Tensor:
    """log p of classes that are alike: B,K."""
    return torch.full((batch.B, batch.K), 1.0, device=batch.device).log_softmax(1)
