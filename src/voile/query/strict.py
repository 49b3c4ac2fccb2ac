"""What the parser lets pass and SQL does not: it is made to read many dialects, not to refuse.

A text that is passed over in part would be answered as another question.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from voile.errors import QueryError
from voile.query.text import ASK, refusal, tokens

RESERVED = frozenset(
    """all analyse analyze and any array as asc asymmetric both case cast check collate column
    constraint create default deferrable desc describe distinct do else end except false fetch for
    foreign from group having in initially intersect into lambda lateral leading limit not null
    offset on only or order pivot placing primary qualify references returning select show some
    summarize symmetric table then to trailing true union unique unpivot using variadic when where
    window with""".split()  # noqa: SIM905
)
"""Words of SQL that are names only in double quotes."""
CLAUSES = {
    TokenType.WHERE: 1, TokenType.GROUP_BY: 2, TokenType.HAVING: 3, TokenType.ORDER_BY: 4,
    TokenType.LIMIT: 5, TokenType.OFFSET: 5,
}  # fmt: skip
"""In this order."""
BEGINNINGS = (
    TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, TokenType.GROUP_BY, TokenType.ORDER_BY,
)  # fmt: skip
SIGNS = (TokenType.PLUS, TokenType.DASH)


def check(sql: str, tree: exp.Select) -> None:
    """Refuse what is not SQL though it was parsed."""
    read = tokens(sql)
    problem = (
        _unbalanced(read)
        or _blank(read)
        or _stray_star(read)
        or _misplaced(read)
        or _betweens(read, tree)
    )
    if problem:
        message, start = problem
        raise refusal(sql, f"not SQL: {message}", start, ASK)
    for name in tree.find_all(exp.Identifier):
        if not name.quoted and name.name.lower() in RESERVED and "start" in name.meta:
            raise _reserved(sql, name)


def _reserved(sql: str, name: exp.Identifier) -> QueryError:
    return refusal(sql, f"{name.name} is a word of SQL, and stands where a name is due",
                   name.meta["start"], f'if it is a name, write "{name.name}"')  # fmt: skip


def _unbalanced(read: list[Any]) -> tuple[str, int] | None:
    """A parenthesis without its partner."""
    opened: list[Any] = []
    for token in read:
        if token.token_type == TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type == TokenType.R_PAREN:
            if not opened:
                return "this parenthesis closes nothing", token.start
            opened.pop()
    return ("this parenthesis is not closed", opened[-1].start) if opened else None


def _blank(read: list[Any]) -> tuple[str, int] | None:
    """A word or a sign that needs something beside it, and has nothing."""
    for before, token in pairwise(read):
        left, right = before.token_type, token.token_type
        if right == TokenType.COMMA and left in BEGINNINGS:
            return "nothing stands before this comma", token.start
        if left in SIGNS and right in (TokenType.COMMA, TokenType.R_PAREN):
            return f"nothing stands after {before.text}", before.start
        if left == right == TokenType.STRING:
            return "two texts stand side by side: is a comma missing?", token.start
    if read and read[-1].token_type in (*CLAUSES, TokenType.COMMA):
        return f"nothing stands after {read[-1].text}", read[-1].start
    return None


def _stray_star(read: list[Any]) -> tuple[str, int] | None:
    """A star that neither multiplies nor stands for all columns: the parser drops it."""
    for before, token, after in zip(read, read[1:], [*read[2:], None], strict=False):
        if token.token_type != TokenType.STAR or before.token_type in (
            TokenType.L_PAREN, TokenType.COMMA, TokenType.SELECT, TokenType.DOT
        ):  # fmt: skip
            continue
        if after is None or after.token_type in (*CLAUSES, TokenType.ON, TokenType.R_PAREN):
            return "this star has nothing to multiply", token.start
    return None


def _misplaced(read: list[Any]) -> tuple[str, int] | None:
    """A clause after one that it must precede."""
    last = [0]
    for token in read:
        if token.token_type == TokenType.L_PAREN:
            last.append(0)
        elif token.token_type == TokenType.R_PAREN:
            last.pop()
        elif rank := CLAUSES.get(token.token_type):
            if rank < last[-1]:
                return f"{token.text.upper()} stands too late", token.start
            last[-1] = rank
    return None


def _betweens(read: list[Any], tree: exp.Select) -> tuple[str, int] | None:
    """BETWEEN without its AND."""
    needed = sum(isinstance(node, exp.And | exp.Between) for node in tree.walk())
    given = sum(token.token_type == TokenType.AND for token in read)
    if given >= needed:
        return None
    return next(
        (("BETWEEN needs AND", t.start) for t in read if t.token_type == TokenType.BETWEEN), None
    )
