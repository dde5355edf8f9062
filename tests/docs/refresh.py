"""Write into pages what their examples print now: ``python -m tests.docs.refresh docs/results.md ...``.

What is shown is replaced where it is no longer true. Where it holds ``...`` somebody chose what to show: that is
only named, to be looked at.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

from tests.docs.pages import play
from tests.docs.site import prepared


def refresh(page: Path) -> list[str]:
    """Rewrite a page; what must be done by hand."""
    lines = page.read_text(encoding="utf-8").splitlines()
    by_hand, changes = [], []
    with tempfile.TemporaryDirectory() as directory, prepared(Path(directory)):
        for shown in play(page):
            if shown.is_true:
                continue
            if "..." in shown.text:
                by_hand.append(f"{page}, line {shown.line}: look at what is shown; printed is\n{shown.printed}")
            else:
                changes.append((shown.line - 1, len(shown.text.splitlines()), shown.printed.rstrip().splitlines()))
    for start, count, printed in reversed(changes):
        lines[start : start + count] = [line.rstrip() for line in printed]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return by_hand


if __name__ == "__main__":
    warnings.simplefilter("error")
    for name in sys.argv[1:]:
        for line in refresh(Path(name).resolve()):
            print(line)
