"""The text of a query: parsed by sqlglot, and refusals that point into it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import TokenType

from voile.errors import QueryError, UsageError

ASK = "ask: select count(*) from name where …"
LONGEST = 100_000
"""Characters of a query; the parser's time grows with them."""


QUESTIONS = ("SELECT", "FROM", "WITH", "(")
INNER_WORDS = ("<class", "TokenType", "tokenizing", "Required", "Invalid expression")
"""Of messages that speak of the parser rather than of the SQL."""
QUOTED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$\$.*?\$\$|(?P<open>'|"|`|/\*|\$\$)""",
    re.DOTALL,
)
"""Comments, texts and names; `open` is the beginning of one that does not end."""


class UnwrittenError(ValueError):
    """A tree that has no form in SQL, as of a function without its arguments."""


def extended_parser(dialect: Any, **options: Any) -> Any:
    """The parser of a dialect that extends it, or what to do where parsers are compiled.

    No base class of dialects: sqlglot takes the tokenizer and the rest from the first base alone.
    """
    try:
        return dialect.parser_class(dialect=dialect, **options)
    except TypeError as error:
        if "compiled" not in str(error):
            raise
        raise UsageError(
            "sqlglot's parser is compiled here (sqlglotc), and cannot be extended",
            hint="pip uninstall sqlglotc",
        ) from None


class Dialect(DuckDB):
    """DuckDB's SQL, XOR between conditions, and names in backticks."""

    parser = extended_parser

    class Tokenizer(DuckDB.Tokenizer):
        """Knows XOR as a keyword, and backticks, which other databases quote names with."""

        IDENTIFIERS = [*DuckDB.Tokenizer.IDENTIFIERS, "`"]  # noqa: RUF012
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, "XOR": TokenType.XOR}  # noqa: RUF012

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        """Marks where operands, tables and joins begin; names and values have marks already."""

        CONJUNCTION = {**DuckDB.Parser.CONJUNCTION, TokenType.XOR: exp.Xor}  # noqa: RUF012

        def _parse_unary(self) -> Any:
            return self._marked(self._curr, super()._parse_unary())

        def _parse_placeholder(self, *args: Any, **kwargs: Any) -> Any:
            return self._marked(self._curr, super()._parse_placeholder(*args, **kwargs))

        def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
            return self._marked(self._curr, super()._parse_table(*args, **kwargs))

        def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
            return self._marked(self._curr, super()._parse_join(*args, **kwargs))

        def _parse_table_sample(self, *args: Any, **kwargs: Any) -> Any:
            return self._marked(self._curr, super()._parse_table_sample(*args, **kwargs))

        def _marked(self, token: Any, node: Any) -> Any:
            if token and isinstance(node, exp.Expr):
                node.meta.setdefault("start", token.start)
            return node

        def _warn_unsupported(self) -> None:
            """A statement that is not understood is refused; nothing is to be logged."""


def written(node: exp.Expr) -> str:
    """A tree in the dialect of questions, where it has a form that means the same."""
    try:
        return node.sql(DuckDB, comments=False, unsupported_level=ErrorLevel.RAISE)
    except Exception as error:  # a tree that is not whole, as of date(), breaks it in many ways
        raise UnwrittenError(node.key) from error


def read_back(sql: str) -> exp.Expr:
    """The tree of one expression that was written to a file."""
    return sqlglot.parse_one(sql, dialect=Dialect)


def single_select(sql: str) -> exp.Select:
    """The one SELECT that the text holds."""
    trees = syntax_trees(sql)
    if len(trees) != 1:
        raise QueryError(
            f"{len(trees)} statements were given" if trees else "the SQL text is empty",
            hint="ask one query: select count(*) from name where …",
        )
    tree = trees[0]
    if not isinstance(tree, exp.Select):
        what = sql.split(maxsplit=1)[0].upper() if sql.split() else "this"
        if isinstance(tree, exp.SetOperation):
            raise refusal(sql, f"{tree.key.upper()} is not answered from a release",
                          first_token(sql, tree.key), "ask one query at a time")  # fmt: skip
        raise not_a_question(sql, what)
    return tree


def not_a_question(sql: str, what: str) -> QueryError:
    """The error for a statement that is no query."""
    start = len(sql) - len(sql.lstrip())
    return refusal(sql, f"{what} is not a question about the data", start, ASK)


def _complaint(sql: str, error: Exception, details: dict[str, Any]) -> tuple[str, int | None]:
    """What the parser says, and where."""
    opened = next((found.start() for found in QUOTED.finditer(sql) if found["open"]), None)
    if opened is not None:
        return "not SQL: what begins here does not end", opened
    what = details.get("description") or str(error).splitlines()[0]
    if any(word in what for word in INNER_WORDS) or not what.isprintable():
        what = "something is missing or misplaced"
    return f"not SQL: {what}", _error_start(sql, details)


TOP = re.compile(r"\s*select\s+top\s*\(?\s*(?P<rows>\d+)", re.IGNORECASE)
"""How another dialect says LIMIT."""


def check_text(sql: str) -> None:
    """Refuse what is no text of a bearable length."""
    if not isinstance(sql, str):
        raise QueryError(f"a query is SQL text, not {type(sql).__name__}", hint=ASK)
    if "\0" in sql:
        raise QueryError("the SQL text has a NUL character", hint="leave it out")
    if len(sql) > LONGEST:
        raise QueryError(
            f"the SQL text has {len(sql):,} characters, more than {LONGEST:,}",
            hint="put long lists into a table of your own, and write IN (SELECT …)",
        )


def syntax_trees(sql: str) -> list[exp.Expr]:
    """The statements that the text holds."""
    check_text(sql)
    try:
        found = sqlglot.parse(sql, dialect=Dialect)
        return [tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        first = next(iter(sql.split(maxsplit=1)), "").upper()
        if first.isalpha() and first not in QUESTIONS:
            raise not_a_question(sql, first) from None
        hint = (
            "a word here or before it may be misspelt; names with spaces, and those that are words "
            'of SQL, go in double quotes: "union"'
        )
        if top := TOP.match(sql):
            hint = f"leave out TOP, and write LIMIT {top['rows']} at the end"
        raise refusal(sql, *_complaint(sql, error, details[0]), hint) from None
    except RecursionError:
        raise too_deep() from None


def too_deep() -> QueryError:
    """The error for SQL that Python's stack cannot hold."""
    return QueryError("the SQL is nested too deeply", hint="write a shorter condition")


def _error_start(sql: str, details: dict[str, Any]) -> int | None:
    """Offset of the token that the parser tripped over; it reports line and last column."""
    line, column = details.get("line"), details.get("col")
    if not line or not column:
        return None
    before = "".join(text + "\n" for text in sql.split("\n")[: line - 1])
    return max(0, len(before) + int(column) - max(1, len(details.get("highlight") or "")))


def place(sql: str, nodes: Iterable[exp.Expr | None], *words: str) -> int:
    """Where in the text the nodes begin: by the parser's marks, else at the first of the words."""
    found = [node for node in nodes if node is not None]
    starts = [part.meta["start"] for node in found for part in node.walk() if "start" in part.meta]
    if not starts:
        words = words or tuple(key for node in found for key in _names(node))
        starts = [start for word in words if (start := first_token(sql, word)) is not None]
    return min(starts, default=0)


def _names(node: exp.Expr) -> list[str]:
    """How a node may be called in the text."""
    names = [node.key, *(getattr(type(node), "_sql_names", None) or [])]
    return [*names, sql_of(node).split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0]]


def last_before(sql: str, word: str, end: int) -> int:
    """Where a word last stands before a place, or that place."""
    before = [t for t in tokens(sql) if t.start < end]
    # Some tokens are of two words, as in GROUPING SETS.
    return max(
        (t.start for t in before if t.text.upper().split()[:1] == [word.upper()]), default=end
    )


def first_token(sql: str, word: str) -> int | None:
    """Where a word first stands as a token of its own."""
    return next((t.start for t in tokens(sql) if t.text.upper() == word.upper()), None)


def tokens(sql: str) -> list[Any]:
    """The tokens of SQL; none where it cannot be cut into tokens."""
    try:
        return list(Dialect().tokenize(sql))
    except SqlglotError:
        return []


def refusal(sql: str, message: str, start: int | None = None, hint: str = "") -> QueryError:
    """An error that shows the line and puts a caret under the place."""
    if start is None or not sql:
        return QueryError(message, hint=hint)
    start = min(start, len(sql))
    line = sql.count("\n", 0, start)
    column = start - (sql.rfind("\n", 0, start) + 1)
    text = sql.split("\n")[line].replace("\t", " ")
    shown = text if len(text) <= 200 else text[max(0, column - 60) : column + 60]
    caret = column if len(text) <= 200 else min(column, 60)
    return QueryError(
        f"{message} (line {line + 1}, column {column + 1})\n    {shown}\n    {' ' * caret}^",
        hint=hint,
        start=start,
    )


def sql_of(node: exp.Expr) -> str:
    """SQL of a node for people to read."""
    try:
        return node.sql(DuckDB, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # see written
        return node.key.upper()


def short(node: exp.Expr) -> str:
    """SQL of a node, cut to a length that fits a message."""
    return shortened(sql_of(node))


def shortened(text: str) -> str:
    """A text cut to a length that fits a message."""
    return text if len(text) <= 40 else text[:37] + "…"
