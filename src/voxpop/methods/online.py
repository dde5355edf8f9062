"""Dawid and Skene's model learned from votes as they come, by stepwise EM (paper 003, active crowdsourcing)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Self

import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import pad

from voxpop.channels.base import require_table
from voxpop.channels.confusion import Confusion
from voxpop.engines import online
from voxpop.engines.online import Pace, Running
from voxpop.engines.outcome import Status
from voxpop.errors import BadInput
from voxpop.numerics.seeds import generator
from voxpop.numerics.simplex import first_best, normalise
from voxpop.options import Rule, above, check_options, one_of, option, whole
from voxpop.results import Consensus, Evidence
from voxpop.votes import Batch, Votes
from voxpop.votes.log import Column, Log

POWERS = Rule(lambda v: isinstance(v, int | float) and 0.5 < v <= 1, "a number above 0.5, at most 1")


@dataclass(eq=False, repr=False)
class OnlineDawidSkene:
    """A confusion matrix per worker and class frequencies, kept up to date vote by vote.

    ``partial_fit(votes)`` takes time in proportion to the new votes (and those that their tasks have already), however
    many there were before. New tasks, workers and classes may appear. A vote that is told again (same task, worker and
    label) is counted once. ``refine`` looks at everything again; so the answer nears that of a full fit. ``lead``
    tells right from wrong before anything is known of a worker, and has no weight once he has many votes.
    """

    smoothing: float = option(0.1, above(0), "pseudo votes added to every cell of a confusion matrix")
    lead: float = option(0.4, above(0), "pseudo votes added to every right cell: new workers are likely right")
    class_prior: str = option("learned", one_of("uniform", "learned"), "what is believed of a task before its votes")
    power: float = option(0.6, POWERS, "the step is lambda_t = t^-power (paper 003: 0.6); 1: all votes weigh alike")
    unit: float = option(100.0, above(0), "votes of one worker (or tasks) that t counts as one")
    batch_size: int = option(1000, whole(1), "tasks in a step")
    seed: int = option(0, whole(0), "seed of the order in which tasks are gone through")

    def __post_init__(self) -> None:
        check_options(self)
        self._log = Log()
        self._mean = Column(torch.zeros(0, 0, 0, dtype=torch.float64))  # M,K,K as [worker, label, truth]
        self._seen = Column(torch.zeros(0, dtype=torch.float64))  # M
        self._votes = Column(torch.zeros(0, dtype=torch.float64))  # M: how many different votes each worker has
        self._classes = Running.nothing(1, 0)  # 1,K
        self._calls = 0
        self.accepted_ = self.known_ = 0

    # -- learning ---------------------------------------------------------------------------------------

    def partial_fit(self, votes: Votes) -> Self:
        """Take in new votes; ``accepted_`` and ``known_`` say how many of them were new, and told before."""
        if not isinstance(votes, Votes):
            raise BadInput(
                f"partial_fit takes Votes, not {type(votes).__name__}: make them with vp.read or vp.Votes.from_frame"
            )
        before = self._log.V
        touched, self.known_ = self._log.tell(votes)
        self.accepted_ = self._log.V - before
        self._grow()
        new = self._log.column("worker")[before:].long()
        self._votes.values.index_add_(0, new, torch.ones(len(new), dtype=torch.float64))
        if len(touched):
            self._pass(touched)
        return self

    def refine(self, passes: int = 1) -> Self:
        """Go through all tasks again, in time proportional to all votes."""
        for _ in range(passes):
            self._pass(torch.arange(len(self._log.tasks)))
        return self

    def _pass(self, tasks: Tensor) -> None:
        order = tasks[torch.randperm(len(tasks), generator=generator(self.seed, "online", self._calls))]
        self._calls += 1
        for some in torch.split(order, self.batch_size):
            self._step(some.sort().values)
        self.__dict__.pop("consensus_", None)

    def _step(self, tasks: Tensor) -> None:
        """One step of the engine on these tasks; only the rows of workers who voted there are looked at."""
        batch, who = self._batch(tasks)
        state = online.State(Running(self._mean.values[who], self._seen.values[who]), self._classes)
        state, _ = online.step(batch, state, self._log_table(who), self._log_classes(), Pace(self.power, self.unit))
        self._mean.values[who], self._seen.values[who] = state.workers.mean, state.workers.seen
        self._classes = state.classes

    def _batch(self, tasks: Tensor) -> tuple[Batch, Tensor]:
        """These tasks with all their votes; workers count within the batch, and who they are."""
        worker, label, offsets, place = self._log.grouped(tasks)
        who, worker = torch.unique(worker, return_inverse=True)
        K = len(self._log.classes)
        batch = Batch(place, worker.int(), label, offsets, len(who), K, len(tasks), len(label), tasks)
        return batch, who.long()

    def _grow(self) -> None:
        """Room for new workers and classes."""
        M, K = len(self._log.workers), len(self._log.classes)
        require_table(M, K, "a confusion matrix per worker")
        more = K - self._classes.mean.shape[1]
        if more:
            self._mean = Column(pad(self._mean.values, (0, more, 0, more)))
            self._classes = Running(pad(self._classes.mean, (0, more)), self._classes.seen)
        fresh = torch.zeros(M - self._votes.size, dtype=torch.float64)
        self._mean.add(fresh[:, None, None].expand(-1, K, K))
        self._seen.add(fresh)
        self._votes.add(fresh)

    # -- what was learned -------------------------------------------------------------------------------

    @property
    def _pseudo(self) -> Tensor:
        K = len(self._log.classes)
        return self.smoothing + self.lead * torch.eye(K, dtype=torch.float64)  # K,K

    def _log_table(self, who: Tensor) -> Tensor:
        """log p(label | truth) of some workers: M,K,K as [worker, label, truth]."""
        counts = self._mean.values[who] * self._votes.values[who, None, None]
        return Confusion(self._pseudo).update({"counts": counts}, None)["log"]

    def _log_classes(self) -> Tensor:
        """K, with one pseudo task in each class."""
        shares = normalise(self._classes.mean[0] * len(self._log.tasks) + 1)
        return torch.zeros(len(shares)) if self.class_prior == "uniform" else shares.log().float()

    def labels(self, tasks: Any) -> pl.DataFrame:
        """task, label, confidence of some tasks as things stand, in time proportional to their votes."""
        names = pl.Series("task", list(tasks))
        place = self._log.tasks.places(names)
        rows, back = torch.unique(place, return_inverse=True)
        batch, who = self._batch(rows)
        belief, _ = online.expect(batch, self._log_table(who), self._log_classes())
        label, _ = first_best(belief)
        sure = belief.gather(1, label[:, None].long())[:, 0]
        said = self._log.classes.axis.names.gather(label[back].numpy())
        return pl.DataFrame({"task": names, "label": said, "confidence": sure[back].numpy()})

    @property
    def workers(self) -> pl.DataFrame:
        """worker, votes, accuracy: the chance of being right on a task of this crowd's classes."""
        everybody = torch.arange(self._votes.size)
        right = self._log_table(everybody).diagonal(dim1=1, dim2=2).exp()  # M,K
        accuracy = right.double() @ self._log_classes().double().softmax(0)
        return pl.DataFrame(
            {
                "worker": self._log.workers.axis.names,
                "votes": self._votes.values.long().numpy(),
                "accuracy": accuracy.numpy(),
            }
        )

    @cached_property
    def consensus_(self) -> Consensus:
        """Everything as things stand, by one E-step over all votes when it is asked for."""
        votes = self._log.votes()
        log, prior = self._log_table(torch.arange(votes.M)), self._log_classes()
        belief, _ = online.expect(votes.whole, log, prior)
        return Consensus(
            votes,
            belief,
            type(self).__name__,
            Status.TRAINED,
            options=asdict(self),
            fitted_table=log.exp().transpose(1, 2).contiguous(),
            evidence=Evidence("table", {"log": log}, prior),
        )

    # -- kept -------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file (safetensors with a JSON header, no pickle)."""
        from voxpop.io.write import writing
        from voxpop.results.store import FORMAT, pack_axis, write_file

        tensors = {name: self._log.column(name).clone() for name in ("task", "worker", "label")}
        tensors |= {"mean": self._mean.values.clone(), "seen": self._seen.values.clone()}
        tensors |= {"classes.mean": self._classes.mean, "classes.seen": self._classes.seen}
        axes = {}
        for kind in ("tasks", "workers", "classes"):
            axes[kind], packed = pack_axis(getattr(self._log, kind).axis)
            tensors |= {f"{kind}.{name}": tensor for name, tensor in packed.items()}
        header = {"format": FORMAT, "kind": "online", "options": asdict(self), "axes": axes, "calls": self._calls}
        with writing(path) as file:
            write_file(header, tensors, file)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what ``save`` wrote."""
        from voxpop.results.store import read_file, unpack_axis

        header, tensors = read_file(path)
        if header["kind"] != "online":
            raise BadInput(f"{path}: holds a {header['kind']}, not the state of an {cls.__name__}; use voxpop.load")
        found = cls(**header["options"])
        axes = [unpack_axis(kind, header["axes"][kind], tensors) for kind in ("tasks", "workers", "classes")]
        found._log = Log.resumed([tensors[name] for name in ("task", "worker", "label")], axes)
        found._mean, found._seen = Column(tensors["mean"]), Column(tensors["seen"])
        found._classes = Running(tensors["classes.mean"], tensors["classes.seen"])
        found._votes = Column(torch.bincount(tensors["worker"], minlength=len(axes[1])).double())
        found._calls = header["calls"]
        return found

    def __repr__(self) -> str:
        log = self._log
        return f"<OnlineDawidSkene: {log.V} votes of {len(log.workers)} workers on {len(log.tasks)} tasks>"
