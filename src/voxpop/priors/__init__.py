"""What we believe before the votes."""

from voxpop.priors.classes import ClassPrior, DirichletClasses, Frequencies, Uniform

__all__ = ["ClassPrior", "DirichletClasses", "Frequencies", "Uniform"]
