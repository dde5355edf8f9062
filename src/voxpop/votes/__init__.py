"""The votes: who said what about which task."""

from voxpop.votes.axis import Axis
from voxpop.votes.batch import Batch
from voxpop.votes.votes import Votes

__all__ = ["Axis", "Batch", "Votes"]
