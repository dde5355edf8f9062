"""Data at hand: tasks with features and a known truth, and the votes of real people where there are some.

Digits come with scikit-learn. Fashion-MNIST is Debian's package dataset-fashion-mnist. LabelMe and CIFAR-10N are read
from a folder that the user names: ``labelme/features.npz`` or ``cifar10n/images.npz`` (x_train, y_train, x_test,
y_test) beside ``answers.csv`` (task, worker, label); row i is the task whose name ends in i.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from voxpop.errors import BadInput, unknown
from voxpop.io import read
from voxpop.numerics.seeds import generator
from voxpop.simulate.blur import blurred
from voxpop.simulate.subsets import on_tasks
from voxpop.votes import Axis, Votes

FASHION = Path("/usr/share/datasets/fashion-mnist")
CAT, DOG = 3, 5  # classes of CIFAR-10
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Data:
    """Tasks to learn from and others to test on; truths are positions of classes."""

    name: str
    x: Array  # N,...
    y: Array  # N
    x_test: Array  # T,...
    y_test: Array  # T
    K: int
    votes: Votes | None = None  # of people, on the tasks 0..N-1

    def first(self, tasks: int) -> Data:
        """Fewer tasks to learn from."""
        votes = None if self.votes is None else on_tasks(self.votes, torch.arange(min(tasks, len(self.y))))
        return replace(self, x=self.x[:tasks], y=self.y[:tasks], votes=votes)

    def two(self) -> Data:
        """Two classes of about the same size, even and odd ones, on which nobody has voted."""
        return replace(self, name=f"{self.name}, even or odd", y=self.y % 2, y_test=self.y_test % 2, K=2, votes=None)

    def unequal(self, share: float = 0.15) -> Data:
        """Two classes, of which the second has this share: the surplus is left out (LUNA16 has 15%)."""
        keep, keep_test = _with_share(self.y, share), _with_share(self.y_test, share)
        return replace(
            self, x=self.x[keep], y=self.y[keep], x_test=self.x_test[keep_test], y_test=self.y_test[keep_test]
        )

    def blurred(self, radius: float, levels: int) -> Data:
        """Images that tell less, to learn from and to test on."""
        return replace(self, x=blurred(self.x, radius, levels), x_test=blurred(self.x_test, radius, levels))

    def shuffled(self, seed: int) -> Data:
        """Images that tell nothing: each is another task's."""
        rng = generator(seed, "shuffled")
        order, order_test = (torch.randperm(len(y), generator=rng).numpy() for y in (self.y, self.y_test))
        return replace(self, x=self.x[order], x_test=self.x_test[order_test])


def load(name: str, folder: str | None = None, seed: int = 0) -> Data:
    """Data by name; the seed decides which tasks are to test on, where that is not given."""
    if name not in SOURCES:
        raise unknown("data", name, SOURCES)
    return SOURCES[name](folder, seed)


# -- sources ----------------------------------------------------------------------------------


def digits(folder: str | None = None, seed: int = 0) -> Data:
    """1,797 handwritten digits of 8 x 8 pixels, of which 497 are to test on."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = torch.randperm(len(bunch.target), generator=generator(seed, "digits")).numpy()
    x, y = (bunch.images[order] / 16).astype(np.float32), bunch.target[order]
    return Data("digits", x[:1300], y[:1300], x[1300:], y[1300:], 10)


def blobs(folder: str | None = None, seed: int = 0, classes: int = 2, distance: float = 3.0, tasks: int = 1000) -> Data:
    """Gaussian clouds of variance one in ten dimensions, their centres ``distance`` apart: Bayes is right in
    Phi(distance / 2) of two classes."""
    rng = generator(seed, "blobs")
    size = 3 * tasks
    y = torch.randint(classes, (size,), generator=rng)
    centres = torch.eye(max(classes, 10))[:classes] * distance / 2**0.5  # of equal distance from each other
    x = centres[y] + torch.randn(size, centres.shape[1], generator=rng)
    return Data("blobs", x[:tasks].numpy(), y[:tasks].numpy(), x[tasks:].numpy(), y[tasks:].numpy(), classes)


def fashion(folder: str | None = None, seed: int = 0) -> Data:
    """10,000 of Fashion-MNIST's 60,000 images to learn from, and its 10,000 to test on."""
    if not FASHION.is_dir():
        raise BadInput("Fashion-MNIST is not here; install Debian's package dataset-fashion-mnist")
    x, y = _idx("train-images-idx3-ubyte.gz"), _idx("train-labels-idx1-ubyte.gz")
    chosen = torch.randperm(len(y), generator=generator(seed, "fashion"))[:10_000].numpy()
    test = _idx("t10k-images-idx3-ubyte.gz"), _idx("t10k-labels-idx1-ubyte.gz")
    return Data("fashion", _shades(x[chosen]), y[chosen].astype(int), _shades(test[0]), test[1].astype(int), 10)


def cifar10n(folder: str | None = None, seed: int = 0) -> Data:
    """CIFAR-10N: 10,000 images with three people's labels each, and 2,000 to test on."""
    return _from_folder("cifar10n", "images.npz", folder, 10)


def cats_and_dogs(folder: str | None = None, seed: int = 0) -> Data:
    """The cats and dogs of CIFAR-10N; only votes for one of the two count."""
    whole = cifar10n(folder, seed)
    assert whole.votes is not None
    train, test = (np.flatnonzero((y == CAT) | (y == DOG)) for y in (whole.y, whole.y_test))
    votes = on_tasks(whole.votes, torch.from_numpy(train))
    votes = votes.select((votes.label == CAT) | (votes.label == DOG))
    two = replace(votes, label=(votes.label == DOG).int(), classes=Axis.counting("classes", 2))
    y, y_test = (whole.y[train] == DOG).astype(int), (whole.y_test[test] == DOG).astype(int)
    return Data("cats and dogs", whole.x[train], y, whole.x_test[test], y_test, 2, two)


def labelme(folder: str | None = None, seed: int = 0) -> Data:
    """LabelMe: 1,000 scenes with 2.5 people's labels each as average-pooled VGG-16 features, and 1,188 to test on."""
    return _from_folder("labelme", "features.npz", folder, 8)


SOURCES: Mapping[str, Callable[..., Data]] = MappingProxyType(
    {
        "digits": digits,
        "blobs": blobs,
        "fashion": fashion,
        "cifar10n": cifar10n,
        "cats-and-dogs": cats_and_dogs,
        "labelme": labelme,
    }
)


# -- parts of them ----------------------------------------------------------------------------


def _with_share(y: Array, share: float) -> Array:
    """Positions of as many tasks as possible of which this share is of class 1."""
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    count = min(len(ones), int(len(zeros) * share / (1 - share)))
    return np.sort(np.concatenate([ones[:count], zeros[: round(count * (1 - share) / share)]]))


def _idx(name: str) -> Array:
    """A file in the format of MNIST: two bytes of zero, type and number of axes, the axes, the values."""
    with gzip.open(FASHION / name) as file:
        raw = file.read()
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _shades(images: Array) -> Array:
    return images.astype(np.float32) / 255


@lru_cache(maxsize=2)
def _from_folder(name: str, file: str, folder: str | None, classes: int) -> Data:
    if folder is None:
        raise BadInput(f"where is {name}? Name the folder that holds {name}/{file} with --data, or in VOXPOP_DATA")
    place = Path(folder) / name
    absent = [path for path in (place / file, place / "answers.csv") if not path.is_file()]
    if absent:
        raise BadInput(*(f"{path}: no such file; --data names the folder above it" for path in absent))
    with np.load(place / file, allow_pickle=False) as arrays:
        x, y, x_test, y_test = (arrays[part] for part in ("x_train", "y_train", "x_test", "y_test"))
    given = read(place / "answers.csv")
    row = [int(re.findall(r"\d+$", str(task))[0]) for task in given.tasks]
    label = [int(str(c)) for c in given.classes]
    votes = Votes.from_arrays(
        np.array(row)[given.task.numpy()],
        given.worker.numpy(),
        np.array(label)[given.label.numpy()],
        tasks=range(len(y)),
        workers=range(given.M),
        classes=range(classes),
    )
    return Data(name, x, y, x_test, y_test, classes, votes)
