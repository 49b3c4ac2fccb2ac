"""A server's folder, open for answering, by one process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from voile.engines.counted import read_counted
from voile.errors import UsageError
from voile.files import sha256
from voile.serve.ledger import open_ledger
from voile.serve.ledger.sql_ledger import Place
from voile.serve.query_service import NoiseStock, QueryService
from voile.serve.setting import TABLE, Setting

__all__ = ["opened"]


@contextmanager
def opened(folder: Path, place: Place = "alone") -> Iterator[QueryService]:
    """Lock the folder, check the table and the ledger, and give the service that answers."""
    setting = Setting.open(folder)
    table = folder / TABLE
    if not table.is_file() or sha256(table) != setting.digest:
        raise UsageError(
            f"{str(table)!r} is not the table that the server was begun with",
            hint="restore it from a backup: answers about another table need another server",
        )
    with ExitStack() as stack:
        ledger = open_ledger(folder, setting, serving=True, place=place)
        stack.callback(ledger.close)
        rows = read_counted(table, setting.schema)
        yield QueryService(setting, rows, ledger, NoiseStock().draw)
