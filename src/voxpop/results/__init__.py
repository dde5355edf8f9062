"""What a fit found, to be asked, drawn, written and read back."""

from voxpop.results.consensus import Consensus
from voxpop.results.evidence import Evidence
from voxpop.results.store import load

__all__ = ["Consensus", "Evidence", "load"]
