"""The audit log, and a clock that it keeps from going back."""

from __future__ import annotations

import json
import threading
import time

from voile.serve.ledger.base import Event
from voile.serve.ledger.tables import Run

LONGEST = 200
"""Characters of a name that are kept."""
INSERT_EVENT = """
INSERT INTO events (number, at, who, what, detail)
SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ? FROM events
"""
LATEST_TIME = """
SELECT max(at) FROM (
  SELECT max(at) AS at FROM entries UNION ALL SELECT max(at) FROM events
  UNION ALL SELECT max(created) FROM tokens UNION ALL SELECT max(revoked) FROM tokens
) AS times
"""


class Clock:
    """Seconds since 1970, never less than what was seen before: an expired token stays so."""

    def __init__(self, seen: float) -> None:
        self._seen = seen
        self._lock = threading.Lock()

    def now(self) -> float:
        with self._lock:
            self._seen = max(self._seen, time.time())
            return self._seen


def latest_time(run: Run) -> float:
    """The latest time that the ledger knows of."""
    return float(run(LATEST_TIME)[0][0] or 0.0)


def add_event(run: Run, event: Event) -> None:
    detail = json.dumps({k: storable_value(v) for k, v in event.detail.items()}, default=str)
    run(INSERT_EVENT, event.at, storable(event.who), storable(event.what), detail)


def storable_value(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


def storable(text: str) -> str:
    """Text as it is, but for what a database cannot keep or a terminal would obey."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:LONGEST]
    )


def read_events(run: Run, before: int | None, most: int) -> list[tuple[int, Event]]:
    """The newest first."""
    rows = run(
        "SELECT number, at, who, what, detail FROM events WHERE number < ? "
        "ORDER BY number DESC LIMIT ?",
        2**62 if before is None else before,
        most,
    )
    return [(n, Event(at, who, what, json.loads(detail))) for n, at, who, what, detail in rows]
