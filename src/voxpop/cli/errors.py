"""Whatever goes wrong, as one plain line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from voxpop.errors import RunFailed, VoxError

FAILED = 1  # a run that failed on good input
BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for programs that die of it

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # of the click below this typer, its own or not

REMEDIES = {
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
    errno.EACCES: "write where you have permission",
    errno.EPERM: "write where you have permission",
    errno.EROFS: "write where you have permission",
    errno.EISDIR: "name a file in it",
}

# How the library's messages spell arguments that are options here: missing='drop', or question= alone.
ARGUMENT = re.compile(
    r"\b(missing|repeats|metric|assignment|source|question|predictions|task|worker|label)="
    r"(?:'([^'\s]+)'|(?=[\s,;)]|$))"
)


def exit_code(run: Callable[[], object]) -> int:
    """Run, say what went wrong if something did, and return the exit code. A bug keeps its traceback."""
    try:
        return _finished(run)
    except UsageError as error:
        return _failed(BAD_INPUT, _usage(error))
    except RunFailed as error:
        return _failed(FAILED, in_the_shell(str(error)))
    except VoxError as error:
        _give_up_stdout()
        return _failed(BAD_INPUT, in_the_shell(str(error)))
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        _give_up_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _give_up_stdout()
        return _failed(BAD_INPUT, describe(error))


def interrupted() -> int:
    """Say so, and return the exit code."""
    say("interrupted: nothing was written")
    return INTERRUPTED


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """The Ctrl-C's that came: where an import swallows one, something else breaks later because of it."""
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored, as in a job that runs in the background
        signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


def say(text: str) -> None:
    """One line on stderr, whatever the text contains."""
    print(one_line(text), file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """The text with line ends and control characters spelled out, so that it is one plain line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def in_the_shell(text: str) -> str:
    """The text with arguments spelled as on the command line: missing='drop' is --missing drop."""
    return ARGUMENT.sub(lambda found: f"--{found[1]} {found[2] or ''}".rstrip(), text)


def describe(error: OSError) -> str:
    """What the system refused, where, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    reason = (error.strerror or str(error)).lower()
    return f"{where}{reason}; {REMEDIES.get(error.errno or 0, 'check the path')}"


def _finished(run: Callable[[], object]) -> int:
    try:
        run()
        code = 0
    except typer.Exit as done:
        code = done.exit_code
    sys.stdout.flush()
    return code


def _failed(code: int, text: str) -> int:
    say(f"error: {text}")
    return code


def _usage(error: Exception) -> str:
    """A usage error in our form: what is wrong, and where to read about it."""
    said: str = error.format_message()  # type: ignore[attr-defined]
    message = said.strip().removesuffix(".").replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "voxpop"
    see = f"{' See' if message.endswith('?') else '; see'} '{command} --help'"
    return message[:1].lower() + message[1:] + see


def _give_up_stdout() -> None:
    """What cannot be written to stdout is dropped, or Python would complain about it once more when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
