"""Random numbers: every generator is made here from a seed and a purpose, and no global state is touched."""

from __future__ import annotations

import zlib

import torch


def generator(seed: int, *purpose: object, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator of its own for each purpose: equal seeds give equal draws, other purposes other ones."""
    text = "/".join(str(p) for p in purpose)
    mixed = (int(seed) * 0x9E3779B97F4A7C15 + zlib.crc32(text.encode())) % (1 << 63)
    return torch.Generator(device=device).manual_seed(mixed)
