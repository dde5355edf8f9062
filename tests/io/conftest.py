"""Files made in the test, and the real data that lies beside the repository."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put text, bytes, or anything else as JSON (a tuple as JSON lines) into a file, and say where it is."""

    def put(name: str, content: Any) -> Path:
        path = tmp_path / name
        if isinstance(content, tuple):
            content = "".join(json.dumps(record) + "\n" for record in content)
        elif not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the shared data is not here")
    return DATA
