"""What a session remembers, and how a statement is run: no prompt, no keys."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Console

from voile.errors import UsageError
from voile.estimate import Answer
from voile.kinds.release import Release
from voile.terminal import say, show
from voile.terminal.answers import explanation_view

Mode = Literal["table", "json", "csv"]
SHOWN_ROWS = 200
"""Rows of an answer that are printed at a prompt."""


class Leave(Exception):  # noqa: N818  (not an error)
    """The user is done."""


@dataclass
class Session:
    """A release, how to ask it, and the last answer."""

    release: Release
    mode: Mode = "table"
    interactive: bool = False
    confidence: float = 0.95
    simultaneous: bool = False
    refine: bool = False
    method: str | None = None
    timing: bool = False
    tables: dict[str, Any] = field(default_factory=dict)
    sql: str = ""
    answer: Answer | None = None
    _covers: str = ""

    def ask(self, sql: str) -> None:
        with self.waiting():
            answer = self.release.query(
                sql,
                self.confidence,
                tables=self.tables,
                simultaneous=self.simultaneous,
                refine=self.refine,
                method=self.method,
            )
        self.sql, self.answer = sql, answer
        for note in answer.notes if self.mode != "json" else ():
            say(f"note: {note}")
        self.print_answer(answer)

    def explain(self, sql: str) -> None:
        with self.waiting():
            found = self.release.explain(sql, tables=self.tables)
        self.print(found, lambda: explanation_view(found))

    def reopen(self) -> None:
        """Begin anew with the same release, where a query was cut off and left half a result."""
        self.release = Release.open(self.release.path)

    def last(self) -> Answer:
        if self.answer is None:
            raise UsageError("there is no answer yet", hint="ask first: select count(*) from …;")
        return self.answer

    # ------------------------------------------------------------------ output

    def print(self, data: Any, view: Callable[[], Any]) -> None:
        """A result: JSON on one line in JSON mode, else for reading."""
        if self.mode == "json":
            print(json.dumps(data, ensure_ascii=False, default=str), flush=True)
        else:
            show(None, view)

    def print_answer(self, answer: Answer) -> None:
        if self.mode == "json":
            print(json.dumps(answer.to_dict(), ensure_ascii=False), flush=True)
            return
        if self.mode == "csv":
            print(answer.to_csv(), end="", flush=True)
            return
        more = len(answer.rows) - SHOWN_ROWS if self.interactive else 0
        short = dataclasses.replace(answer, rows=answer.rows[:SHOWN_ROWS]) if more > 0 else answer
        show(None, lambda: short)
        if more > 0:
            say(f"… and {more:,} more rows; `.csv FILE` writes all of them")
        if not answer.rows:
            say("no group is left: there is nothing to estimate")
        elif answer.covers != self._covers:  # said when it changes, not after each answer
            one = "the interval" if len(answer.rows) == 1 else "each interval"
            say(f"{one} covers {answer.covers}")
            self._covers = answer.covers

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """At a prompt, a sign that something is being computed."""
        if not (self.interactive and sys.stderr.isatty()):
            yield
            return
        with Console(stderr=True).status("estimating … (Ctrl-C cancels)"):
            yield
