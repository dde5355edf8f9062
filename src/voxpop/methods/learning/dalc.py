"""Yang, Drake, Damianou and Maarek (2018), "Leveraging crowdsourcing data for deep active learning" (paper 002)."""

from __future__ import annotations

from dataclasses import dataclass

from voxpop.learn.hill import Prior
from voxpop.learn.places import Flat
from voxpop.learn.rows import Rows
from voxpop.methods.learning.targeted import Targeted
from voxpop.options import flag, one_of, option, whole


@dataclass(repr=False, eq=False)
class DALC(Targeted):
    """Each worker's expertise by topic, topics from features, and a network with dropout; by EM.

    ``low_rank=False`` is the paper's DLC/Sparse (an embedding for each worker in the space of the features), and
    ``model="linear"`` its DLC/LR. Doubt about the network comes from its dropout layers: one without has none.
    """

    topics: int = option(10, whole(1), "latent topics d of tasks and workers")
    low_rank: bool = option(True, flag(), "false: an embedding per worker in the space of the features, no topics")
    shared: bool = option(True, flag(), "whether embeddings lie around the crowd's mean (learned), or around zero")
    doubt: bool = option(True, flag(), "whether topics (if any) are learned on average over what embeddings may be")
    inner_steps: int = option(
        3, whole(1), "steps of L-BFGS (or passes over the votes) in an M-step of the crowd; the first takes 10"
    )
    samples: int = option(20, whole(1), "draws T of the network's weights for a prediction")
    inner: str = option("lbfgs", one_of("lbfgs", "sgd"), "how the crowd's M-step climbs: lbfgs, or Algorithm 2 (sgd)")

    def lift(self, rows: Rows) -> Flat:
        return Flat(rows)

    def rank(self) -> int | None:
        return self.topics if self.low_rank else None

    def prior(self) -> Prior:
        return Prior(self.penalty, self.shared)

    @property
    def draws(self) -> int:  # type: ignore[override]
        return self.samples

    @property
    def doubts(self) -> bool:  # type: ignore[override]
        return self.doubt and self.low_rank

    @property
    def climbs(self) -> str:  # type: ignore[override]
        return self.inner
