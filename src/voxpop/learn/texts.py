"""Texts as features: weighted words (TF-IDF, nothing to download), or the embedding model that the user names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voxpop.errors import BadInput
from voxpop.learn.rows import IMAGES, Rows, SparseRows, TensorRows

MOST_WORDS = 20_000


@dataclass(frozen=True)
class Texts:
    """Texts, one a task. ``embed`` names a model of sentence-transformers; without it their words are weighted."""

    texts: Sequence[str]
    embed: str | None = None


class Reader(ABC):
    """How texts become rows of numbers; kept with what was learned, since new texts must be read alike."""

    @abstractmethod
    def rows(self, texts: Sequence[str]) -> Rows: ...

    @abstractmethod
    def taken_apart(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What ``texts_again`` makes the same reader of: a document, and tensors."""


class Words(Reader):
    """TF-IDF of the words in the training texts: log counts, times rarity, at length one."""

    def __init__(self, words: Sequence[str], rarity: np.ndarray[Any, Any]) -> None:
        self.words, self.rarity = list(words), rarity
        self._vectoriser = _vectoriser(vocabulary={word: i for i, word in enumerate(self.words)})
        self._vectoriser.idf_ = rarity

    @classmethod
    def learn(cls, texts: Sequence[str]) -> Words:
        learned = _vectoriser(max_features=MOST_WORDS, min_df=2 if len(texts) >= 100 else 1)
        try:
            learned.fit(texts)
        except ValueError:
            raise BadInput("there are no words in the texts; is this the right column?") from None
        return cls(learned.get_feature_names_out().tolist(), learned.idf_)

    def rows(self, texts: Sequence[str]) -> Rows:
        return SparseRows(self._vectoriser.transform(texts))

    def taken_apart(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"kind": "words", "words": self.words}, {"rarity": torch.as_tensor(self.rarity)}


class Embedding(Reader):
    """A model of sentence-transformers by its name, or the path of its folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Any = None

    def rows(self, texts: Sequence[str]) -> Rows:
        if self._model is None:
            self._model = _sentence_model(self.name)
        found = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return TensorRows(torch.from_numpy(np.asarray(found, np.float32)))

    def taken_apart(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"kind": "embedding", "name": self.name}, {}


def reader_for(texts: Texts) -> Reader:
    return Words.learn(texts.texts) if texts.embed is None else Embedding(texts.embed)


def texts_again(document: dict[str, Any], tensors: dict[str, Tensor]) -> Reader:
    if document["kind"] == "words":
        return Words(document["words"], tensors["rarity"].numpy())
    return Embedding(document["name"])


def texts_in(X: Any) -> Texts | None:
    """X as texts, if it is a list or a column of text that are no paths of images."""
    if isinstance(X, Texts):
        return Texts(_all_text(list(X.texts)), X.embed)
    if isinstance(X, str | Tensor) or hasattr(X, "tocsr"):
        return None
    if isinstance(X, list | tuple):
        return Texts(_all_text(list(X))) if X and isinstance(X[0], str) and not _is_path(X[0]) else None
    values = np.asarray(X.to_numpy()) if hasattr(X, "to_numpy") else X
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "OUT" or values.size == 0:
        return None
    flat = values.ravel()
    if len(flat) != len(values) or not isinstance(flat[0], str) or _is_path(flat[0]):
        return None
    return Texts(_all_text(flat.tolist()))


def _all_text(values: list[Any]) -> list[str]:
    odd = next((i for i, value in enumerate(values) if not isinstance(value, str)), None)
    if odd is not None:
        raise BadInput(f"X holds texts, but row {odd + 1} is {values[odd]!r}; give a text for each task, '' for none")
    return values


def _is_path(text: str) -> bool:
    return len(text) < 4096 and Path(text).suffix.lower() in IMAGES


def _vectoriser(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", **options)


def _sentence_model(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise BadInput(
            f"embedding texts with {name} needs sentence-transformers (pip install sentence-transformers); "
            "without it, leave the name out: the words are weighted instead"
        ) from None
    try:
        return SentenceTransformer(name)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"the embedding model {name} cannot be loaded: {reason}; check its name or path") from None
