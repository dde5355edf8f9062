"""A small shell for pages: commands of voxpop run in this process, which is a hundred times faster than to start it."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OTHERS = {"cat", "head", "wc", "gzip", "ls"}  # programs that a page may use beside voxpop


class NotAllowed(Exception):
    """A page asks for a program that pages may not use."""


def shell(line: str) -> tuple[int, str]:
    """Run a line of commands with pipes and files; exit code, and what a terminal would show."""
    parts = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    parts.whitespace_split = True
    code, data, screen = 0, b"", io.BytesIO()
    stages = list(_stages(list(parts)))
    for place, (words, source, target) in enumerate(stages):
        data = Path(source).read_bytes() if source else data
        if words[0] == "voxpop":
            code, data = _voxpop(words, data, screen)
        elif words[0] in OTHERS:
            done = subprocess.run(words, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            code, data = done.returncode, done.stdout
        else:
            raise NotAllowed(f"'{words[0]}' is not a command that pages may use")
        if target:
            Path(target).write_bytes(data)
            data = b""
        elif place + 1 == len(stages):
            screen.write(data)
    return code, screen.getvalue().decode()


def _stages(parts: list[str]) -> Iterator[tuple[list[str], str, str]]:
    """The words of each command, the file that it reads, and the file that it writes."""
    words: list[str] = []
    files = {"<": "", ">": ""}
    queue = iter([*parts, "|"])
    for part in queue:
        if part in files:
            files[part] = next(queue)
        elif part == "|":
            yield words, files["<"], files[">"]
            words, files = [], {"<": "", ">": ""}
        else:
            words.append(part)


def _voxpop(words: list[str], data: bytes, screen: io.BytesIO) -> tuple[int, bytes]:
    """Run the command line in this process: exit code and standard output; messages go to the screen."""
    from voxpop.cli.app import run

    out = io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(screen, encoding="utf-8", write_through=True)
    try:
        code = run(words[1:])
    finally:
        sys.stdout.flush()
        sys.stdout.detach()  # or its end would close the bytes
        sys.stderr.detach()
        sys.stdin, sys.stdout, sys.stderr = before
    return code, out.getvalue()
