"""Pages of Markdown that run: what stands in their fenced blocks is written, executed and compared.

A block's first word says what it is, and a hidden block stands in an HTML comment:

- ``python`` runs; the blocks of a page share their names and a directory of their own;
- ``output`` is what the Python block before it printed;
- ``console`` holds commands after ``$ ``, and what they print (nothing shown: nothing compared). They must
  succeed, unless ``echo $?`` comes next and shows the exit code;
- ``csv``, ``json`` and the like with a file name after them are written under that name;
- ``text`` is only shown, as is a file's block without a name.

In what is shown, ``...`` stands for anything, blanks and ruled lines may be of any length, and a number with a
point may be off by one in its last digit: a sampler's sums differ a little from one processor to the next.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.docs.shell import NotAllowed, shell

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`]*)$")
FILES = {"csv", "tsv", "json", "jsonl"}
KNOWN = FILES | {"python", "output", "console", "text"}
FLOAT = re.compile(r"-?\d+\.\d+")
UNRUN = {"make", "."}  # set-up; that the targets exist is checked beside the pages


class PageError(AssertionError):
    """What is wrong on a page, and at which line."""


@dataclass(frozen=True)
class Block:
    """One fenced block; ``line`` is that of its first line of text."""

    page: Path
    line: int
    kind: str
    name: str
    text: str

    def wrong(self, what: str, line: int | None = None) -> PageError:
        return PageError(f"{self.page.name}, line {line or self.line}: {what}")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, those in HTML comments too."""
    found: list[Block] = []
    start: tuple[int, str, str] | None = None  # line, indent, info of the block that is open
    text: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if start is None:
            if fence:
                start, text = (number, fence["indent"], fence["info"].strip()), []
        elif fence and not fence["info"].strip():
            kind, _, name = start[2].partition(" ")
            block = Block(page, start[0] + 1, kind, name.strip(), "".join(f"{t}\n" for t in text))
            if kind not in KNOWN:
                raise block.wrong(f"a block of {kind or 'no kind'}; give one of {', '.join(sorted(KNOWN))}")
            found.append(block)
            start = None
        else:
            text.append(line.removeprefix(start[1]))
    if start is not None:
        raise PageError(f"{page.name}, line {start[0]}: a block opens and never closes")
    return found


@dataclass(frozen=True)
class Shown:
    """What a page shows, from a line on, and what was really printed."""

    line: int
    of: str  # what printed it
    text: str
    printed: str

    @property
    def is_true(self) -> bool:
        return same(self.text, self.printed)


def run(page: Path) -> None:
    """Run a page in the current directory; what it shows must be what is printed."""
    for shown in play(page):
        if not shown.is_true:
            both = f"--- shown\n{shown.text}--- printed\n{shown.printed}"
            raise PageError(f"{page.name}, line {shown.line}: {shown.of} prints something else\n{both}")


def play(page: Path) -> Iterator[Shown]:
    """Run a page's blocks one after the other, and give what they show and print."""
    module = ModuleType("__page__")  # where dataclasses look for the names of their fields' types
    sys.modules[module.__name__] = module
    try:
        yield from _blocks_of(page, module.__dict__)
    finally:
        del sys.modules[module.__name__]


def _blocks_of(page: Path, names: dict[str, Any]) -> Iterator[Shown]:
    printed: str | None = None
    for block in blocks(page):
        if block.kind == "python":
            printed = _python(block, names)
            continue
        if block.kind == "output":
            if printed is None:
                raise block.wrong("output that follows no block of Python")
            yield Shown(block.line, "the block before", block.text, printed)
        elif block.kind == "console":
            yield from _console(block)
        elif block.kind in FILES and block.name:
            Path(block.name).write_text(block.text, encoding="utf-8")
        printed = None


def same(shown: str, printed: str) -> bool:
    """Whether what is shown stands for what was printed."""
    shown, printed = _plain(shown), _plain(printed)
    numbers = FLOAT.findall(shown)
    literal = [re.escape(part).replace(r"\.\.\.", ".*?") for part in FLOAT.split(shown)]
    match = re.fullmatch(rf"({FLOAT.pattern})".join(literal), printed, re.DOTALL)
    return match is not None and all(map(_near, numbers, match.groups()))


def _near(shown: str, printed: str) -> bool:
    step = 10.0 ** -len(shown.partition(".")[2])
    return abs(float(shown) - float(printed)) <= 1.001 * step


def _plain(text: str) -> str:
    """Without blanks at the ends of lines, and with one for many; ruled lines shrink to one stroke."""
    text = re.sub(r"([─━═╌-])\1+", r"\1", text)
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.strip().splitlines())


def _python(block: Block, names: dict[str, Any]) -> str:
    """Run a block and return what it printed. Its lines keep their numbers, so tracebacks point into the page."""
    out = io.StringIO()
    try:
        code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(out):
            exec(code, names)
    except SyntaxError as error:
        raise block.wrong(f"SyntaxError: {error.msg}", error.lineno) from error
    except Exception as error:
        raise block.wrong(f"{type(error).__name__}: {error}", _line_in(block.page, error)) from error
    return out.getvalue()


def _line_in(page: Path, error: BaseException) -> int | None:
    """The last line of the page that led to the error."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(page):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@dataclass
class _Command:
    line: int
    text: str
    shown: str = ""
    first: int = 0  # line of what is shown


def commands(block: Block) -> list[_Command]:
    """The commands of a console block with what they are shown to print."""
    found: list[_Command] = []
    unfinished = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if unfinished:
            found[-1].text = found[-1].text[:-1] + line.strip()
        elif line.startswith("$ "):
            found.append(_Command(number, line[2:].strip()))
        elif found:
            found[-1].first = found[-1].first or number
            found[-1].shown += line + "\n"
        elif line.strip():
            raise block.wrong("output before the first command; commands begin with '$ '", number)
        unfinished = bool(found) and not found[-1].shown and found[-1].text.endswith("\\")
    return found


def _console(block: Block) -> Iterator[Shown]:
    code, found = 0, commands(block)
    for place, command in enumerate(found):
        if command.text == "echo $?":
            printed, code = f"{code}\n", 0
        elif command.text.partition(" ")[0] in UNRUN:
            continue
        else:
            try:
                code, printed = shell(command.text)
            except (NotAllowed, OSError) as error:
                raise block.wrong(str(error), command.line) from error
        asked = place + 1 < len(found) and found[place + 1].text == "echo $?"
        if code and not asked:
            raise block.wrong(f"'{command.text}' fails with exit code {code}\n{printed}", command.line)
        if command.shown.strip():
            yield Shown(command.first, f"'{command.text}'", command.shown, printed)
