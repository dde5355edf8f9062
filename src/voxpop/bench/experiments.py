"""The experiments there are. A new one is a file of that name with an EXPERIMENT in it, and its name here."""

from __future__ import annotations

from importlib import import_module

from voxpop.bench.experiment import Experiment
from voxpop.errors import unknown

NAMES = ("active", "bayesdgc", "crowdnets", "dalc", "deepbp", "e2e", "maxmig")


def find(name: str) -> Experiment:
    if name not in NAMES:
        raise unknown("experiment", name, NAMES, "'voxpop bench' lists them")
    found: Experiment = import_module(f"voxpop.bench.{name}").EXPERIMENT
    return found
