"""Monte Carlo dropout: predictions by draws of a network's weights.

Gal and Ghahramani (2016), "Dropout as a Bayesian approximation"; paper 002, eqs. 3, 4 and 10.
A draw is one set of weights for all rows, as eq. 4 has it: each dropout layer draws one mask and keeps it for
every row. So what is predicted for a row does not depend on the rows beside it, and equal seeds give equal draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from voxpop.numerics.seeds import generator


def dropouts(network: nn.Module) -> list[nn.Module]:
    """Its layers that drop something."""
    return [layer for layer in network.modules() if isinstance(layer, _DropoutNd) and layer.p > 0]


def draws(network: nn.Module, x: Tensor, samples: int, seed: int) -> Tensor:
    """log p(class | x) under each of ``samples`` draws of the weights: T,B,K. Without dropout there is but one."""
    if not dropouts(network):
        return _log(network, x)[None]
    same, varying = halves(network)
    x, out = same(x), []
    for number in range(samples):
        with drawn(varying, seed, number):
            out.append(_log(varying, x))
    return torch.stack(out)


def halves(network: nn.Module) -> tuple[nn.Module, nn.Module]:
    """The layers before the first that drops something, which are the same in every draw, and the others."""
    layers = _in_a_row(network)
    first = next(place for place, layer in enumerate(layers) if dropouts(layer))
    return nn.Sequential(*layers[:first]), nn.Sequential(*layers[first:])


def _in_a_row(network: nn.Module) -> list[nn.Module]:
    if type(network) is not nn.Sequential:
        return [network]
    return [layer for part in network for layer in _in_a_row(part)]


def mean_of(log: Tensor) -> Tensor:
    """Eq. 4: the log of the mean over draws (T,B,K) of p(class | x): B,K."""
    return torch.logsumexp(log, 0) - math.log(len(log))


@contextmanager
def drawn(network: nn.Module, seed: int, number: int) -> Iterator[None]:
    """Inside, the network in evaluation drops by masks of this draw."""
    hooks = [
        layer.register_forward_hook(partial(_drop, generator(seed, "dropout", number, place).initial_seed()))
        for place, layer in enumerate(dropouts(network))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _drop(seed: int, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    """What the layer does to an input is linear given its mask, so two rows of constants tell it: any kind of dropout.

    Torch's dropout knows only torch's own generator: it is set for this mask, and put back.
    """
    x = inputs[0]
    devices = [x.device] if x.device.type == "cuda" else []
    offset = _masked(layer, torch.zeros_like(x[:1]), seed, devices)
    scaled = _masked(layer, torch.ones_like(x[:1]), seed, devices)
    dropped: Tensor = offset + x * (scaled - offset)
    return dropped


def _masked(layer: nn.Module, row: Tensor, seed: int, devices: list[torch.device]) -> Tensor:
    was = layer.training
    try:
        with torch.random.fork_rng(devices):
            _own_generator(row.device).manual_seed(seed % (1 << 63))
            masked: Tensor = layer.train().forward(row)  # not called, or this hook would call itself
            return masked
    finally:
        layer.train(was)


def _own_generator(device: torch.device) -> torch.Generator:
    """Torch's own on this device alone: ``torch.manual_seed`` looks at every kind of device there might be."""
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator


def _log(network: nn.Module, x: Tensor) -> Tensor:
    logits: Tensor = network(x)
    return logits.float().log_softmax(1)
