"""What a user can do wrong, each with what is wrong, where, and what to do about it."""

from __future__ import annotations

__all__ = [
    "PromiseError",
    "QueryError",
    "ReleaseError",
    "SchemaError",
    "TableError",
    "UsageError",
    "VoileError",
    "did_you_mean",
]


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
    """The promise that was asked for cannot be kept; nothing is released."""


class ReleaseError(VoileError):
    """The release is damaged, incomplete, or of a newer format."""


class QueryError(VoileError):
    """The SQL is not a query that can be answered; carries where in the text."""

    exit_code = 2


def did_you_mean(wrong: str, known: list[str]) -> str:
    """A hint that names the nearest known spelling, or lists what there is."""
    import difflib  # noqa: PLC0415  (only on the way to an error)

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(wrong.lower(), list(by_lower), n=1)
    if near:
        return f"did you mean {by_lower[near[0]]!r}?"
    shown = ", ".join(repr(name) for name in known[:12])
    return f"there is {shown}{', …' if len(known) > 12 else ''}"
