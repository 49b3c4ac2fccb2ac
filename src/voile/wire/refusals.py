"""SQLSTATEs: what clients know an error by."""

from __future__ import annotations

from voile.dbapi.sources import ChargeError
from voile.errors import (
    PromiseError,
    QueryError,
    ReleaseError,
    SchemaError,
    TableError,
    UsageError,
    VoileError,
)
from voile.remote.connection import ServerError
from voile.web.limits import RefusalError
from voile.wire.messages import WireError

STATES: tuple[tuple[type[VoileError], str], ...] = (
    (PromiseError, "53400"),  # a budget is exhausted
    (ChargeError, "53400"),
    (RefusalError, "53300"),  # too much at once
    (ServerError, "58000"),
    (ReleaseError, "XX001"),
    (UsageError, "22023"),
    (QueryError, "0A000"),
    (TableError, "42000"),
    (SchemaError, "42000"),
)
BEGINNINGS = {
    "there is no column": "42703", "there is no table": "42P01", "no SQL": "42601",
    "this is no SQL": "42601", "the SQL": "42601", "unexpected": "42601",
    "several parameters": "42601",
}  # fmt: skip
"""What messages of queries begin with, where that says more than their class."""


def as_wire_error(error: VoileError) -> WireError:
    """The error as clients read it; a place in the SQL stays one."""
    if isinstance(error, WireError):
        return error
    words = error.message.partition("\n")[0].rstrip(":")
    return WireError(
        state_of(error, words), words, hint=error.hint.strip(),
        position=getattr(error, "start", None),
    )  # fmt: skip


def state_of(error: VoileError, words: str) -> str:
    """The SQLSTATE of an error."""
    if isinstance(error, QueryError | UsageError):
        for beginning, state in BEGINNINGS.items():
            if words.startswith(beginning):
                return state
        if "not found in FROM" in words:
            return "42703"
    return next((state for kind, state in STATES if isinstance(error, kind)), "XX000")
