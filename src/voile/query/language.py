"""What a query may say: the parts of SQL that are functions of one row, and what to say of others.

An allow-list: what is not on it is refused. Everything on it gives the same value for the same
row, whenever and wherever it is computed, and touches nothing but the row.
"""

from __future__ import annotations

import difflib
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from voile.errors import QueryError, spelled
from voile.query.text import ASK, refusal, tokens

BOOLEAN = (exp.And, exp.Or, exp.Xor, exp.Not, exp.Paren, exp.Boolean)
COMPARISON = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike,
    exp.SimilarTo, exp.Glob, exp.StartsWith, exp.EndsWith, exp.Contains, exp.Escape,
)  # fmt: skip
ARITHMETIC = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Pow, exp.Abs, exp.Ceil,
    exp.Floor, exp.Round, exp.Trunc, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Sign,
    exp.Greatest, exp.Least, exp.Pi, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan,
    exp.Atan2, exp.Degrees, exp.Radians, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor,
    exp.WidthBucket, exp.IsInf, exp.IsNan,
)  # fmt: skip
TEXT = (
    exp.Lower, exp.Upper, exp.Initcap, exp.Length, exp.Substring, exp.Trim, exp.Concat,
    exp.ConcatWs, exp.DPipe, exp.Left, exp.Right, exp.StrPosition, exp.Replace, exp.Reverse,
    exp.SplitPart, exp.Translate, exp.RegexpExtract, exp.RegexpReplace, exp.Levenshtein,
    exp.Unicode, exp.Chr, exp.Ascii, exp.Pad, exp.RegexpFullMatch,
)  # fmt: skip
DATES = (
    exp.Year, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfMonth, exp.DayOfYear,
    exp.Week, exp.WeekOfYear, exp.Quarter, exp.Extract, exp.Dayname, exp.Monthname, exp.DateTrunc,
    exp.TimestampTrunc, exp.TimeToStr, exp.LastDay, exp.DateDiff, exp.DateAdd, exp.DateSub,
    exp.Interval, exp.DateFromParts, exp.TsOrDsToDate, exp.Date,
)  # fmt: skip
CHOICE = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast)
LEAVES = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.DataType, exp.Var, exp.Tuple,
    exp.DataTypeParam, exp.IntervalSpan, exp.RawString,
)  # fmt: skip
ALLOWED: tuple[type[exp.Expr], ...] = (
    *BOOLEAN, *COMPARISON, *ARITHMETIC, *TEXT, *DATES, *CHOICE, *LEAVES,
)  # fmt: skip
NAMED = frozenset(
    [
        "date_part", "datepart", "datetrunc", "date_trunc", "dayname", "monthname", "isodow",
        "isoyear", "weekday", "yearweek", "decade", "century", "millennium",
        "era", "prefix", "suffix", "instr", "strpos", "ends_with", "starts_with", "contains",
        "trunc", "log2", "log10", "cbrt", "even", "gcd", "lcm", "reverse",
        "ltrim", "rtrim", "bit_count", "chr", "levenshtein", "jaccard",
        "damerau_levenshtein", "hamming", "julian", "datesub", "date_sub", "isfinite",
        "fdiv", "fmod", "square", "nextafter", "strip_accents",
    ]
)  # fmt: skip
"""Functions of one row that the parser knows by name only."""
FUNCTIONS = sorted(
    {
        name.lower()
        for kind in ALLOWED
        for name in (*(getattr(kind, "_sql_names", None) or ()), kind.key)
    }
    | {"count", "sum", "avg", "median", "variance", "stddev", "corr"}
    | NAMED
)
"""What a misspelt function may have meant."""
PADDING = 1000
"""The longest text that lpad and rpad may make."""

SUBQUERY: tuple[type[exp.Expr], ...] = (
    exp.Select, exp.Subquery, exp.From, exp.Table, exp.TableAlias, exp.Where, exp.Exists,
    exp.Any, exp.All, exp.Star, exp.Alias, exp.Group, exp.Having, exp.Order, exp.Ordered,
    exp.Limit, exp.Distinct, exp.Join, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median,
)  # fmt: skip
"""What else may stand in a subquery over the analyst's own tables."""

TYPES = frozenset(
    [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "UTINYINT", "USMALLINT",
        "UINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "TEXT", "CHAR", "DATE",
        "TIMESTAMP", "TIMESTAMPNTZ", "TIME", "INTERVAL",
    ]
)  # fmt: skip

NOT_OF_ONE_ROW = (exp.AggFunc, exp.Window, exp.WithinGroup, exp.Filter, exp.RowNumber)
NOT_OF_THE_ROW = (
    exp.Rand, exp.Randn, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime,
    exp.CurrentUser, exp.CurrentVersion, exp.Uuid,
)  # fmt: skip
SIMILAR = 0.75
"""How alike a name is to a function's that is named in its place."""
UNSTEADY = frozenset(
    [
        "now", "today", "uuid", "gen_random_uuid", "txid_current", "random", "setseed",
        "nextval", "currval", "age", "get_current_time", "get_current_timestamp",
        "current_setting", "getenv", "current_user", "version",
    ]
)  # fmt: skip

SUBQUERIES = (exp.Subquery, exp.Select, exp.Exists, exp.In, exp.Any, exp.All)
SINGLE_PERSON = (exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin)


ONE_ROW = (
    "an expression may use comparisons, BETWEEN, IN (…), LIKE, IS NULL, AND/OR/XOR/NOT, CASE, "
    "arithmetic, and the text and date functions of one row: see docs/reference/sql.md"
)
REASONS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    (
        (exp.Window, exp.RowNumber),
        "a window looks at more than one row, and the view's rows are not the table's; use "
        "GROUP BY",
    ),
    (
        NOT_OF_ONE_ROW,
        "it looks at more than one row: a condition is about a single row; an aggregate belongs "
        "in SELECT, HAVING or ORDER BY",
    ),
    (
        NOT_OF_THE_ROW,
        "its value is not a function of the row: write the value itself, as in date '2024-12-31'",
    ),
    ((exp.Placeholder, exp.Parameter), "write the value itself into the SQL"),
    ((exp.Star,), "name the columns"),
)


def why_not(node: exp.Expr) -> str:
    """Why a part of SQL cannot stand where one row is looked at, and what would work."""
    if isinstance(node, exp.Anonymous):
        if node.name.lower() in UNSTEADY:
            node = exp.Rand()
        elif near := difflib.get_close_matches(node.name.lower(), FUNCTIONS, 1, SIMILAR):
            return f"did you mean {near[0]}?"
    reason = next((why for kinds, why in REASONS if isinstance(node, kinds)), ONE_ROW)
    if reason is ONE_ROW and isinstance(node, SUBQUERIES):
        return f"a subquery may read only tables of your own: give them with {own_table()}"
    return reason


def own_table(name: str = "name") -> str:
    """How a caller gives a table to look up in."""
    return spelled("tables", {name: "file.csv"}, flag="--with")


def why_no_aggregate(node: exp.Expr) -> str:
    """Why an aggregate cannot be estimated, and what would work."""
    if isinstance(node, exp.Window | exp.RowNumber):
        return "windows look at single rows, and only groups of people are counted; use GROUP BY"
    if isinstance(node, SINGLE_PERSON) or isinstance(node.this, SINGLE_PERSON):
        share = "0.01" if isinstance(node, exp.Min) else "0.99"
        return f"it depends on one person; use quantile_disc(x, {share}), which depends on many"
    if isinstance(node, exp.ApproxDistinct) or node.find(exp.Distinct):
        return "counts of distinct values are not sums over rows; GROUP BY the values instead"
    if isinstance(node, exp.Mode):
        return "GROUP BY the value, ORDER BY count(*) DESC LIMIT 1"
    return (
        "estimated are count, sum, avg, variance, stddev, covariance, corr, median and quantiles, "
        "with FILTER (WHERE …), and arithmetic of them"
    )


# ----------------------------------------------------------------------
# what the parser lets pass and SQL does not: it is made to read many dialects, not to refuse
# A text that is passed over in part would be answered as another question.


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
