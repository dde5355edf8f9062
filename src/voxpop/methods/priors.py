"""The priors on classes that methods offer by name."""

from __future__ import annotations

from typing import Any

from voxpop.options import one_of, option
from voxpop.priors import ClassPrior, DirichletClasses, Frequencies, Uniform


def class_prior_option(default: str) -> Any:
    return option(default, one_of("uniform", "learned"), "what is believed of a task before its votes")


def point_prior(name: str) -> ClassPrior:
    """For EM: frequencies with one pseudo task in each class, or classes alike."""
    return Uniform() if name == "uniform" else Frequencies(pseudo=1.0)


def variational_prior(name: str) -> ClassPrior:
    """For VB: a flat Dirichlet on the frequencies, or classes alike."""
    return Uniform() if name == "uniform" else DirichletClasses(1.0)
