"""Features of tasks, a row each, whatever they come from: arrays, sparse matrices, images, datasets."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voxpop.errors import BadInput

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
CHUNK = 1024  # rows looked at together where there is no gradient


class NotNumbers(BadInput, TypeError):
    """Rows that hold something else than numbers."""


class Rows(ABC):
    """``take`` gives some rows as one float tensor; nothing else ever looks inside."""

    shape: tuple[int, ...]  # of one row

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, index: Tensor) -> Tensor:
        """The rows at these positions: B,*shape, float32."""

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """(positions, rows) of all, some at a time, in order."""
        for index in torch.split(torch.arange(len(self)), CHUNK):
            yield index, self.take(index)


class TensorRows(Rows):
    """Numbers that are in memory; images of whole numbers stay so until they are taken, and are then 0..1."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.shape = tuple(values.shape[1:])

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: Tensor) -> Tensor:
        rows = self.values[index]
        return rows.float() / 255 if rows.dtype == torch.uint8 and rows.dim() == 4 else rows.float()


class SparseRows(Rows):
    """A SciPy matrix, such as words of texts; only the rows that are taken are made dense."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()
        self.shape = (int(matrix.shape[1]),)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, index: Tensor) -> Tensor:
        return torch.from_numpy(self.matrix[index.numpy()].toarray().astype(np.float32))


class DatasetRows(Rows):
    """A map-style torch Dataset; of an item that is a pair, the first is the row."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.shape = tuple(self._row(0).shape) if len(dataset) else ()

    def __len__(self) -> int:
        return len(self.dataset)

    def take(self, index: Tensor) -> Tensor:
        return torch.stack([self._row(i) for i in index.tolist()])

    def _row(self, position: int) -> Tensor:
        item = self.dataset[position]
        row = item[0] if isinstance(item, tuple | list) else item
        return torch.as_tensor(np.asarray(row) if not isinstance(row, Tensor) else row).float()


class ImageRows(Rows):
    """Image files, read when they are taken, brought to the size of the first."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.shape = ()
        if self.paths:
            self.shape = tuple(self._read(self.paths[0], None).shape)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, index: Tensor) -> Tensor:
        size = (self.shape[2], self.shape[1])
        return torch.stack([self._read(self.paths[i], size) for i in index.tolist()]).float() / 255

    def sized(self, shape: tuple[int, ...]) -> ImageRows:
        """The same images, brought to the size of others."""
        other = ImageRows([])
        other.paths, other.shape = self.paths, shape
        return other

    @staticmethod
    def _read(path: Path, size: tuple[int, int] | None) -> Tensor:
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(path) as file:
                image = file.convert("RGB")
        except FileNotFoundError:
            raise BadInput(f"{path}: no such image") from None
        except (UnidentifiedImageError, OSError) as error:
            raise BadInput(f"{path}: not an image that can be read ({error})") from None
        if size is not None and image.size != size:
            image = image.resize(size, Image.Resampling.BILINEAR)
        return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)  # 3,H,W


def rows_of(X: Any, names: Sequence[Any] | None = None) -> Rows:
    """Features as rows. ``names`` are those of the tasks: needed where X is a folder of images named like them."""
    if isinstance(X, Rows):
        return X
    if isinstance(X, str | os.PathLike):
        return ImageRows(images_in(Path(X), names))
    if isinstance(X, torch.utils.data.Dataset):
        return DatasetRows(X)
    if isinstance(X, Tensor):
        return _of_tensor(X.detach().cpu())
    if hasattr(X, "tocsr"):
        if np.iscomplexobj(X):
            raise BadInput("X holds complex data, which is not supported: Complex data not supported")
        rows = SparseRows(X)
        _refuse_gaps(torch.from_numpy(np.asarray(rows.matrix.data, np.float64)), "stored value")
        return rows
    return _of_array(_array(X))


def images_in(folder: Path, names: Sequence[Any] | None) -> list[Path]:
    """The image of each task: a file of its name, with or without its extension; without names all, in order."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder of images")
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in IMAGES)
    if not found:
        raise BadInput(f"{folder}: no images there (looked for {', '.join(IMAGES)})")
    if names is None:
        return found
    by_name: dict[str, Path] = {}
    for path in found:
        inside = path.relative_to(folder)
        for name in (path.stem, path.name, str(inside.with_suffix("")), str(inside)):
            by_name.setdefault(name, path)
    absent = [n for n in map(str, names) if n not in by_name]
    if absent:
        raise BadInput(*(f"{folder}: no image for task '{n}' (looked for a file of that name)" for n in absent))
    return [by_name[str(n)] for n in names]


def _array(X: Any) -> np.ndarray[Any, Any]:
    """A frame's or a sequence's numbers; a column of text is taken for paths of images later on."""
    if hasattr(X, "to_numpy") and not isinstance(X, np.ndarray):
        return np.asarray(X.to_numpy())
    try:
        return np.asarray(X)
    except ValueError as error:
        raise BadInput(f"X cannot be made an array ({error}); give rows of equal length") from None


def _of_array(array: np.ndarray[Any, Any]) -> Rows:
    if np.iscomplexobj(array):
        raise BadInput("X holds complex data, which is not supported: Complex data not supported")
    if array.dtype.kind in "OUS":
        flat = array.ravel()
        if array.size and array.shape[-1 if array.ndim > 1 else 0] in (1, flat.size) and isinstance(flat[0], str):
            return ImageRows([Path(p) for p in flat.tolist()])
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise NotNumbers(
                "X holds values that are no numbers: argument must be a string or a real number; "
                "turn text into features first"
            ) from None
    if array.ndim < 2:
        raise BadInput(
            f"X has {array.ndim} axis; give a row for each task. Reshape your data: X.reshape(-1, 1) if it "
            "has a single feature"
        )
    array = np.ascontiguousarray(array)
    return _of_tensor(torch.from_numpy(array if array.flags.writeable else array.copy()))


def _of_tensor(values: Tensor) -> Rows:
    if values.dim() < 2:
        raise BadInput(f"X has {values.dim()} axes; give a row for each task: Reshape your data")
    if values.dim() == 3:  # N,H,W: one channel
        values = values[:, None]
    elif values.dim() == 4 and values.shape[3] in (1, 3, 4) and values.shape[1] not in (1, 3, 4):
        values = values.permute(0, 3, 1, 2).contiguous()  # N,H,W,C as N,C,H,W
    if values.dim() == 2 and values.shape[1] == 0:
        raise BadInput(
            f"X has no features: 0 feature(s) (shape={tuple(values.shape)}) while a minimum of 1 is required."
        )
    if values.is_floating_point():
        _refuse_gaps(values, "row")
        values = values.float()
    return TensorRows(values)


def _refuse_gaps(values: Tensor, what: str) -> None:
    """No NaN and no infinity (also none after float32)."""
    for start in range(0, len(values), 1 << 16):
        block = values[start : start + (1 << 16)]
        if bool(torch.isfinite(block.float()).all()):
            continue
        bad = ~torch.isfinite(block.float().reshape(len(block), -1))  # B,D
        rows, columns = bad.nonzero().unbind(1)
        kind = "NaN" if bool(torch.isnan(block).any()) else "infinity"
        place = f"{what} {start + int(rows[0]) + 1}" + (f", column {int(columns[0]) + 1}" if values.dim() > 1 else "")
        more = int(bad.sum()) - 1
        raise BadInput(
            f"X holds {kind} at {place}{f' and {more} more' if more else ''}; fill it in, or leave the row out"
        )
