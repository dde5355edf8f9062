"""The demonstration's crowd: people who look at scikit-learn's handwritten digits, simulated."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from voxpop.numerics.seeds import generator
from voxpop.simulate.kind import Setting
from voxpop.simulate.kinds import KINDS
from voxpop.votes import Axis, Votes


@dataclass(frozen=True, eq=False)
class Digits:
    """Votes on the digits, and what only the simulator knows."""

    votes: Votes
    truth: Mapping[str, int]  # of each task
    kinds: Mapping[str, str]  # of each worker
    accuracy: Mapping[str, float]  # of each worker, as simulated
    original: Mapping[str, str]  # of each worker: whom he copies, or himself
    images: Any  # N,8,8

    def picture(self, task: str) -> bytes:
        """The digit as PNG, large enough to be seen."""
        from matplotlib.image import imsave

        pixels = self.images[int(re.sub(r"\D", "", task))]
        file = io.BytesIO()
        imsave(file, np.kron(pixels, np.ones((6, 6))), cmap="gray_r", vmin=0, vmax=16, format="png")
        return file.getvalue()


def vote_on_digits(seed: int = 0, workers: int = 50) -> Digits:
    """A believable crowd on the 1,797 digits: experts, sloppy workers, spammers, and copies of others."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    shown = torch.from_numpy(digits.target).long()  # N
    share = torch.bincount(shown) / len(shown)
    setting = Setting(len(shown), workers, len(share), share, generator(seed, "workers"))
    crowd = KINDS["believable"].crowd(setting, {})
    said = crowd.vote(shown, seed)
    names = [f"w{place:02}" for place in range(workers)]
    tasks = [f"digit {place:04}" for place in range(len(shown))]
    source = [] if crowd.copying is None else crowd.copying.source.tolist()
    return Digits(
        replace(said.votes, tasks=Axis("tasks", tasks), workers=Axis("workers", names)),
        truth=dict(zip(tasks, shown.tolist(), strict=True)),
        kinds=dict(zip(names, said.kinds, strict=True)),
        accuracy=dict(zip(names, said.accuracy.tolist(), strict=True)),
        original={name: name for name in names} | {names[i]: names[s] for i, s in enumerate(source) if s >= 0},
        images=digits.images,
    )
