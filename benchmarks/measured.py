"""Pages that ``voxpop bench`` wrote, kept beside the docs: the tables and verdicts, without the figures.

python -m benchmarks.measured RESULTS: every page below that directory, to docs/measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.page import ROOT

KEPT = ROOT / "docs" / "measured"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measured", description=__doc__)
    parser.add_argument("results", type=Path, help="the directory that was given to voxpop bench with -o, or one above")
    pages = sorted(parser.parse_args().results.rglob("*.md"))
    KEPT.mkdir(exist_ok=True)
    for page in pages:
        (KEPT / page.name).write_text(without_figures(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{len(pages)} pages to {KEPT.relative_to(ROOT)}")


def without_figures(page: str) -> str:
    return "\n\n".join(block for block in page.split("\n\n") if not block.startswith("!["))


if __name__ == "__main__":
    main()
