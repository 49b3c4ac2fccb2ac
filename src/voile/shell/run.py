"""How a session is fed: by commands given, by a pipe, or at a prompt."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from voile.kinds.release import Release
from voile.shell.commands import bring, perform
from voile.shell.session import Leave, Session
from voile.shell.statements import split, statements


def run(
    path: Path,
    commands: Sequence[str] = (),
    *,
    tables: Mapping[str, str] | None = None,
    as_json: bool = False,
) -> int:
    """Answer what is given; the exit code is 1 if anything was refused (0 at a prompt)."""
    session = Session(Release.open(path), mode="json" if as_json else "table")
    for name, file in (tables or {}).items():
        bring(session, name, file)
    if commands:
        return answer_all(session, (s for text in commands for s in statements(text)))
    if sys.stdin.isatty() and sys.stdout.isatty():
        from voile.shell.prompt import interact  # noqa: PLC0415  (slow to load)

        session.interactive = True
        interact(session)
        return 0
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return answer_all(session, read_statements(sys.stdin))


def answer_all(session: Session, asked: Iterable[str]) -> int:
    """Go on after a refusal, as each question stands for itself."""
    failed = False
    try:
        for statement in asked:
            failed = not perform(session, statement) or failed
    except Leave:
        pass
    return int(failed)


def read_statements(lines: Iterable[str]) -> Iterator[str]:
    """Statements as soon as they are complete."""
    held = ""
    for line in lines:
        found, held = split(held + line)
        yield from found
    yield from statements(held)
