"""Who is what, and how far the votes agree."""

from voxpop.audit.agreement import Agreement, Estimate, agreement

__all__ = ["Agreement", "Estimate", "agreement"]
