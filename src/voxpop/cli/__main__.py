"""python -m voxpop.cli, where the script is not on the path."""

from voxpop.cli.app import main

main()
