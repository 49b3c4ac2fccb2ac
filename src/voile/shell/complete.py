"""What could be typed next: words of SQL, attributes, their values, tables, commands."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from voile.schema import Attribute
from voile.schema.attribute import Value
from voile.shell.commands import ALIASES, COMMANDS
from voile.shell.session import Session
from voile.shell.statements import is_command, split

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
        _, text = split(document.text_before_cursor)
        if is_command(text):
            return self._of_command(text, event)
        return self._of_sql(text, asked=event.completion_requested)

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
            yield from self._of_sql(rest, asked=event.completion_requested)
        elif command.argument in ("file", "with"):
            path = rest.rpartition("=")[2] if command.argument == "with" else rest
            if command.argument == "file" or "=" in rest:
                yield from self._paths.get_completions(Document(path), event)

    # ------------------------------------------------------------------ SQL

    def _of_sql(self, text: str, *, asked: bool) -> Iterator[Completion]:
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
        yield from self._words(text, asked=asked)

    def _attribute(self, compared: re.Match[str]) -> Attribute | None:
        spelt = (compared["nameq"] or "").replace('""', '"') or compared["name"]
        for attribute in self.session.release.schema:
            if attribute.name.casefold() == spelt.casefold():
                return attribute
        return None

    def _words(self, text: str, *, asked: bool) -> Iterator[Completion]:
        if text.count('"') % 2:  # within a quoted name
            typed = text.rpartition('"')[2]
            names = [name for name in self.session.release.schema.names if starts(name, typed)]
            yield from (Completion(f'{name}"', -len(typed), display=name) for name in names)
            return
        found = re.search(r"\w*\Z", text)
        typed = found[0] if found else ""
        if not typed and not asked:
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
    for word in words:
        if starts(word.lstrip('"'), typed):
            yield Completion(word, back, display_meta=meta)


def starts(word: str, typed: str) -> bool:
    return word.casefold().startswith(typed.casefold())


def quoted_name(name: str) -> str:
    if PLAIN.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


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
        literal = text.replace("'", "''")
        closed = f"{literal}'" if quote else f"'{literal}'" if is_text else literal
        yield Completion(closed, -len(typed), display=text, display_meta=attribute.name)


def text_of(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
