"""The priors on classes that point methods offer by name."""

from __future__ import annotations

from voxpop.priors import ClassPrior, Frequencies, Uniform

CLASS_PRIORS = ("uniform", "frequencies")


def point_prior(name: str) -> ClassPrior:
    return Uniform() if name == "uniform" else Frequencies(pseudo=1.0)
