"""What the checks are run on: every entry of the registry, some of them with other options, and the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from voxpop.methods.registry import ENTRIES

RANDOM = "random numbers are dealt to workers and tasks by their position: equivariant in distribution only"


@dataclass(frozen=True)
class Subject:
    """A method with options. ``quick`` is enough to be legal, ``careful`` enough for a random answer to settle."""

    name: str
    kind: Any
    can: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    careful: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Any:
        return self.kind(**{**self.options, **self.quick, **more})

    def settled(self) -> Any:
        return self.kind(**{**self.options, **self.careful})

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Known:
    """A known exception: why, and how far apart beliefs may then be (None: the check is not run)."""

    reason: str
    tolerance: float | None = None


_SWEEPS = {"sweeps": 10}
QUICK: dict[str, dict[str, Any]] = {
    "HierarchicalDawidSkene": _SWEEPS,
    "BayesGC": _SWEEPS,
    "MeanField": _SWEEPS,
    "GibbsBCC": {"max_iter": 20},
    "BeliefPropagation": {"samples": 50, "max_iter": 10},
}
CAREFUL: dict[str, dict[str, Any]] = {
    "HierarchicalDawidSkene": _SWEEPS,
    "BayesGC": _SWEEPS,
    "MeanField": _SWEEPS,
    "GibbsBCC": {"max_iter": 600},
    "BeliefPropagation": {"samples": 1500},
}
ERROR_RATES = torch.full((9, 3, 3), 0.1) + 0.7 * torch.eye(3)
PROTOTYPES = torch.stack([torch.eye(3) * 0.7 + 0.1, torch.full((3, 3), 1 / 3), torch.eye(3)])
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "MajorityVote": [{"soft": True}],
    "ZeroBasedSkill": [{"rate": 0.3}],
    "DawidSkene": [{"class_prior": "uniform", "smoothing": 0.0}],
    "OneCoin": [{"class_prior": "learned"}],
    "MACE": [{"class_prior": "learned"}],
    "HierarchicalDawidSkene": [{"class_prior": "uniform"}],
    "MeanField": [{"workers_prior": "one-coin"}, {"workers_prior": "two-coin", "class_prior": "learned"}],
    "BeliefPropagation": [{"workers_prior": "one-coin"}, {"workers_prior": "two-coin", "damping": 0.3}],
}


def subjects() -> list[Subject]:
    out = []
    for entry in ENTRIES:
        for options in [{}, *VARIANTS.get(entry.python, [])]:
            told = ", ".join(f"{k}={v}" for k, v in options.items())
            name = entry.python + (f"({told})" if told else "")
            quick, careful = QUICK.get(entry.python, {}), CAREFUL.get(entry.python, {})
            out.append(Subject(name, entry.load(), entry.can, options, quick, careful))
    from voxpop.methods.default import Default

    can = frozenset({"gold", "iterative", "random", "table"})
    return [*out, Subject("Default", Default, can, {}, {"max_iter": 20, "sweeps": 20}, {"sweeps": 800})]


SUBJECTS = subjects()

# method -> check -> what is known
EXCEPTIONS: dict[str, dict[str, Known]] = {
    "DawidSkene(class_prior=uniform, smoothing=0.0)": {
        "one_class_only": Known("workers who say x whatever the truth is explain the votes best: every class is a tie"),
    },
    "GibbsBCC": {
        "no_votes": Known("class frequencies are drawn", 0.15),
        "worker_relabelling": Known(RANDOM, 0.08),
        "class_relabelling": Known(RANDOM, 0.08),
        "a_worker_without_votes": Known(RANDOM, 0.08),
        "a_task_without_votes": Known(RANDOM, 0.08),
    },
    "BeliefPropagation": {
        "worker_relabelling": Known(RANDOM, 0.05),
        "class_relabelling": Known(RANDOM, 0.05),
        "a_worker_without_votes": Known(RANDOM, 0.05),
    },
    "Default": {
        "worker_relabelling": Known("which votes are held out, and Gibbs sweeps: " + RANDOM, 0.15),
        "class_relabelling": Known("which votes are held out, and Gibbs sweeps: " + RANDOM, 0.15),
        "a_worker_without_votes": Known("Gibbs sweeps: " + RANDOM, 0.15),
        "a_task_without_votes": Known("Gibbs sweeps: " + RANDOM, 0.15),
        "no_votes": Known("class frequencies are drawn", 0.15),
    },
}


def known(subject: Subject, check: str) -> Known | None:
    own = EXCEPTIONS.get(subject.name, {}).get(check)
    return own or EXCEPTIONS.get(subject.name.split("(")[0], {}).get(check)
