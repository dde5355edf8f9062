"""A network taken apart: what makes features of a row, and the last layer, which makes logits of them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Parts:
    """Both are the network's own modules: what is learned by the one is learned by the other."""

    body: nn.Module
    head: nn.Module
    width: int  # of the features


def parts_of(network: nn.Module, classes: int) -> Parts:
    """Body and head of a network that ends in a linear layer; of any other its logits are taken for features."""
    found = _split(network)
    return Parts(network, nn.Identity(), classes) if found is None else Parts(*found, found[1].in_features)


def _split(network: nn.Module) -> tuple[nn.Module, nn.Linear] | None:
    if not isinstance(network, nn.Sequential) or not len(network):
        return None
    *first, last = network
    if isinstance(last, nn.Linear):
        return nn.Sequential(*first), last
    inner = _split(last)
    return None if inner is None else (nn.Sequential(*first, inner[0]), inner[1])
