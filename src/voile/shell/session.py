"""One session of the shell: its release, its settings, and statements cut from what was typed."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from voile.errors import UsageError
from voile.estimate import Answer
from voile.kinds.release import Release
from voile.terminal import say, say_notes, show, show_lines
from voile.terminal.answers import covers_sentence, explanation_view, show_csv
from voile.terminal.escaping import console, json_text

SKIPPED = re.compile(r"(?:\s+|;|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)
# The pieces of SQL within which a semicolon means nothing; a blank line ends a quotation, too,
# or else one that was left open would swallow all that follows.
PIECE = re.compile(
    r"""(?P<quoted>'(?:[^'\n]|\n(?![^\S\n]*\n))*(?:'|(?P<open1>\Z))
      |"(?:[^"\n]|\n(?![^\S\n]*\n))*(?:"|(?P<open2>\Z))
      |`(?:[^`\n]|\n(?![^\S\n]*\n))*(?:`|(?P<open4>\Z)))
      |(?P<line>--[^\n]*)
      |(?P<block>/\*.*?(?:\*/|(?P<open3>\Z)))
      |(?P<command>\n(?=[^\S\n]*(?:\.[a-z]+|\\[a-z?])(?:[^\S\n]|\n|;|\Z)))
      |(?P<end>;|\n[^\S\n]*\n)""",
    re.DOTALL | re.VERBOSE,
)
COMMANDS = (".", "\\")
QUIT = re.compile(r"\n[^\S\n]*(?:\.quit|\.exit|\\q)\b")


def split(text: str) -> tuple[list[str], str]:
    """The statements that have ended, and what is left of one that has not."""
    found: list[str] = []
    at = 0
    while True:
        skipped = SKIPPED.match(text, at)
        at = skipped.end() if skipped else at
        if at >= len(text):
            return found, ""
        end = text.find("\n", at) if text.startswith(COMMANDS, at) else sql_end(text, at)
        if end < 0:
            return found, text[at:]
        if is_command(text[at:]) or not QUIT.match(text, end):
            found.append(text[at:end].strip())  # who quits gives up what was not ended
        at = end


def sql_end(text: str, start: int) -> int:
    """Where the SQL that begins at `start` ends; -1 if it does not yet.

    A line that is a command of the shell ends it, too.
    """
    for piece in PIECE.finditer(text, start):
        if any(piece[name] is not None for name in ("open1", "open2", "open3", "open4")):
            return -1
        if piece["end"] or piece["command"]:
            return piece.start()
    return -1


def complete(text: str) -> bool:
    """Whether what was typed can be run as it is."""
    _, rest = split(text)
    return not rest or is_command(rest)


def statements(text: str) -> list[str]:
    """All statements of a text; its end ends the last one."""
    found, rest = split(text)
    return [*found, rest.strip()] if rest.strip() else found


def is_command(statement: str) -> bool:
    """Whether it is a command of the shell, not SQL."""
    return statement.startswith(COMMANDS)


# ---------------------------------------------------------------------- session
# What a session remembers, and how a statement is run: no prompt, no keys.


Mode = Literal["table", "json", "csv"]
SHOWN_ROWS = 200
"""Rows of an answer that are printed at a prompt."""


class EndOfSession(Exception):  # noqa: N818  (not an error)
    """Raised where the user ends the session."""


@dataclass
class Session:
    """A release, how to ask it, and the last answer."""

    release: Release
    mode: Mode = "table"
    interactive: bool = False
    check: bool = True
    """Whether the release's files are hashed when it is opened."""
    confidence: float = 0.95
    simultaneous: bool = False
    refine: bool | None = None
    """None: as the release has it."""
    method: str | None = None
    timing: bool = False
    tables: dict[str, Any] = field(default_factory=dict)
    sql: str = ""
    answer: Answer | None = None
    _covers: str = ""

    def ask(self, sql: str) -> None:
        """Answer a question and print the answer."""
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
        say_notes(answer.notes if self.mode != "json" else ())
        self.print_answer(answer)

    def explain(self, sql: str) -> None:
        """Print how the estimate of a question comes about."""
        with self.waiting():
            found = self.release.explanation(sql, tables=self.tables)
        self.print(found.to_dict(), lambda: explanation_view(found))

    def reopen(self) -> None:
        """Begin anew with the same release, where a query was cut off and left half a result."""
        self.release = Release.open(self.release.path, check=self.check)

    def last(self) -> Answer:
        """The last answer; refuses if there is none."""
        if self.answer is None:
            raise UsageError("there is no answer yet", hint="ask first: select count(*) from …;")
        return self.answer

    # ------------------------------------------------------------------ output

    def print(self, data: Any, view: Callable[[], Any]) -> None:
        """A result: JSON on one line in JSON mode, else for reading."""
        if self.mode == "json":
            show_lines([json_text(data, default=str)])
        else:
            show(None, view)

    def print_answer(self, answer: Answer) -> None:
        """Print an answer in the session's mode."""
        if self.mode == "json":
            show_lines([json_text(answer.to_dict())])
            return
        if self.mode == "csv":
            show_csv(answer)
            return
        more = len(answer.rows) - SHOWN_ROWS if self.interactive else 0
        short = dataclasses.replace(answer, rows=answer.rows[:SHOWN_ROWS]) if more > 0 else answer
        show(None, lambda: short)
        if more > 0:
            say(f"… and {more:,} more rows; `.csv FILE` writes all of them")
        if not answer.rows:
            say("no group is left: there is nothing to estimate")
        elif answer.covers != self._covers:  # said when it changes, not after each answer
            say(covers_sentence(answer))
            self._covers = answer.covers

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """At a prompt, a sign that something is being computed."""
        if not (self.interactive and sys.stderr.isatty()):
            yield
            return
        with console(stderr=True).status("estimating … (Ctrl-C cancels)"):
            yield
