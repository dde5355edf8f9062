"""Learners: scikit-learn estimators whose ``y`` are votes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from voxpop.engines.events import emit, listening
from voxpop.engines.starts import shares
from voxpop.errors import BadInput, BadOption, VoxError
from voxpop.learn import held_out
from voxpop.learn.averaged import Averaged
from voxpop.learn.classical import classical, is_classical
from voxpop.learn.data import Data
from voxpop.learn.finish import conclude, forecast
from voxpop.learn.loop import Settings, Training, seeded
from voxpop.learn.networks import network
from voxpop.learn.objective import Objective, asking
from voxpop.learn.rows import ImageRows, Rows, rows_of
from voxpop.learn.targets import votes_of
from voxpop.learn.texts import reader_for, texts_in
from voxpop.numerics.seeds import generator
from voxpop.options import (
    Rule,
    above,
    anything,
    at_least,
    check_options,
    fraction,
    one_of,
    option,
    optional,
    plain,
    whole,
)
from voxpop.votes import Votes


class NotFitted(VoxError, NotFittedError):  # type: ignore[misc]
    """Something was asked of a learner that has not learned yet."""


def class_weights() -> Rule:
    return Rule(
        lambda v: v in (None, "balanced") if not isinstance(v, Mapping) else all(w >= 0 for w in v.values()),
        "balanced, a mapping of classes to weights of at least 0, or none",
    )


Variants = Mapping[str, Mapping[str, Any]]  # a name in words -> the options that differ


@dataclass(repr=False, eq=False)
class Learner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Trains a classifier on votes; ``fit(X, votes)``, with a row of X for each task, in the order of votes.tasks."""

    model: Any = option("mlp", anything(), "the network: linear, mlp, mlp:100 (hidden units), cnn, resnet, or a Module")
    epochs: int | None = option(None, optional(whole(1)), "passes over the tasks; none: held-out votes decide")
    batch_size: int = option(64, whole(1), "tasks in a batch")
    lr: float = option(1e-3, above(0), "learning rate of Adam")
    device: str = option("cpu", anything(), "where to compute: cpu, cuda, cuda:1, ...")
    devices: int = option(1, whole(1), "how many of these train together, each on its part of every batch")
    progress: Any = option(False, anything(), "true: a bar on stderr; or a function that is told of every step")
    seed: int = option(0, whole(0), "seed of everything random")
    weight_decay: float = option(0.0, at_least(0), "L2 penalty on all weights")
    schedule: str = option("constant", one_of("constant", "cosine"), "how the learning rate goes over the epochs")
    class_weight: Any = option(None, class_weights(), "balanced, or class -> weight; none: all classes alike")
    precision: str = option(
        "32-true", one_of("32-true", "bf16-mixed", "16-mixed"), "of the network's passes: 32-true, bf16-mixed, 16-mixed"
    )
    members: int = option(1, whole(1), "networks that are trained from different draws, and averaged")
    feature_dropout: float = option(
        0.0,
        fraction(high_included=False),
        "share of the features that a step leaves out: for many that repeat each other",
    )
    checkpoint: Any = option(None, anything(), "a file that is written after each epoch and gone on from after a kill")

    # -- what a method says ---------------------------------------------------------------------------

    any_classifier: ClassVar[bool] = False  # whether a scikit-learn classifier may be the model
    averages: ClassVar[bool] = True  # whether it may have several members

    @abstractmethod
    def objective(self, net: nn.Module, data: Data) -> Objective:
        """The method itself: what is minimised, around a fresh network."""

    def variants(self, data: Data) -> Variants:
        """Options that held-out votes choose among; none unless a method has some."""
        return {}

    def crossed(self, data: Data, epochs: int, held: held_out.Held | None) -> held_out.Held | None:
        """What networks without a task's votes say of each task, where the method infers truths so."""
        return None

    def refinements(self, best: Learner) -> Variants:
        """Options to try next around the variant that foretold best: it is kept unless one of them foretells better."""
        return {}

    # -- learning ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, gold: Any = None) -> Self:
        """Learn from features and votes. ``y``: Votes, a matrix tasks x workers (-1 or NaN: no vote), or labels of one.

        ``gold`` (task -> label, or a frame): known truths of some tasks.
        """
        data = self._data(X, y, gold)
        with self._listening():
            return self._learn(data, *self._chosen(data))

    def _data(self, X: Any, y: Any, gold: Any) -> Data:
        """What is learned from, checked."""
        check_options(self)
        if self.members > 1 and not self.averages:
            raise BadOption(f"members={self.members}: {self._called} has one network; give 1, or more samples of it")
        rows = self._rows_to_fit(X, y)
        votes = votes_of(y, rows)
        data = Data(rows, votes, votes.gold(gold))
        if votes.V == 0 and data.gold is None:
            raise BadInput("there are no votes and no gold: nothing to learn from")
        return data

    def _learn(self, data: Data, chosen: Learner, choice: held_out.Choice | None, notes: tuple[str, ...] = ()) -> Self:
        """Train the variant that was chosen on all of the data."""
        epochs = choice.epochs if choice else (self.epochs or held_out.LIMIT // 5)
        objective, history = chosen._train_all(data, epochs)
        crossed = chosen.crossed(data, epochs, choice.held if choice else None)
        now = {f.name: (getattr(self, f.name), getattr(chosen, f.name)) for f in fields(self)}
        self.variant_ = {name: new for name, (old, new) in now.items() if new is not old and new != old}
        self.temperature_ = choice.temperature if choice else crossed.temperature if crossed else 1.0
        self.axes_ = (data.votes.workers, data.votes.classes)
        self.classes_ = data.votes.classes.names.to_numpy()
        self.objective_ = objective.cpu().eval()
        self._temper()
        self.model_ = objective.classifier().eval()
        self.history_ = [asdict(epoch) for epoch in history]
        self.choice_ = choice and replace(choice, held=None)
        notes = (*notes, *self._notes(choice))
        unseen = None if crossed is None else crossed.over(data.votes.N)
        self.consensus_ = conclude(self._called, objective, data, history, notes, plain(self), unseen)
        return self

    def _temper(self) -> None:
        """Tell the objective how sure its network may be; also after it was read from a file."""
        for objective in self._objectives:
            objective.temperature = self.temperature_

    @property
    def _called(self) -> str:
        return type(self).__name__

    def _notes(self, choice: held_out.Choice | None) -> tuple[str, ...]:
        return () if choice is None else (held_out.described(choice),)

    def _chosen(self, data: Data) -> tuple[Learner, held_out.Choice | None]:
        """The variant and the epochs that foretell held-out votes best."""
        named = dict(self.variants(data)) or {"": {}}
        if self.epochs is not None and len(named) == 1:
            only = self._with(next(iter(named.values())))
            if not self.refinements(only):
                return only, None
        return self._by_held_out(data, named)

    def _by_held_out(self, data: Data, named: Variants) -> tuple[Learner, held_out.Choice | None]:
        best, choice = self._best_of(data, named)
        others = self.refinements(best)
        if choice is None or not others:
            return best, choice
        other, found = best._best_of(data, others)
        return (other, found) if found is not None and found.score > choice.score else (best, choice)

    def _best_of(self, data: Data, named: Variants) -> tuple[Learner, held_out.Choice | None]:
        learners = {name: self._with(changes) for name, changes in named.items()}
        makers = {name: learner._maker() for name, learner in learners.items()}
        choice = held_out.choose(makers, data, self._settings(), epochs=self.epochs)
        if choice is None:
            return next(iter(learners.values())), None
        return learners[choice.name], choice

    def _with(self, changes: Mapping[str, Any]) -> Learner:
        return type(self)(**{**{f.name: getattr(self, f.name) for f in fields(self)}, **changes})

    def _maker(self) -> Callable[[Data], Objective]:
        def make(data: Data) -> Objective:
            with seeded(self.seed, -1, torch.device(self.device)):
                objective = self.objective(self._network(data), data)
                objective.class_weight = self._class_weight(data)
            return objective.to(self.device)

        return make

    def _network(self, data: Data) -> nn.Module:
        if not is_classical(self.model):
            return network(self.model, data.rows, data.votes.K, self.feature_dropout)
        if not self.any_classifier:
            raise BadOption(
                f"{self._called} trains its model by gradient descent, which {type(self.model).__name__} of "
                "scikit-learn has not; give a torch Module or a name, or use TwoStage, Raykar, AggNet, BayesDGC, "
                "DeepMF or DeepBP"
            )
        if self.checkpoint is not None:
            raise BadOption(f"checkpoint: {type(self.model).__name__} of scikit-learn cannot be written without pickle")
        return classical(self.model, data.votes.K)

    def _class_weight(self, data: Data) -> Tensor | None:
        """K weights, one on average over the tasks: "balanced" is inversely to how often the votes name a class."""
        if self.class_weight is None:
            return None
        votes = data.votes
        if isinstance(self.class_weight, str):
            named = shares(votes, data.gold)[data.voted].sum(0)  # K
            weight = named.sum() / (votes.K * named)
            return torch.where(named > 0, weight, 1.0).to(self.device)
        weight = torch.ones(votes.K)
        for name, value in self.class_weight.items():
            weight[votes.classes.position(name)] = value
        return weight.to(self.device)

    def _settings(self) -> Settings:
        names = [f.name for f in fields(Settings) if hasattr(self, f.name)]
        return Settings(**{name: getattr(self, name) for name in names})

    def _train_all(self, data: Data, epochs: int) -> tuple[Objective, list[Any]]:
        """The average of all members, and the history of the first."""
        if self.members == 1:
            return self._train(data, epochs)
        trained = [self._member(number)._train(data, epochs) for number in range(self.members)]
        return Averaged([objective.cpu() for objective, _ in trained]), trained[0][1]

    def _member(self, number: int) -> Learner:
        """A learner with draws of its own; the first has the seed itself."""
        if number == 0:
            return self
        seed = int(torch.randint(1 << 31, (1,), generator=generator(self.seed, f"member {number}")))
        file = None if self.checkpoint is None else f"{self.checkpoint}.{number}"
        return self._with({"seed": seed, "checkpoint": file})

    def _train(self, data: Data, epochs: int) -> tuple[Objective, list[Any]]:
        training = Training(self._maker()(data), data, self._settings(), epochs)
        file = None if self.checkpoint is None else Path(self.checkpoint)
        if file is not None and file.exists():
            training.resume(file)
        while training.done < epochs:
            told = training.epoch()
            emit(f"training {self._called}", training.done, epochs, -told.loss)
            if file is not None:
                training.save(file)
        training.refresh()
        return training.objective, training.history

    # -- answering --------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """p(class) of each row, by the classifier alone: n,K in the order of ``classes_``."""
        rows = self._rows_to_ask(X)
        with asking(self.objective_):
            parts = [(self.objective_.logp(x) / self.temperature_).softmax(1) for _, x in rows.chunks()]
        return _as_probabilities(parts, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The likeliest class of each row."""
        best = self.predict_proba(X).argmax(1)
        found: np.ndarray[Any, Any] = self.classes_[best]
        return found

    def forecast(self, X: Any, y: Any) -> np.ndarray[Any, Any]:
        """p(class) of each row by the classifier and these votes on it together: n,K.

        The votes must be of workers and classes known from ``fit``; tasks without votes are fine.
        """
        return forecast(self.objective_, self._rows_to_ask(X), y, *self.axes_)

    # -- keeping ------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write all that was learned to one file without pickle; ``vp.load`` reads it back."""
        from voxpop.learn.store import save

        save(self, path)

    def export(self, path: str | PathLike[str]) -> None:
        """Write the plain classifier, rows in and p(class) out: TorchScript (.pt) or ONNX (.onnx)."""
        from voxpop.learn.export import export

        export(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _objectives(self) -> tuple[Objective, ...]:
        """What each member learned."""
        self._require_fitted()
        return self.objective_.each if isinstance(self.objective_, Averaged) else (self.objective_,)

    def _require_fitted(self) -> None:
        if not hasattr(self, "objective_"):
            raise NotFitted(f"this {type(self).__name__} is not fitted yet; call fit(X, votes) first")

    # -- features -----------------------------------------------------------------------------------------

    def _rows_to_fit(self, X: Any, y: Any) -> Rows:
        texts = texts_in(X)
        self.texts_ = None if texts is None else reader_for(texts)
        if texts is not None and self.texts_ is not None:
            X = self.texts_.rows(texts.texts)
        rows = rows_of(X, y.tasks.names.to_list() if isinstance(y, Votes) else None)
        if len(rows) == 0:
            raise BadInput("X has no rows: 0 sample(s) while a minimum of 1 is required.")
        self.shape_ = rows.shape
        if len(rows.shape) == 1:
            _check_feature_names(self, X, reset=True)
            self.n_features_in_ = rows.shape[0]
        return rows

    def _rows_to_ask(self, X: Any) -> Rows:
        self._require_fitted()
        if self.texts_ is not None:
            texts = texts_in(X)
            if texts is None:
                raise BadInput("it was trained on texts; give texts")
            X = self.texts_.rows(texts.texts)
        _check_feature_names(self, X, reset=False)
        rows = rows_of(X)
        if isinstance(rows, ImageRows) and len(self.shape_) == 3:
            rows = rows.sized(self.shape_)
        if len(rows) and rows.shape != self.shape_:
            if len(rows.shape) == len(self.shape_) == 1:
                raise BadInput(
                    f"X has {rows.shape[0]} features, but {type(self).__name__} is expecting "
                    f"{self.shape_[0]} features as input"
                )
            raise BadInput(f"rows of X are {rows.shape}; the network was trained on {self.shape_}")
        return rows

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Progress goes where ``progress`` says."""
        if callable(self.progress):
            with listening(self.progress):
                yield
        elif self.progress:
            from voxpop.engines.bars import progress

            with progress(f"training {self._called}"):
                yield
        else:
            yield


def _check_feature_names(learner: Learner, X: Any, reset: bool) -> None:
    """Names of a frame's columns are remembered, and asked for again (scikit-learn's rule)."""
    from sklearn.utils.validation import _check_feature_names as check

    if hasattr(X, "columns") or hasattr(learner, "feature_names_in_") or reset:
        check(learner, X, reset=reset)


def _as_probabilities(parts: list[Tensor], classes: int) -> np.ndarray[Any, Any]:
    p = torch.cat(parts).double() if parts else torch.zeros(0, classes, dtype=torch.float64)
    return (p / p.sum(1, keepdim=True)).numpy()
