"""What the methods by descent share: how the crowd's weights begin, and how fast they learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voxpop.learn import crossed
from voxpop.learn.crowd import Confusions
from voxpop.learn.data import Data
from voxpop.learn.held_out import Held
from voxpop.learn.learner import Learner, Variants
from voxpop.options import above, at_least, flag, option


@dataclass(repr=False, eq=False)
class Descent(Learner):
    """A network and the crowd's weights down one loss."""

    crowd_lr: float = option(1e-2, above(0), "learning rate of the crowd's weights")
    pull: float = option(1.0, at_least(0), "how strongly a worker's weights are held to the crowd's; 0: not at all")
    cross_fit: bool = option(
        True, flag(), "the truth of a task is inferred by networks that did not see its votes (one more training)"
    )

    def crossed(self, data: Data, epochs: int, held: Held | None) -> Held | None:
        return crossed.fit(self._maker(), data, self._settings(), epochs, held) if self.cross_fit else None

    @property
    def common(self) -> dict[str, Any]:
        """What every objective with confusion matrices is told."""
        return {"crowd_lr": self.crowd_lr, "pull": self.pull}


@dataclass(repr=False, eq=False)
class Counted(Descent):
    """Whose confusion matrices begin as the votes count them."""

    pseudo: float = option(
        1.0, above(0), "votes for each truth that pull the first matrices to the right label and to the crowd's"
    )

    def confusions(self, data: Data) -> Confusions:
        return Confusions.counted(data, self.pseudo)


def weights_to_try(option: str, given: float | None, values: Sequence[float], words: str) -> Variants:
    """Values of an option for held-out votes to choose among, unless it is given."""
    return {} if given is not None else {f"{words} {value:g}": {option: value} for value in values}
