"""What the numbers depend on: the machine, in facts that name no place on it, and the versions."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import psutil
import torch

PACKAGES = ("torch", "numpy", "scipy", "polars", "pandas", "crowd-kit", "scikit-activeml", "cleanlab")


def facts() -> dict[str, str]:
    memory = psutil.virtual_memory().total / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return {
        "CPU": f"{_cpu()}, {psutil.cpu_count()} cores, torch's threads: {torch.get_num_threads()}",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "versions": versions,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        if names:
            return names[0]
    return platform.processor() or platform.machine()
