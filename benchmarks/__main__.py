"""python -m benchmarks [--quick] [table ...]; without a name all of them. Tables that are not run are kept."""

from __future__ import annotations

import argparse
import logging
import warnings
from importlib import import_module

from benchmarks import page

TABLES = (
    "accuracy",
    "speed",
    "scale",
    "pipeline",
    "default_cost",
    "startup",
    "epoch",
    "learn_scale",
    "learn_peers",
    "asking",
    "active_peers",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=f"one or more of: {', '.join(TABLES)}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, to look at: nothing is written")
    given = parser.parse_args()
    for name in given.tables:
        if name not in TABLES:
            parser.error(f"no table '{name}'; there are {', '.join(TABLES)}")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for name in given.tables or TABLES:
        table = import_module(f"benchmarks.{name}").run(given.quick)
        print(f"## {table.title}\n\n" + "\n".join(page.lines_of(table)) + "\n", flush=True)
        if not given.quick:
            page.save(name, table)
            page.write(TABLES)


if __name__ == "__main__":
    main()
