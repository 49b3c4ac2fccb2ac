"""Work on a public domain: a thread at a time, for some seconds, and ended where nobody waits.

What strangers ask is computed in the program's own process. DuckDB hears of an interruption only
while it runs, so whoever is late is interrupted until the work has ended.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from voile.engines import open_domain
from voile.engines.rows import PublicDomain
from voile.errors import QueryError
from voile.query.predicate import Expression, wording
from voile.query.text import refusal
from voile.schema import Schema

DOMAIN_MEMORY = "512MB"
DOMAIN_SECONDS = 5.0
"""For what one statement computes on the domain."""
MOST_COMBINED = 100_000
"""Combinations of values on which an expression of several columns is computed."""
PAUSE = 0.02
"""Seconds between two interruptions."""


@dataclass
class DomainTurn:
    """One thread's work."""

    thread: int = field(default_factory=threading.get_ident)
    stop: threading.Event = field(default_factory=threading.Event)
    """Set where nobody waits for it any more."""
    ended: threading.Event = field(default_factory=threading.Event)
    late: bool = False

    def watch(self, engine: PublicDomain, seconds: float) -> None:
        """Interrupt the work when its time is up, or when nobody waits, until it has ended."""
        self.stop.wait(seconds)
        while not self.ended.wait(PAUSE):
            self.late = True
            engine.interrupt()


class TimedDomain:
    """A public domain that threads and sessions share, in turns of bounded length."""

    def __init__(self, schema: Schema, seconds: float = DOMAIN_SECONDS) -> None:
        self.schema = schema
        self.seconds = seconds
        self.busy = threading.RLock()
        self._turn: DomainTurn | None = None

    @cached_property
    def _engine(self) -> PublicDomain:
        return open_domain(self.schema, memory=DOMAIN_MEMORY)

    @contextmanager
    def at_work(self) -> Iterator[PublicDomain]:
        """The domain, for this thread alone; a QueryError where the work takes too long."""
        with self.busy:
            engine, turn = self._engine, DomainTurn()
            watch = threading.Thread(target=turn.watch, args=[engine, self.seconds], daemon=True)
            watch.start()
            self._turn = turn
            try:
                yield engine
            except QueryError:
                if not turn.late:
                    raise
            finally:
                self._turn = None
                turn.ended.set()
                turn.stop.set()
                watch.join()  # so that it cannot end the next work
            if turn.late:
                raise QueryError(
                    f"the statement took longer than {self.seconds:g} seconds on the public "
                    "domain, or was cancelled",
                    hint="ask with simpler expressions, or about fewer columns in one of them",
                )

    def interrupt(self, thread: int) -> None:
        """End what a thread computes here, if it does."""
        turn = self._turn
        if turn is not None and turn.thread == thread:
            turn.stop.set()

    def check_combined(self, sql: str, parts: Sequence[Expression]) -> None:
        """Refuse expressions that would be computed on too many combinations of values."""
        for part in parts:
            size = math.prod(self.schema[name].size for name in part.attributes)
            if len(part.attributes) > 1 and size > MOST_COMBINED:
                raise refusal(
                    sql,
                    f"{wording(part)} reads {size:,} combinations of values, more than "
                    f"{MOST_COMBINED:,}",
                    part.start,
                    "list the columns one by one, or make one of them coarser in the schema",
                )
