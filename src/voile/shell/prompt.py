"""The prompt: what it completes and keeps, and the loop that reads from it."""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_completions, has_focus, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from voile.files import lies_within
from voile.kinds.release import Release
from voile.query.quoting import quote_identifier, quote_literal
from voile.schema import Attribute, Value
from voile.schema.schema import large
from voile.shell.commands import ALIASES, COMMANDS, bring, perform
from voile.shell.session import EndOfSession, Session, complete, is_command, split, statements
from voile.system import here as system
from voile.terminal import say
from voile.terminal.escaping import escaped
from voile.units import counted

MOST_SHOWN = 100
MOST_LOOKED_AT = 50_000
"""Values that are looked at for those that match: typing must not wait for a large domain."""

KEYWORDS = (
    "select", "from", "where", "group", "by", "having", "order", "limit", "as", "and", "or", "not",
    "xor", "in", "between", "like", "ilike", "is", "null", "distinct", "case", "when", "then",
    "else", "end", "cast", "filter", "asc", "desc", "join", "left", "on", "using", "exists", "true",
    "false", "interval", "date",
)  # fmt: skip
AGGREGATES = (
    "count", "sum", "avg", "var_samp", "var_pop", "stddev", "stddev_pop", "covar_samp",
    "covar_pop", "corr", "median", "quantile_cont", "quantile_disc",
)  # fmt: skip
FUNCTIONS = (
    "abs", "ceil", "floor", "round", "sqrt", "exp", "ln", "log", "sign", "greatest", "least",
    "lower", "upper", "length", "substring", "right", "trim", "concat", "replace", "strpos",
    "starts_with", "ends_with", "contains", "regexp_matches", "coalesce", "nullif", "year",
    "month", "day", "quarter", "week", "dayofweek", "dayname", "monthname", "extract",
    "date_part", "date_trunc", "strftime",
)  # fmt: skip

NAME = r'(?:"(?P<{0}q>(?:[^"]|"")+)"|(?P<{0}>[^\W\d]\w*))'
COMPARED = re.compile(
    NAME.format("name")
    + r"""\s*(?:(?:=|==|<>|!=|<=?|>=?|\b(?:not\s+)?i?like\b|\bis\s+(?:not\s+)?distinct\s+from\b)\s*
      |\b(?:not\s+)?in\s*\(\s*(?:(?:'(?:[^']|'')*'|[^\s',()]+)\s*,\s*)*)
      (?P<quote>'?)(?P<typed>(?:[^']|'')*)\Z""",
    re.IGNORECASE | re.VERBOSE,
)
QUALIFIED = re.compile(r"(?P<table>[^\W\d]\w*)\.(?P<typed>\w*)\Z")
AFTER_FROM = re.compile(r"\b(?:from|join)\s+(?P<typed>\w*)\Z", re.IGNORECASE)
PLAIN = re.compile(r"[^\W\d]\w*")


class ShellCompleter(Completer):
    """Completion for a session, whose tables may change."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """What could follow what was typed: of a command, or of SQL."""
        _, text = split(document.text_before_cursor)
        if is_command(text):
            return self._of_command(text, event)
        return self._of_sql(text, requested=event.completion_requested)

    # ------------------------------------------------------------------ commands

    def _of_command(self, text: str, event: CompleteEvent) -> Iterator[Completion]:
        name, space, rest = text.partition(" ")
        if not space:
            for known, command in COMMANDS.items():
                if known.startswith(name):
                    yield Completion(
                        known, -len(name), display=command.usage, display_meta=command.about
                    )
            return
        command = COMMANDS.get(ALIASES.get(name, name), COMMANDS[".help"])
        if command.argument == "attribute":
            names = [*self.session.release.schema.names, *self.session.tables]
            yield from matching(names, rest.strip('"'), -len(rest), "attribute")
        elif command.argument == "switch":
            yield from matching(["on", "off"], rest, -len(rest), "")
        elif command.argument == "sql":
            yield from self._of_sql(rest, requested=event.completion_requested)
        elif command.argument in ("file", "with"):
            path = rest.rpartition("=")[2] if command.argument == "with" else rest
            if command.argument == "file" or "=" in rest:
                yield from self._paths.get_completions(Document(path), event)

    # ------------------------------------------------------------------ SQL

    def _of_sql(self, text: str, *, requested: bool) -> Iterator[Completion]:
        if (compared := COMPARED.search(text)) and (attribute := self._attribute(compared)):
            yield from values_for(attribute, compared["quote"], compared["typed"])
            return
        if text.count("'") % 2:
            return  # within a text that nothing is known about
        if qualified := QUALIFIED.search(text):
            typed = qualified["typed"]
            table = self.session.tables.get(qualified["table"])
            names = table.column_names if table is not None else self.session.release.schema.names
            yield from matching(map(quoted_name, names), typed, -len(typed), "column")
            return
        if after := AFTER_FROM.search(text):
            typed = after["typed"]
            names = [self.session.release.name, *self.session.tables]
            yield from matching(map(quoted_name, names), typed, -len(typed), "table")
            return
        yield from self._words(text, requested=requested)

    def _attribute(self, compared: re.Match[str]) -> Attribute | None:
        spelt = (compared["nameq"] or "").replace('""', '"') or compared["name"]
        for attribute in self.session.release.schema:
            if attribute.name.casefold() == spelt.casefold():
                return attribute
        return None

    def _words(self, text: str, *, requested: bool) -> Iterator[Completion]:
        if text.count('"') % 2:  # within a quoted name
            typed = text.rpartition('"')[2]
            names = [name for name in self.session.release.schema.names if starts(name, typed)]
            yield from (
                Completion(f'{name}"', -len(typed), display=escaped(name)) for name in names
            )
            return
        found = re.search(r"\w*\Z", text)
        typed = found[0] if found else ""
        if not typed and not requested:
            return
        back = -len(typed)
        names = self.session.release.schema.names
        yield from matching(map(quoted_name, names), typed, back, "attribute")
        for name in self.session.tables:
            yield from matching([name], typed, back, "table")
        capital = len(typed) > 1 and typed.isupper()
        for words, meta in ((AGGREGATES, "aggregate"), (KEYWORDS, ""), (FUNCTIONS, "function")):
            cased = [word.upper() if capital else word for word in words]
            yield from matching(cased, typed, back, meta)


def matching(words: Iterable[str], typed: str, back: int, meta: str) -> Iterator[Completion]:
    """Those of the words that begin with what was typed, in any case."""
    for word in words:
        if starts(word.lstrip('"'), typed):
            yield Completion(word, back, display=escaped(word), display_meta=meta)


def starts(word: str, typed: str) -> bool:
    """Whether the word begins with what was typed, in any case."""
    return word.casefold().startswith(typed.casefold())


def quoted_name(name: str) -> str:
    """The name as SQL needs it: in quotes only where it must be."""
    if PLAIN.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return quote_identifier(name)


def values_for(attribute: Attribute, quote: str, typed: str) -> Iterator[Completion]:
    """Values that begin with what was typed, then those that have it further inside."""
    if not quote and not re.fullmatch(r"-?[\w.]*", typed):
        return  # the value is complete, and something else has begun
    is_text = attribute.kind in ("categorical", "date")
    if quote and not is_text:
        return  # a number is not text
    wanted = typed.replace("''", "'").casefold()
    looked_at = itertools.islice(attribute, MOST_LOOKED_AT)
    texts = [text_of(value) for value in looked_at if value is not None]
    begin = [text for text in texts if text.casefold().startswith(wanted)]
    if is_text and len(begin) < MOST_SHOWN:
        known = set(begin)
        begin += [text for text in texts if wanted in text.casefold() and text not in known]
    for text in begin[:MOST_SHOWN]:
        literal = quote_literal(text) if is_text else text
        typed_quote = len(quote)  # which stands before what is completed
        yield Completion(
            literal[typed_quote:],
            -len(typed),
            display=escaped(text),
            display_meta=escaped(attribute.name),
        )


def text_of(value: Value) -> str:
    """A value as it is typed in SQL, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# ---------------------------------------------------------------------- prompt
# The prompt: editing over several lines, history, colours, completion.


PROMPT, CONTINUED = "voile> ", "  ...> "


def interact(session: Session, *, history: History | None = None, **streams: Any) -> None:
    """Read and run statements until the user ends the session."""
    ask: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        key_bindings=bindings(),
        completer=ShellCompleter(session),
        complete_while_typing=True,
        history=history or kept_history(session),
        auto_suggest=AutoSuggestFromHistory(),
        lexer=PygmentsLexer(SqlLexer),
        **streams,
    )
    greet(session)
    while True:
        try:
            text = ask.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            for statement in statements(text):
                with cancellable() as pressed:
                    perform(session, statement)
                if pressed:
                    session.reopen()
                    say("cancelled")
                    break
        except EndOfSession:
            return


def greet(session: Session) -> None:
    """Say which release is open, and how to ask."""
    release = session.release
    say(
        f"{release.name}: {len(release.schema.attributes)} attributes, "
        f"{large(release.schema.size)} possible tuples, {counted(release.manifest.rows, 'row')}, "
        "records and noise mixed"
    )
    if release.manifest.simulated:
        say("simulated: made from a chosen seed, it protects nobody")
    say(f"select count(*) from {release.name} where …;   \\d attributes   .help   Ctrl-D quits")


def bindings() -> KeyBindings:
    """Enter runs what is complete; Escape closes completions."""
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @keys.add("enter", filter=typing)
    def enter(event: KeyPressEvent) -> None:
        """Run what is complete; else go on with the next line."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state and state.current_completion:
            buffer.complete_state = None
        elif not buffer.text.strip() or complete(buffer.text) or ends_blank(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("c-d", filter=typing)
    def leave(event: KeyPressEvent) -> None:
        """Leave from an empty line, also from one that continues; else delete what follows."""
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and not buffer.document.current_line.strip():
            event.app.exit(exception=EOFError, style="class:exiting")
        else:
            buffer.delete()

    @keys.add("escape", filter=typing & has_completions, eager=True)
    def close(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def ends_blank(text: str) -> bool:
    """Whether an empty line was entered after something."""
    head, newline, tail = text.rpartition("\n")
    return bool(newline) and not tail.strip() and bool(head.strip())


# ---------------------------------------------------------------------- history


class KeptHistory(FileHistory):
    """History in a file; it goes on without it if the disk is full."""

    def store_string(self, string: str) -> None:
        """Append a line to the file, if the disk lets it."""
        try:
            super().store_string(string)
        except OSError:
            return


def history_file() -> Path:
    """The path of the history, in the user's state folder."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        state = system.state_folder(Path.home())
    return state / "voile" / "history"


def kept_history(session: Session) -> History:
    """The user's history file; memory only where it cannot be written."""
    try:
        path = history_file()
        if lies_within(path, session.release.path):
            return InMemoryHistory()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return InMemoryHistory()
    return KeptHistory(path)


# ---------------------------------------------------------------------- Ctrl-C


@contextmanager
def cancellable() -> Iterator[list[int]]:
    """Ctrl-C ends what runs in the block, and nothing else; yields a list of the signals.

    A library that is interrupted may raise an error of its own instead.
    """
    pressed: list[int] = []

    def note(number: int, _: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    except KeyboardInterrupt:
        pressed.append(signal.SIGINT)
    except Exception:
        if not pressed:
            raise
    finally:
        signal.signal(signal.SIGINT, before)


# ---------------------------------------------------------------------- run
# How a session is fed: by commands given, by a pipe, or at a prompt.


def run(
    path: Path,
    commands: Sequence[str] = (),
    *,
    tables: Mapping[str, str] | None = None,
    check: bool = True,
    as_json: bool = False,
) -> int:
    """Answer what is given; the exit code is 1 if anything was refused (0 at a prompt)."""
    session = Session(
        Release.open(path, check=check), mode="json" if as_json else "table", check=check
    )
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


def answer_all(session: Session, given: Iterable[str]) -> int:
    """Run all statements, also after a refusal; 1 if any was refused, else 0."""
    failed = False
    try:
        for statement in given:
            failed = not perform(session, statement) or failed
    except EndOfSession:
        pass
    return int(failed)


def read_statements(lines: Iterable[str]) -> Iterator[str]:
    """Statements as soon as they are complete."""
    held = ""
    for line in lines:
        found, held = split(held + line)
        yield from found
    yield from statements(held)
