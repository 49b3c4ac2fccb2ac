"""What a user can do wrong, each with what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = [
    "PromiseError",
    "QueryError",
    "ReleaseError",
    "SchemaError",
    "TableError",
    "UsageError",
    "VoileError",
    "did_you_mean",
    "in_shell",
    "is_shell",
    "spelled",
]

_SHELLS: list[None] = []
"""Not empty while the caller types commands; else it is a Python program.

It holds for every thread: what a command's threads refuse is told to whoever typed the command.
"""


class VoileError(Exception):
    """Any refusal. `hint` says what would work instead; `exit_code` is what the CLI returns."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(VoileError):
    """The call itself is wrong: a missing file, an unknown column, a number out of range."""

    exit_code = 2


class TableError(VoileError):
    """The table cannot be read, or holds what cannot be published."""


class SchemaError(VoileError):
    """The schema contradicts itself or the data."""


class PromiseError(VoileError):
    """The requested promise cannot be kept; nothing is released."""


class ReleaseError(VoileError):
    """The release is damaged, incomplete, or of a newer format."""


class QueryError(VoileError):
    """The SQL is not a query that can be answered; `start` is where in the text, if known."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", start: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.start = start


def did_you_mean(wrong: str, known: list[str]) -> str:
    """A hint that names the nearest known spelling, or lists what there is."""
    import difflib  # noqa: PLC0415  (only on the way to an error)

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(wrong.lower(), list(by_lower), n=1)
    if near:
        return f"did you mean {by_lower[near[0]]!r}?"
    shown = ", ".join(repr(name) for name in known[:12])
    return f"there is {shown}{', …' if len(known) > 12 else ''}"


@contextmanager
def in_shell() -> Iterator[None]:
    """While this is entered, messages name options as a shell takes them."""
    _SHELLS.append(None)
    try:
        yield
    finally:
        _SHELLS.pop()


def is_shell() -> bool:
    """Whether messages name options as a shell takes them."""
    return bool(_SHELLS)


def spelled(name: str, *value: Any, flag: str = "") -> str:
    """An option as the caller writes it: `--null-text` in a shell, `null_text=` in Python.

    With a value: `--nulls drop`, `nulls='drop'`. `flag` is the one of the shell where it is called
    otherwise there.
    """
    if not _SHELLS:
        return f"{name}={value[0]!r}" if value else f"{name}="
    flag = flag or f"--{name.replace('_', '-')}"
    if value and value[0] is False:  # a flag that turns something off says it alone
        return f"--no-{flag.removeprefix('--')}"
    words = [*map(_as_words, value)]
    if value and isinstance(value[0], str) and value[0].startswith("-"):
        return f"{flag}={words[0]}"  # else it could be taken for a flag
    return " ".join([flag, *words]).rstrip()


def _as_words(value: Any) -> str:
    """A value as a shell takes it."""
    import csv  # noqa: PLC0415  (only on the way to a message)
    import io  # noqa: PLC0415
    import shlex  # noqa: PLC0415

    if value is True:  # the flag alone says it
        return ""
    if isinstance(value, Mapping):
        return " ".join(shlex.quote(f"{name}={each}") for name, each in value.items())
    if isinstance(value, list | tuple):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(value)
        return shlex.quote(line.getvalue())
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return shlex.quote(text)
