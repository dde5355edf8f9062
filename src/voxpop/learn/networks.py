"""Networks by name, on features of any scale; or the user's own Module, checked.

``cnn`` is paper 001 appendix F: four convolutions of 3 x 3 (32, 32, 64, 64 channels), each pooled by two,
batch normalisation after the first, then two layers of 128.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from voxpop.errors import BadInput, BadOption
from voxpop.learn.rows import Rows

HIDDEN = 128
CENTRED = 0.1  # |mean| / sd below which a column counts as centred
ALIKE = 50  # how many times wider the widest column may be than the narrow ones (a tenth), where all have one unit
LOOKED_AT = 20_000  # rows that the scale is found on
ROOM = 46  # pixels that four unpadded convolutions with pooling need


class Scale(nn.Module):
    """Features on a sensible scale, remembered with the network.

    Columns in units of their own (hand-made features) are standardised one by one. Columns in one unit keep their
    proportions, which tell something: their means are taken off, and one factor brings their mean variance to one.
    They are in one unit where they are about as wide as each other (activations, pixels, weighted words), or all
    centred already (principal components).
    """

    shift: Tensor
    factor: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        each = (shape[0], *(1 for _ in shape[1:]))
        self.register_buffer("shift", torch.zeros(each))
        self.register_buffer("factor", torch.ones(each))

    def learn(self, rows: Rows) -> Scale:
        mean, variance = _moments(rows)
        sd = variance.sqrt()
        changes = sd > 1e-6 * mean.abs()
        if _centred(mean, sd) or _alike(sd[changes]):
            common = variance.mean().sqrt()
            factor = torch.full_like(sd, float(1 / common) if common > 0 else 1.0)
        else:
            factor = torch.where(changes, 1 / sd, 0.0)  # a column that never changes says nothing
        self.shift.copy_(mean.view_as(self.shift))
        self.factor.copy_(factor.view_as(self.factor))
        return self

    def forward(self, x: Tensor) -> Tensor:
        scaled = (x - self.shift) * self.factor
        if x.dim() != 4:
            return scaled
        return scaled.contiguous(memory_format=torch.channels_last)  # a CPU convolves and pools faster so


def _centred(mean: Tensor, sd: Tensor) -> bool:
    return bool((mean.abs() <= CENTRED * sd).double().mean() >= 0.9)


def _alike(sd: Tensor) -> bool:
    """Whether columns are about as wide as each other."""
    return not len(sd) or bool(sd.max() <= ALIKE * np.quantile(sd.numpy(), 0.1))


def _moments(rows: Rows) -> tuple[Tensor, Tensor]:
    """Mean and variance of each feature, or channel of an image, over some evenly spread rows: D, float64."""
    count = min(len(rows), LOOKED_AT)
    index = torch.linspace(0, len(rows) - 1, count, dtype=torch.float64).round().long()
    pieces = [_columns(rows.take(part)) for part in torch.split(index, 1024)]
    number = sum(len(piece) for piece in pieces)
    mean = torch.stack([piece.sum(0) for piece in pieces]).sum(0) / number
    square = torch.stack([(piece - mean).square().sum(0) for piece in pieces]).sum(0) / number
    return mean, square


def _columns(x: Tensor) -> Tensor:
    """Rows of features; an image's pixels are rows of channels."""
    return (x.movedim(1, -1).reshape(-1, x.shape[1]) if x.dim() > 2 else x).double()


def linear(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(_size(shape), classes))


def mlp(shape: tuple[int, ...], classes: int, hidden: int = HIDDEN) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(_size(shape), hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, classes)
    )


def cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, height, width = _image(shape, "cnn")
    pad = 0 if min(height, width) >= ROOM else 1  # small images are padded, or nothing would be left of them
    layers: list[nn.Module] = []
    for number, (before, after) in enumerate(((channels, 32), (32, 32), (32, 64), (64, 64))):
        layers += [nn.Conv2d(before, after, 3, padding=pad)]
        layers += [nn.BatchNorm2d(after)] if number == 0 else []
        layers += [nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
    body = nn.Sequential(*layers, nn.Flatten())
    with torch.no_grad():
        wide = body.eval()(torch.zeros(1, *shape)).shape[1]
    head = nn.Sequential(nn.Linear(wide, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
    return nn.Sequential(body.train(), head, nn.Linear(HIDDEN, classes))


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        same = stride == 1 and before == after
        self.around = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.around(x))


def resnet(shape: tuple[int, ...], classes: int) -> nn.Module:
    channels, _, _ = _image(shape, "resnet")
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        Residual(64, 128, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, classes),
    )


PRESETS: Mapping[str, Callable[..., nn.Module]] = {"linear": linear, "mlp": mlp, "cnn": cnn, "resnet": resnet}


def preset(name: str) -> tuple[Callable[..., nn.Module], dict[str, int]]:
    """The maker behind a name such as "mlp" or "mlp:100" (hidden units), and its options."""
    kind, colon, size = name.partition(":")
    if kind not in PRESETS:
        from voxpop.errors import unknown

        raise unknown("network", name, PRESETS, "or give a torch Module")
    if not colon:
        return PRESETS[kind], {}
    if kind != "mlp" or not size.isdigit() or int(size) < 1:
        raise BadOption(f"model={name}: only mlp takes a size, as in mlp:100")
    return PRESETS[kind], {"hidden": int(size)}


def network(model: Any, rows: Rows, classes: int, feature_dropout: float = 0.0) -> nn.Module:
    """A fresh network for these rows; the caller's Module is copied, never trained itself."""
    dropped = [nn.Dropout(feature_dropout)] if feature_dropout else []
    if isinstance(model, str):
        make, options = preset(model)
        return nn.Sequential(Scale(rows.shape).learn(rows), *dropped, make(rows.shape, classes, **options))
    if not isinstance(model, nn.Module):
        raise BadOption(f"model is {type(model).__name__}; give one of {', '.join(PRESETS)}, or a torch Module")
    own = copy.deepcopy(model)
    check(own, rows, classes)
    return nn.Sequential(*dropped, own) if dropped else own


def check(own: nn.Module, rows: Rows, classes: int) -> None:
    """That a Module takes these rows and answers a logit for each class."""
    was = own.training
    try:
        with torch.no_grad():
            out = own.eval()(rows.take(torch.arange(min(len(rows), 2))))
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"the network cannot take rows of shape {rows.shape}: {reason}") from None
    own.train(was)
    if not isinstance(out, Tensor) or out.dim() != 2 or out.shape[1] != classes:
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise BadInput(
            f"the network answers {got} to two rows; the votes have {classes} classes: answer (rows, {classes})"
        )


def _size(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def _image(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    if len(shape) != 3:
        raise BadInput(
            f"model={name} needs images (rows of channels x height x width); these rows are {shape}: use mlp"
        )
    return shape
