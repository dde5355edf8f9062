"""Seconds, and the peak memory of a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GIB = 2**30
_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best(call: Callable[[], Any], times: int) -> float:
    """The least of several measurements: other work on the machine only ever adds."""
    return min(seconds(call) for _ in range(times))


@dataclass(frozen=True)
class Ran:
    seconds: float
    peak: int  # bytes
    said: Any  # the JSON on its last line of stdout, where there is one


def process(*command: str) -> Ran:
    """Run a command to its end in a process of its own."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(command[:6])} ended with status {status}")
    last = out.strip().rsplit("\n", 1)[-1]
    return Ran(took, usage.ru_maxrss * _UNIT, json.loads(last) if last.startswith("{") else None)


def module(name: str, *arguments: object) -> Ran:
    """``python -m name arguments`` in a process of its own."""
    return process(sys.executable, "-W", "ignore", "-m", name, *map(str, arguments))


def gib(size: float) -> str:
    return f"{size / GIB:.2f}"


def short(value: float) -> str:
    """Three digits that matter."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
