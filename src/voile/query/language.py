"""What a query may say: the parts of SQL that are functions of one row, and what to say of others.

An allow-list: what is not on it is refused. Everything on it gives the same value for the same
row, whenever and wherever it is computed, and touches nothing but the row.
"""

from __future__ import annotations

from sqlglot import exp

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
UNSTEADY = frozenset(
    [
        "now", "today", "uuid", "gen_random_uuid", "txid_current", "random", "setseed",
        "nextval", "currval", "age", "get_current_time", "get_current_timestamp",
        "current_setting", "getenv", "current_user", "version",
    ]
)  # fmt: skip

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
    (
        (exp.Subquery, exp.Select, exp.Exists, exp.In, exp.Any, exp.All),
        "a subquery may read only tables of your own: give them with --with name=file.csv",
    ),
    ((exp.Placeholder, exp.Parameter), "write the value itself into the SQL"),
    ((exp.Star,), "name the columns"),
)


def why_not(node: exp.Expr) -> str:
    """Why a part of SQL cannot stand where one row is looked at, and what would work."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in UNSTEADY:
        node = exp.Rand()
    return next((why for kinds, why in REASONS if isinstance(node, kinds)), ONE_ROW)


def why_no_aggregate(node: exp.Expr) -> str:
    """Why an aggregate cannot be estimated, and what would work."""
    if isinstance(node, exp.Window | exp.RowNumber):
        return "windows look at single rows, and only many are told about; use GROUP BY"
    if isinstance(node, SINGLE_PERSON) or isinstance(node.this, SINGLE_PERSON):
        share = "0.01" if isinstance(node, exp.Min) else "0.99"
        return (
            f"it depends on one person, and only many are told about; ask quantile_disc(x, {share})"
        )
    if isinstance(node, exp.ApproxDistinct) or node.find(exp.Distinct):
        return "counts of distinct values are not sums over rows; GROUP BY the values instead"
    if isinstance(node, exp.Mode):
        return "GROUP BY the value, ORDER BY count(*) DESC LIMIT 1"
    return (
        "estimated are count, sum, avg, variance, stddev, covariance, corr, median and quantiles, "
        "with FILTER (WHERE …), and arithmetic of them"
    )
