"""The command line: one file a command. Nothing heavy is imported before a command needs it."""

from voxpop.cli.app import main

__all__ = ["main"]
