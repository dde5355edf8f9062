"""The one list of methods: name, paper, equations, what each can do. Nothing heavy is imported to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from voxpop.errors import UnknownName, unknown


@dataclass(frozen=True)
class Entry:
    """``can``: bound, adds-up, sampler, confidence, starts say which conformance checks apply; asks: it has ``ask``."""

    python: str  # the class
    module: str  # where it is, below voxpop.methods
    summary: str
    paper: str
    equations: str = ""
    can: frozenset[str] = frozenset()
    written: str = ""  # on the command line, where it does not follow from the class

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.written or re.sub("(?<=[a-z])(?=[A-Z])", "-", self.python).lower()

    def load(self) -> Any:
        return getattr(import_module(f"voxpop.methods.{self.module}"), self.python)


def _can(*what: str) -> frozenset[str]:
    return frozenset(what)


ENTRIES = (
    Entry("MajorityVote", "majority", "the label that most votes name", "folklore", "", _can("gold")),
    Entry(
        "WeightedVote",
        "weighted",
        "votes weighted by agreement with the majority (Wawa)",
        "Appen's Wawa",
        "",
        _can("gold"),
    ),
    Entry(
        "ZeroBasedSkill",
        "weighted",
        "weights that follow agreement with the weighted vote",
        "Toloka's zero-based skill",
        "",
        _can("gold", "iterative"),
    ),
    Entry(
        "DawidSkene",
        "dawid_skene",
        "a confusion matrix per worker, by EM",
        "Dawid & Skene 1979",
        "2.3-2.5",
        _can("gold", "iterative", "bound", "starts", "adds-up", "table"),
    ),
    Entry(
        "HierarchicalDawidSkene",
        "hierarchical",
        "confusion matrices pooled towards the crowd's, strength learned",
        "Paun et al. 2018",
        "2.4",
        _can("gold", "iterative", "bound", "starts", "adds-up", "table", "random"),
    ),
    Entry(
        "OneCoin",
        "coins",
        "one chance of being right per worker, by EM",
        "tutorial (paper 003), alternative models",
        "",
        _can("gold", "iterative", "bound", "starts", "adds-up"),
    ),
    Entry(
        "ConfusionVector",
        "coins",
        "one chance of being right per worker and class, by EM",
        "tutorial (paper 003), alternative models",
        "",
        _can("gold", "iterative", "bound", "starts", "adds-up"),
    ),
    Entry(
        "GLAD",
        "glad",
        "skill of workers times ease of tasks",
        "Whitehill et al. 2009",
        "1-4",
        _can("gold", "iterative", "bound", "starts", "adds-up"),
    ),
    Entry(
        "MACE",
        "mace",
        "workers who know, or spam",
        "Hovy et al. 2013",
        "1",
        _can("gold", "iterative", "bound", "starts", "adds-up"),
    ),
    Entry(
        "BayesGC",
        "bayes_gc",
        "Dirichlet priors on everything, by mean-field VB",
        "Li et al. 2021 (paper 000)",
        "17-19",
        _can("gold", "iterative", "bound", "starts", "adds-up", "table", "random"),
    ),
    Entry(
        "GibbsBCC",
        "gibbs_bcc",
        "the model of BayesGC, sampled: calibrated",
        "Kim & Ghahramani 2012",
        "2-6",
        _can("gold", "iterative", "table", "sampler", "random"),
    ),
    Entry(
        "MeanField",
        "mean_field",
        "any prior on the confusion matrix, by mean field",
        "Liu et al. 2012; Kim et al. (paper 001)",
        "14-17",
        _can("gold", "iterative", "bound", "starts", "adds-up", "random"),
    ),
    Entry(
        "BeliefPropagation",
        "belief_propagation",
        "any prior on the confusion matrix, integrated out: calibrated",
        "Liu et al. 2012; Kim et al. (paper 001)",
        "19-21, 42",
        _can("gold", "iterative", "adds-up", "random"),
    ),
)

# those that learn a classifier from features and votes; their ``can`` says which of their checks apply
LEARNING = (
    Entry(
        "TwoStage",
        "learning.two_stage",
        "labels from the votes by any method, then a classifier",
        "folklore",
        "",
        _can("classical"),
    ),
    Entry(
        "Raykar",
        "learning.raykar",
        "logistic regression and a confusion matrix per worker, by EM",
        "Raykar et al. 2010",
        "5-11",
        _can("bound", "table", "classical"),
    ),
    Entry(
        "Yan",
        "learning.yan",
        "workers whose reliability depends on the features, by EM",
        "Yan et al. 2010",
        "1-6",
        _can("bound"),
    ),
    Entry(
        "AggNet",
        "learning.aggnet",
        "a confusion matrix per worker and a network, by EM",
        "Albarqouni et al. 2016",
        "1-6",
        _can("bound", "table", "classical"),
        written="aggnet",
    ),
    Entry(
        "BayesDGC",
        "learning.bayes_dgc",
        "Dirichlet priors on everything and a network, by natural-gradient SVI",
        "Li et al. 2021 (paper 000)",
        "12-19",
        _can("table", "classical"),
    ),
    Entry(
        "DeepMF",
        "learning.deep_mf",
        "any prior on the confusion matrix and a clipped network, by mean field",
        "Kim et al. (paper 001)",
        "14-17",
        _can("bound", "classical"),
    ),
    Entry(
        "DeepBP",
        "learning.deep_bp",
        "any prior on the confusion matrix, integrated out, and a clipped network",
        "Kim et al. (paper 001)",
        "18-23, 42",
        _can("table", "classical"),
    ),
    Entry(
        "CrowdLayer",
        "learning.crowd_layer",
        "a layer of weights from the network to each worker's labels; CCEM with simplex",
        "Rodrigues & Pereira 2018; Ibrahim et al. 2023",
        "paper 003, CCEM; paper 001, eq. 34",
        _can("table"),
    ),
    Entry(
        "DoctorNet",
        "learning.doctor_net",
        "a head of the network for each worker, averaged with learned weights",
        "Guan et al. 2018",
        "",
        _can("table"),
    ),
    Entry(
        "TraceReg",
        "learning.trace_reg",
        "confusion matrices of small trace, which may depend on the item",
        "Tanno et al. 2019; Zhang et al. 2020",
        "paper 003, trace regularization; paper 001, eq. 35",
        _can("table"),
    ),
    Entry(
        "GeoCrowdNet",
        "learning.geo_crowdnet",
        "CCEM identified by the volume of the predictions (F) or of the workers (W)",
        "Ibrahim et al. 2023",
        "paper 003, GeoCrowdNet (F) and (W)",
        _can("table"),
        written="geo-crowdnet",
    ),
    Entry(
        "COINNet",
        "learning.coinnet",
        "CCEM that sets aside the votes on odd items, and says which they are",
        "Nguyen et al. 2024",
        "paper 003, COINNet",
        _can("table"),
        written="coinnet",
    ),
    Entry(
        "CoNAL",
        "learning.conal",
        "noise that all workers share and noise of one's own",
        "Chu et al. 2021",
        "",
        _can("table"),
        written="conal",
    ),
    Entry(
        "UnionNet",
        "learning.union_net",
        "one transition from the truth to the labels of all workers together",
        "Wei et al. 2022",
        "7",
        _can("table"),
    ),
    Entry(
        "AnnotMix",
        "learning.annot_mix",
        "confusion matrices learned from mixtures of two votes",
        "Herde et al. 2024",
        "",
        _can("table"),
    ),
    Entry(
        "MaxMIG",
        "learning.max_mig",
        "what features and votes have in common: f-mutual information, for any shared mistakes",
        "Cao et al. 2019 (paper 004)",
        "1, 2",
        _can("adds-up"),
        written="max-mig",
    ),
    Entry(
        "DALC",
        "learning.dalc",
        "who is good at what, by topics of the features, and a network with dropout; asks",
        "Yang et al. 2018 (paper 002)",
        "1-20",
        _can("bound", "adds-up", "asks"),
        written="dalc",
    ),
    Entry(
        "LFC",
        "learning.lfc",
        "logistic regression, and a logistic reliability of each worker in the features; asks",
        "Yan et al. 2010, 2011",
        "",
        _can("bound", "adds-up", "asks"),
        written="lfc",
    ),
    Entry(
        "STAL",
        "learning.stal",
        "logistic regression, and a reliability of each worker by topics of a mixture; asks",
        "Fang et al. 2012",
        "",
        _can("bound", "adds-up", "asks"),
        written="stal",
    ),
)

METHODS: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}
LEARNERS: Mapping[str, Entry] = {entry.name: entry for entry in LEARNING}
BY_CLASS: Mapping[str, Entry] = {entry.python: entry for entry in (*ENTRIES, *LEARNING)}


def find(name: str, among: Mapping[str, Entry] | None = None) -> Entry:
    """The entry of a method by either of its names, among those that infer, or those that learn, or all."""
    known = {**METHODS, **LEARNERS} if among is None else among
    entry = known.get(name) or next((e for e in known.values() if e.python == name), None)
    if entry is not None:
        return entry
    if name in LEARNERS or name in METHODS:
        right = "'voxpop learn' and fit(X, votes)" if name in LEARNERS else "'voxpop aggregate' and infer(votes)"
        raise UnknownName(f"{name} is a method for {right}, which this is not; 'voxpop methods' lists them all")
    raise unknown("method", name, known, "'voxpop methods' lists them")


def make(name: str, **options: Any) -> Any:
    """A method by name with its options; unknown ones are answered with the nearest."""
    from voxpop.options import option_names

    kind = find(name).load()
    for option in options:
        if option not in option_names(kind):
            raise unknown(f"option of {kind.__name__}", option, option_names(kind))
    return kind(**options)
