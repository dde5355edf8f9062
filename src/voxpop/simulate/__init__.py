"""Simulated crowds: who votes on what, what they say, and the truth that only we know."""

import sys
from types import ModuleType

from voxpop.simulate.answers import ByDifficulty, ByExpertise, FromTables
from voxpop.simulate.assignments import ASSIGNMENTS, Assignment, Complete, Random, Regular
from voxpop.simulate.copying import Copying
from voxpop.simulate.crowd import Crowd
from voxpop.simulate.kind import Kind
from voxpop.simulate.kinds import KINDS
from voxpop.simulate.simulated import Simulated
from voxpop.simulate.simulation import simulate, simulate_votes_on

__all__ = [
    "ASSIGNMENTS",
    "KINDS",
    "Assignment",
    "ByDifficulty",
    "ByExpertise",
    "Complete",
    "Copying",
    "Crowd",
    "FromTables",
    "Kind",
    "Random",
    "Regular",
    "Simulated",
    "simulate",
    "simulate_votes_on",
]


class _Callable(ModuleType):
    """``voxpop.simulate`` names this package and its function: importing the package must not hide the function."""

    __call__ = staticmethod(simulate)


sys.modules[__name__].__class__ = _Callable
