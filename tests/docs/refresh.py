"""Write into pages what their examples print now: ``python -m tests.docs.refresh docs/results.md ...``.

What is shown is replaced where it is no longer true. Where lines are left out (``...``), each piece between them is
looked for by its first line, numbers aside, and the same number of lines is shown. What cannot be found is named.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from pathlib import Path

from tests.docs.pages import Shown, play, same
from tests.docs.site import prepared


def refresh(page: Path) -> list[str]:
    """Rewrite a page; what must be done by hand."""
    lines = page.read_text(encoding="utf-8").splitlines()
    by_hand, changes = [], []
    with tempfile.TemporaryDirectory() as directory, prepared(Path(directory)):
        for shown in play(page):
            if shown.is_true:
                continue
            new = anew(shown)
            if new is None:
                by_hand.append(f"{page}, line {shown.line}: look at what is shown; printed is\n{shown.printed}")
            else:
                changes.append((shown.line - 1, len(shown.text.rstrip().splitlines()), new))
    for start, count, new in reversed(changes):
        lines[start : start + count] = new
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return by_hand


def anew(shown: Shown) -> list[str] | None:
    """The lines to show instead; None if they cannot be found."""
    printed = [line.rstrip() for line in shown.printed.rstrip().splitlines()]
    if "..." not in shown.text:
        return printed
    new: list[str] = []
    place = 0
    for old in shown.text.rstrip().splitlines():
        if old.strip() == "...":
            new.append(old)
            place = -1 - max(place, 0)  # below zero: anywhere from here on
            continue
        if place < 0:
            there = (i for i in range(-1 - place, len(printed)) if skeleton(printed[i]) == skeleton(old))
            place = next(there, len(printed))
        if place >= len(printed):
            return None
        new.append(old if "..." in old and same(old, printed[place]) else printed[place])
        place += 1
    return new if same("\n".join(new), shown.printed) else None


def skeleton(line: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "#", " ".join(line.split()))


if __name__ == "__main__":
    warnings.simplefilter("error")
    for name in sys.argv[1:]:
        for line in refresh(Path(name).resolve()):
            print(line)
