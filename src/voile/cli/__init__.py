"""The command line: arguments and errors, no arithmetic.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 the
promise or the data says no, 2 wrong usage.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from typing import Annotated

import typer

from voile.cli.common import KEPT, PLACES, group_of, is_released
from voile.cli.program import PANELS, Program
from voile.system import here as system
from voile.terminal import complain, say
from voile.terminal.escaping import escape_standard_streams

__all__ = ["PANELS", "Ending", "app", "main"]

app = group_of(
    "Publish tables about people so that anyone can count, within a promise to each of them.",
    Program,
    completion=True,
)


def print_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from voile import __version__

        print(f"voile {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Publish tables about people so that anyone can count, within a promise to each of them."""


class Interrupted(BaseException):
    """A signal asked us to stop; not an Exception, so that nothing takes it for a failure."""


def stop_on_signals() -> list[int]:
    """Make every polite signal clean up behind itself; returns where they are noted.

    When a release is in its place there is nothing to clean up: the command then ends as it would.
    """
    received: list[int] = []

    def note(number: int, _: object) -> None:
        if is_released():
            return
        received.append(number)
        for other in system.ENDING:
            signal.signal(other, signal.SIG_IGN)  # cleaning up is not interrupted again
        raise Interrupted

    for number in system.ENDING:
        signal.signal(number, note)
    return received


class Ending:
    """How the process ends: at once, when everything that is to be done at the end is done.

    Python would take down every object first. That takes a tenth of a second and does nothing
    more: files are closed, temporary folders removed and threads waited for by then.
    """

    def __init__(self, received: list[int]) -> None:
        self.received = received
        self.code = 1
        """Unless the program ends as it should."""

    def note(self, left: SystemExit | None) -> None:
        """Remember with which code the program ends."""
        code = left.code if left else 0
        self.code = code if isinstance(code, int) else int(code is not None)

    def leave(self) -> None:
        """End the process. After a signal nobody hears of threads that are still at work."""
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            if not self.received:
                return  # Python says what it could not write
        os._exit(128 + self.received[0] if self.received else self.code)


def main() -> None:
    """Run the program, and end the process when Python is done."""
    gc.set_threshold(100_000, 20, 20)  # what imports leave is no garbage
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A poor terminal is no reason to fail.
            stream.reconfigure(encoding=encoding_of(stream), errors="replace")
    escape_standard_streams()
    ending = Ending(stop_on_signals())
    atexit.register(ending.leave)  # first of all, so that it is called last
    try:
        run(ending.received)
    except SystemExit as left:
        ending.note(left)
        raise
    ending.note(None)


def encoding_of(stream: io.TextIOWrapper) -> str | None:
    """How a file or a pipe is written, where the system has no good way; None: as it is."""
    return None if stream.isatty() else system.PIPE_ENCODING


def what_became() -> str:
    """What became of a release, where the command makes one."""
    if not PLACES:
        return ""
    return "the release is in its place" if is_released() else "nothing was released"


def run(received: list[int]) -> None:
    """Run the command; errors become messages and exit codes."""
    from voile.errors import VoileError

    try:
        app()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(system.BROKEN_PIPE)
    except (Exception, Interrupted) as error:
        # A library that was interrupted may have made an error of its own of it.
        if received:
            say(f"interrupted; {KEPT[-1] if KEPT else 'nothing was left behind'}")
            sys.exit(128 + received[0])
        if isinstance(error, VoileError):
            complain(error.message, error.hint)
            sys.exit(error.exit_code)
        if isinstance(error, ImportError):
            from voile.extras import lacking

            missing = lacking(error)
            if missing is not None:
                complain(missing.message, missing.hint)
                sys.exit(missing.exit_code)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            complain(f"{where}{error.strerror or error}", what_became())
            sys.exit(1)
        raise
