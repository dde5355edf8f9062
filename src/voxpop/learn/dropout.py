"""Monte Carlo dropout: predictions by draws of a network's weights.

Gal and Ghahramani (2016), "Dropout as a Bayesian approximation"; paper 002, eqs. 3, 4 and 10.
A draw is one set of weights for all rows, as eq. 4 has it: each dropout layer draws one mask and keeps it for
every row. So what is predicted for a row does not depend on the rows beside it, and equal seeds give equal draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
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
    if _is_last(varying, x):
        return _of_last(varying, x, tuple(_seed(seed, number, 0) for number in range(samples)))
    for number in range(samples):
        with drawn(varying, seed, number):
            out.append(_log(varying, x))
    return torch.stack([log.t() for log in out]).mT


def _is_last(varying: nn.Sequential, x: Tensor) -> bool:
    """Whether all that differs between draws is a plain dropout before a last linear layer."""
    return [type(layer) for layer in varying] == [nn.Dropout, nn.Linear] and x.dim() == 2


def _of_last(varying: nn.Sequential, x: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """``draws`` of a last layer: eq. 3 as it stands, the masks on its weights, all draws in one product: T,B,K."""
    dropout, linear = varying
    assert isinstance(dropout, nn.Dropout)
    assert isinstance(linear, nn.Linear)
    masks = _masks(dropout.p, x.shape[1], seeds, x.device)  # T,1,H
    weight = masks * linear.weight  # T,K,H
    logits = (weight.flatten(0, 1) @ x.t()).view(len(seeds), -1, len(x))  # T,K,B
    if linear.bias is not None:
        logits += linear.bias[:, None]
    return logits.float().log_softmax(1).transpose(1, 2)


@lru_cache(maxsize=8)
def _masks(p: float, width: int, seeds: tuple[int, ...], device: torch.device) -> Tensor:
    """The masks of a dropout, the same for any rows: T,1,H."""
    return _masked(nn.Dropout(p), torch.ones(1, width, device=device), seeds)


def halves(network: nn.Module) -> tuple[nn.Sequential, nn.Sequential]:
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
    return torch.logsumexp(log.mT, 0).mT - math.log(len(log))  # draws have their rows side by side


@contextmanager
def drawn(network: nn.Module, seed: int, number: int) -> Iterator[None]:
    """Inside, the network in evaluation drops by masks of this draw."""
    hooks = [
        layer.register_forward_hook(partial(_drop, _seed(seed, number, place)))
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
    offset, scaled = (_masked(layer, fill(x[:1]), (seed,))[0] for fill in (torch.zeros_like, torch.ones_like))
    dropped: Tensor = offset + x * (scaled - offset)
    return dropped


def _seed(seed: int, number: int, place: int) -> int:
    return generator(seed, "dropout", number, place).initial_seed() % (1 << 63)


def _masked(layer: nn.Module, row: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """What is left of a row (1,...) by the mask of each seed: T,1,..."""
    was = layer.training
    try:
        with torch.random.fork_rng([row.device] if row.device.type == "cuda" else []):
            left, own = [], _own_generator(row.device)
            layer.train()
            for seed in seeds:
                own.manual_seed(seed)
                left.append(layer.forward(row))  # not called, or the hook would call itself
            return torch.stack(left)
    finally:
        layer.train(was)


def _own_generator(device: torch.device) -> torch.Generator:
    """Torch's own on this device alone: ``torch.manual_seed`` looks at every kind of device there might be."""
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator


def _log(network: nn.Module, x: Tensor) -> Tensor:
    logits: Tensor = network(x)
    return logits.float().log_softmax(1)
