"""Data in and out: votes from files and labelling tools, results to files."""

from voxpop.io.consensus import consensus_to_label_studio, consensus_writer, write_consensus
from voxpop.io.features import Features, on_tasks, read_features
from voxpop.io.importers import IMPORTERS, Imported
from voxpop.io.labels import read_labels
from voxpop.io.tables import load, read
from voxpop.io.write import frame_writer, write_frame, writing

__all__ = [
    "IMPORTERS",
    "Features",
    "Imported",
    "consensus_to_label_studio",
    "consensus_writer",
    "frame_writer",
    "load",
    "on_tasks",
    "read",
    "read_features",
    "read_labels",
    "write_consensus",
    "write_frame",
    "writing",
]
