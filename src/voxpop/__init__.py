"""voxpop: what is true, how sure is it, and who can be trusted, when those who label disagree.

Names are imported when they are first used, so ``import voxpop`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from voxpop.methods.registry import BY_CLASS

__version__ = "0.1.0"

if TYPE_CHECKING:
    from voxpop.audit.agreement import Agreement, agreement
    from voxpop.engines.events import Progress, listening
    from voxpop.engines.outcome import Status
    from voxpop.errors import BadInput, BadOption, DataWarning, RunFailed, TooLarge, UnknownName, VoxError, VoxWarning
    from voxpop.io import read
    from voxpop.learn.learner import Learner, NotFitted
    from voxpop.learn.texts import Texts
    from voxpop.methods.bayes_gc import BayesGC
    from voxpop.methods.belief_propagation import BeliefPropagation
    from voxpop.methods.coins import ConfusionVector, OneCoin
    from voxpop.methods.dawid_skene import DawidSkene
    from voxpop.methods.default import consensus
    from voxpop.methods.files import load
    from voxpop.methods.gibbs_bcc import GibbsBCC
    from voxpop.methods.glad import GLAD
    from voxpop.methods.hierarchical import HierarchicalDawidSkene
    from voxpop.methods.learning.aggnet import AggNet
    from voxpop.methods.learning.annot_mix import AnnotMix
    from voxpop.methods.learning.bayes_dgc import BayesDGC
    from voxpop.methods.learning.choose import train
    from voxpop.methods.learning.coinnet import COINNet
    from voxpop.methods.learning.conal import CoNAL
    from voxpop.methods.learning.crowd_layer import CrowdLayer
    from voxpop.methods.learning.dalc import DALC
    from voxpop.methods.learning.deep_bp import DeepBP
    from voxpop.methods.learning.deep_mf import DeepMF
    from voxpop.methods.learning.doctor_net import DoctorNet
    from voxpop.methods.learning.geo_crowdnet import GeoCrowdNet
    from voxpop.methods.learning.lfc import LFC
    from voxpop.methods.learning.max_mig import MaxMIG
    from voxpop.methods.learning.raykar import Raykar
    from voxpop.methods.learning.stal import STAL
    from voxpop.methods.learning.trace_reg import TraceReg
    from voxpop.methods.learning.two_stage import TwoStage
    from voxpop.methods.learning.union_net import UnionNet
    from voxpop.methods.learning.yan import Yan
    from voxpop.methods.mace import MACE
    from voxpop.methods.majority import MajorityVote
    from voxpop.methods.mean_field import MeanField
    from voxpop.methods.online import OnlineDawidSkene
    from voxpop.methods.registry import LEARNERS, METHODS, make
    from voxpop.methods.weighted import WeightedVote, ZeroBasedSkill
    from voxpop.results import Consensus, plots
    from voxpop.simulate import simulate
    from voxpop.votes import Votes

_WHERE = {
    "Agreement": "audit.agreement",
    "agreement": "audit.agreement",
    "Progress": "engines.events",
    "listening": "engines.events",
    "Status": "engines.outcome",
    "read": "io",
    "consensus": "methods.default",
    "LEARNERS": "methods.registry",
    "Learner": "learn.learner",
    "METHODS": "methods.registry",
    "NotFitted": "learn.learner",
    "OnlineDawidSkene": "methods.online",
    "make": "methods.registry",
    "Consensus": "results",
    "Texts": "learn.texts",
    "train": "methods.learning.choose",
    "load": "methods.files",
    "simulate": "simulate",
    "Votes": "votes",
    **dict.fromkeys(
        (
            "BadInput",
            "BadOption",
            "DataWarning",
            "RunFailed",
            "TooLarge",
            "UnknownName",
            "VoxError",
            "VoxWarning",
        ),
        "errors",
    ),
    **{entry.python: f"methods.{entry.module}" for entry in BY_CLASS.values()},
}
_MODULES = {"plots": "results.plots"}

__all__ = ["__version__", *sorted(_WHERE), *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"voxpop.{_WHERE[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"voxpop.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'voxpop' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
