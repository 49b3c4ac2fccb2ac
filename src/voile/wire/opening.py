"""A server of releases: which tables, who is let in, where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from voile.dbapi.session import SqlSession, SqlSource
from voile.dbapi.sources import opened_tables
from voile.errors import UsageError, spelled
from voile.estimate import checked_confidence
from voile.wire.admission import OpenGuard, WireGuard, read_tokens
from voile.wire.catalogue.answers import PostgresCatalogue
from voile.wire.server import WireOptions, WireServer, is_local


@dataclass(frozen=True)
class AnswerOptions:
    """How questions are answered until a client says otherwise."""

    intervals: bool = False
    confidence: float = 0.95


@contextmanager
def releases_server(
    releases: Sequence[Path],
    options: WireOptions,
    *,
    token_file: Path | None = None,
    trust: bool = False,
    answers: AnswerOptions = AnswerOptions(),  # noqa: B008  (frozen)
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[WireServer]:
    """A server of the tables of these releases, or folders of releases, which is to be run."""
    guard = guard_of(options, token_file, trust=trust)
    options.checked(asks=guard.asks)
    checked_confidence(answers.confidence)
    source = SqlSource(opened_tables(dict(enumerate(releases))))
    catalogue = PostgresCatalogue({name: table.fields for name, table in source.tables.items()})
    try:
        yield WireServer(
            options,
            guard,
            lambda _: SqlSession(
                source, intervals=answers.intervals, confidence=answers.confidence
            ),
            catalogue,
            note,
        )
    finally:
        catalogue.close()
        source.close()


def guard_of(options: WireOptions, token_file: Path | None, *, trust: bool) -> WireGuard:
    """Who is let in: whoever has a token of the file, or everybody on this machine."""
    if trust and token_file is not None:
        raise UsageError(
            f"{spelled('trust', True)} and {spelled('token_file')} exclude each other",
            hint="with a file of tokens, clients give one as password",
        )
    if token_file is not None:
        return read_tokens(token_file)
    if not trust:
        raise UsageError(
            "nobody could be let in",
            hint=f"give {spelled('token_file')}, whose tokens are passwords; or "
            f"{spelled('trust', True)}, for everybody on this machine",
        )
    if not is_local(options.host):
        raise UsageError(
            f"{spelled('trust', True)} would let in whoever reaches {options.host}",
            hint=f"give {spelled('token_file')}, {spelled('tls_cert')} and {spelled('tls_key')}",
        )
    return OpenGuard()
