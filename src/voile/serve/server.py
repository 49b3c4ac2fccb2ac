"""A server of noisy counts on its address, from the first request to the last."""

from __future__ import annotations

import gc
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError, spelled
from voile.serve.answerers import EACH, THREADS, WAITING, AnswererProcesses, check_workers
from voile.serve.app import make_app
from voile.serve.ledger.sql_ledger import Place
from voile.serve.opened import opened
from voile.serve.worker import spare_collections
from voile.serve.workers import QuestionWorkers
from voile.web.limits import WorkPool
from voile.web.server import WebOptions, listening, run_server, url_of

if TYPE_CHECKING:
    from voile.serve.setting import Setting
    from voile.wire.server import WireOptions

SWITCH = 0.001
"""Seconds that a thread computes while others wait."""


@dataclass(frozen=True)
class ServerStatus:
    """A server that is ready: where it listens, about what, and how much is left of its budget."""

    url: str
    name: str
    queries: int
    used: int
    postgres: int | None = None
    """The port where PostgreSQL's clients are answered, if they are."""


def serve(
    folder: Path,
    how: WebOptions,
    *,
    ready: Callable[[ServerStatus], None],
    note: Callable[[str], None],
    workers: int = 1,
    clients: WireOptions | None = None,
) -> int:
    """Answer until a signal comes; returns how many answers there are then.

    With several `workers`, that many processes make the answers. `clients` is where those that
    speak PostgreSQL's protocol are answered, too.
    """
    check_certificate(how)
    check_workers(workers)
    if clients is not None:
        clients.checked(asks=True)
    place: Place = "alone" if workers == 1 else "first"
    with listening(how) as listener, opened(folder, place) as service:
        pool = WorkPool(THREADS, WAITING, each=EACH)
        questions = QuestionWorkers(service.setting)
        answerers: AnswererProcesses | None = None
        before = sys.getswitchinterval()
        try:
            answerers = AnswererProcesses(folder, workers) if workers > 1 else None
            app = make_app(
                service, how.rate, pool, questions=questions, answerer=answerers, note=note
            )
            spare_collections()
            # A long answer that one thread makes delays the others' short ones less.
            sys.setswitchinterval(SWITCH)
            used = service.ledger.budgets("").everyone.used
            setting = service.setting
            found = ServerStatus(url_of(listener, how), setting.name, setting.queries, used)
            service.ledger.note("server", "started", url=found.url)
            with answered_clients(clients, setting, app, note) as (port, begin):
                found = replace(found, postgres=port)
                run_server(
                    app, how, listener, lambda: begun(begin, ready, found), stopping=questions.close
                )
        finally:
            sys.setswitchinterval(before)
            questions.close()
            if answerers is not None:
                answerers.close()
            pool.close()
            gc.unfreeze()  # or DuckDB takes what is frozen for leaks, and says so at exit
            service.ledger.note("server", "stopped")
        return service.ledger.budgets("").everyone.used


def begun(
    begin: Callable[[], None], ready: Callable[[ServerStatus], None], found: ServerStatus
) -> None:
    """The first requests may come."""
    begin()
    ready(found)


@contextmanager
def answered_clients(
    options: WireOptions | None, setting: Setting, app: Any, note: Callable[[str], None]
) -> Iterator[tuple[int | None, Callable[[], None]]]:
    """Where PostgreSQL's clients are answered, and what is called when the application runs."""
    if options is None:
        yield None, lambda: None
        return
    from voile.serve.postgres_clients import InnerApp, postgres_clients  # noqa: PLC0415  (few)

    inner = InnerApp(app)
    with postgres_clients(options, setting, inner, note) as server:
        try:
            yield server.port, inner.begin
        finally:
            inner.end()


def check_certificate(how: WebOptions) -> None:
    """Refuse files that TLS would fail on later, or ask a passphrase for."""
    if (how.certificate is None) != (how.key is None):
        missing = spelled("certificate" if how.certificate is None else "key")
        raise UsageError(
            f"{missing} is missing", hint=f"TLS needs {spelled('certificate')} and {spelled('key')}"
        )
    if how.certificate is None or how.key is None:
        return
    for option, file in (("certificate", how.certificate), ("key", how.key)):
        if not file.is_file():
            raise UsageError(f"{spelled(option, str(file))} is no file", hint="name a file in PEM")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            how.certificate, how.key, password=no_passphrase
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"TLS cannot use {str(how.certificate)!r} with {str(how.key)!r}: "
            f"{getattr(error, 'reason', None) or error}",
            hint="a certificate (with its chain) and its key, both in PEM, without a passphrase",
        ) from None


def no_passphrase() -> str:
    """Refuse to ask for a passphrase, where OpenSSL would ask at the terminal."""
    raise ValueError("the key is locked by a passphrase")
