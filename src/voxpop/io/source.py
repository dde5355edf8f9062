"""Where the bytes come from: a file, a compressed file, a pipe or standard input."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Literal

from voxpop.errors import BadInput

Kind = Literal["delimited", "json", "jsonl", "parquet"]

STDIN = "-"
KINDS: dict[str, Kind] = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".txt": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
BOM = b"\xef\xbb\xbf"
FOREIGN = {  # first bytes of what people pass by mistake
    b"PK\x03\x04": "is a zip or Excel file; save the sheet as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "is an old Excel file; save the sheet as CSV (UTF-8)",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; decompress it first (zstd -d)",
    b"BZh": "is compressed with bzip2; decompress it first (bunzip2)",
    b"\xfd7zXZ": "is compressed with xz; decompress it first (unxz)",
    b"\xff\xfe": "is in UTF-16; save it as UTF-8",
    b"\xfe\xff": "is in UTF-16; save it as UTF-8",
}


@dataclass(frozen=True)
class Source:
    """Bytes that can be read again, and the name that messages give them."""

    name: str
    origin: Path | bytes

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Source:
        if str(path) == STDIN:
            return cls("standard input", sys.stdin.buffer.read())._checked()
        place = Path(path)
        try:
            mode = place.stat().st_mode
            regular = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
            source = cls(str(path), place if regular else place.read_bytes())  # a pipe can be read only once
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise _unreadable(place, error) from None
        return source._checked()

    def _checked(self) -> Source:
        if not self.head:
            raise BadInput(f"{self.name} is empty; it should hold one vote a row")
        for magic, remedy in FOREIGN.items():
            if self.head.startswith(magic):
                raise BadInput(f"{self.name} {remedy}")
        return self

    @cached_property
    def head(self) -> bytes:
        """The first bytes, decompressed: enough to tell the format."""
        return next(self.pieces(4096), b"")

    @property
    def suffixes(self) -> list[str]:
        return [s.lower() for s in Path(self.name).suffixes] if isinstance(self.origin, Path) else []

    @property
    def kind(self) -> Kind:
        """The format: by its first bytes, then by the name's extension, then by how the text begins."""
        if self.head.startswith(PARQUET):
            return "parquet"
        for suffix in reversed(self.suffixes):
            if suffix in KINDS:
                return KINDS[suffix]
        start = self.head.removeprefix(BOM).lstrip()
        if start.startswith(b"["):
            return "json"
        return "jsonl" if start.startswith(b"{") else "delimited"

    def pieces(self, size: int) -> Iterator[bytes]:
        """The decompressed bytes, ``size`` at a time."""
        try:
            with self._open() as raw:
                packed = raw.read(len(GZIP)) == GZIP
                raw.seek(0)
                file = gzip.GzipFile(fileobj=raw) if packed else raw
                while piece := file.read(size):
                    yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BadInput(
                f"{self.name} breaks off or is damaged: gzip cannot unpack it; compress or download it again"
            ) from None
        except OSError as error:
            raise _unreadable(Path(self.name), error) from None

    def whole(self) -> bytes:
        return b"".join(self.pieces(1 << 24))

    def text(self) -> str:
        """The whole text, without a byte order mark."""
        data = self.whole()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise BadInput(
                f"{self.name}, line {line}: byte {error.start} is not UTF-8; save the file as UTF-8"
            ) from None

    def beside(self, name: str) -> Source | None:
        """A file in the same directory, if there is one."""
        if not isinstance(self.origin, Path):
            return None
        other = self.origin.with_name(name)
        return Source.of(other) if other.is_file() else None

    def _open(self) -> BinaryIO:
        return self.origin.open("rb") if isinstance(self.origin, Path) else io.BytesIO(self.origin)


def _unreadable(path: Path, error: OSError | ValueError) -> BadInput:
    if isinstance(error, IsADirectoryError):
        return BadInput(f"{path} is a directory; name a file in it")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return BadInput(f"{path}: no such file; {_nearest(path)}")
    if isinstance(error, PermissionError):
        return BadInput(f"{path}: no permission to read it; ask for access or copy it")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return BadInput(f"{path} cannot be read ({reason}); check the path")


def _nearest(path: Path) -> str:
    try:
        near = get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    except OSError:
        near = []
    return f"did you mean {str(path.with_name(near[0]))!r}?" if near else "check the path"
