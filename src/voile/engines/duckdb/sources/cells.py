"""What the texts of a column mean: numbers, dates or truth values, written in the world's ways.

DuckDB finds the types of plain columns. What it leaves as text is looked at here, a column at a
time: it becomes what all of its texts say where there is one way to read them, and stays text with
a finding where there are two, or where some texts stand for a missing value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from voile.engines.duckdb.sources.common import SOURCE, Connection
from voile.engines.duckdb.sources.common import listed as sql_list
from voile.engines.findings import ColumnFinding
from voile.options.reading import ReadingOptions
from voile.query.quoting import quote_identifier, quote_literal

SURELY_MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "?")
"""Texts that `na` reads as NULL in columns of texts too."""
MISSING = ("na", "n/a", "#n/a", "<na>", "n.a.", "nan", "null", "none", "nil", "?", "-", "--", ".")
"""Texts, in small letters, that `na` reads as NULL in columns of numbers, dates, truth values."""
MAYBE_MISSING = ("None", "none", "-", "--", ".", "N.A.", "n.a.")
"""Texts that may be values of a column of texts: Rh '-', 'none' of several answers."""
SAMPLE = 4096
"""Rows that are looked at first, spread over the table: most columns of texts are plainly that."""
TEXTS, TOGETHER = "voile_texts", 2**21
"""A table of the texts that are looked at, and about how many rows of columns go into it."""
CODES = re.compile(r"[A-Z]{2,3}")
FEWEST_CODES = 8

Meaning = Literal["text", "number", "date", "boolean"]
BESIDE = {"number": "numbers", "date": "dates", "boolean": "truth values"}
"""The meanings of columns that hold more than texts, in words."""


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are written."""

    decimal: str = "."
    thousands: str = ""

    @property
    def pattern(self) -> str:
        """What a number looks like. A zero in front makes a code, not a number."""
        whole = r"0|[1-9]\d*"
        if self.thousands:
            whole += rf"|[1-9]\d{{0,2}}({re.escape(self.thousands)}\d{{3}})+"
        point = re.escape(self.decimal)
        exponent = r"([eE][+-]?\d+)?"
        return rf"[+-]?({whole}|({whole}|){point}\d+|({whole}){point}){exponent}"

    def plain(self, text: str) -> str:
        """The SQL of the same number as DuckDB reads it."""
        if self.thousands:
            text = f"replace({text}, {quote_literal(self.thousands)}, '')"
        if self.decimal != ".":
            text = f"replace({text}, {quote_literal(self.decimal)}, '.')"
        return text

    def words(self) -> str:
        """How numbers are written, for a note."""
        parts = ["decimal commas"] if self.decimal == "," else []
        if self.thousands:
            named = {" ": "a space", "'": "an apostrophe"}.get(self.thousands, repr(self.thousands))
            parts.append(f"{named} between thousands")
        return " and ".join(parts)


PLAIN, COMMA = NumberStyle(), NumberStyle(",")
STYLES = (
    PLAIN, COMMA, NumberStyle(".", ","), NumberStyle(",", "."), NumberStyle(".", " "),
    NumberStyle(",", " "), NumberStyle(".", "'"), NumberStyle(",", "'"),
)  # fmt: skip

YEAR, DAY = r"\d{4}", r"\d{1,2}"
SIGN = r"[-/. ]"
ORDERS = {
    "ymd": (rf"{YEAR}{SIGN}{DAY}{SIGN}{DAY}", "%Y-%m-%d"),
    "dmy": (rf"{DAY}{SIGN}{DAY}{SIGN}{YEAR}", "%d-%m-%Y"),
    "mdy": (rf"{DAY}{SIGN}{DAY}{SIGN}{YEAR}", "%m-%d-%Y"),
    "d month y": (rf"{DAY}{SIGN}[A-Za-z]{{3,9}}{SIGN}{YEAR}", "%d-%b-%Y"),
    "month d y": (rf"[A-Za-z]{{3,9}}{SIGN}{DAY},?{SIGN}{YEAR}", "%b-%d-%Y"),
}
SHORT_YEARS = {
    "ymd": (rf"{DAY}{SIGN}{DAY}{SIGN}{DAY}", "%y-%m-%d"),
    "dmy": (rf"{DAY}{SIGN}{DAY}{SIGN}{DAY}", "%d-%m-%y"),
    "mdy": (rf"{DAY}{SIGN}{DAY}{SIGN}{DAY}", "%m-%d-%y"),
}
"""Years of two digits are read only where the order is given."""
TIME_OF_DAY = r"[T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
IN_WORDS = {"dmy": "day, month, year", "mdy": "month, day, year", "ymd": "year, month, day"}


@dataclass(frozen=True)
class ColumnTexts:
    """What a column of texts holds, counted in rows."""

    name: str
    filled: int
    missing: Mapping[str, int]
    """Texts of MISSING as the column writes them."""
    styles: Mapping[NumberStyle, int]
    orders: Mapping[str, int]
    short_orders: Mapping[str, int]
    truths: int
    timed: int
    """Dates with a time of day."""
    odd_decimals: int
    """Rows with one comma that has not three digits behind it: no thousands."""
    grouped: int
    """Rows with a comma or point between groups of three digits."""
    ungrouped: int
    """Whole numbers of four digits and more without anything between them."""

    @property
    def others(self) -> int:
        """Rows with something else than a text of MISSING."""
        return self.filled - sum(self.missing.values())


@dataclass(frozen=True)
class ColumnMeaning:
    """How a column is read: the kind of its values, and the SQL that makes them."""

    name: str
    meaning: Meaning = "text"
    style: NumberStyle = PLAIN
    order: str = ""
    doubts: tuple[tuple[str, Any], ...] = ()
    """Options that would settle how the column is read."""


# ---------------------------------------------------------------------- looking


def look(con: Connection, names: Sequence[str]) -> dict[str, ColumnTexts]:
    """The columns among these that hold numbers, dates or truth values in most rows."""
    (rows,) = con.execute(f"SELECT count(*) FROM {SOURCE}").fetchall()[0]
    stride = max(rows // SAMPLE, 1)
    spread = f"(SELECT * FROM {SOURCE} WHERE rowid % {stride} = 0)"
    sampled = count(con, names, spread, SAMPLE)
    likely = {text.name: text for text in sampled if is_likely(text)}
    if stride == 1:
        return likely
    return {text.name: text for text in count(con, list(likely), SOURCE, rows)}


def is_likely(found: ColumnTexts) -> bool:
    """Whether most of a column's texts are numbers, dates or truth values, or missing."""
    read = max([*found.styles.values(), *found.orders.values(), *found.short_orders.values(),
                found.truths])  # fmt: skip
    return 2 * (read + found.filled - found.others) > found.filled > 0


def count(con: Connection, names: Sequence[str], rows: str, length: int) -> list[ColumnTexts]:
    """What about so many rows of some columns hold.

    Many columns are counted by one query: it takes longer to prepare its patterns than to apply
    them. Those of long tables one by one, since the texts of a column are held in memory.
    """
    together = max(1, TOGETHER // max(1, length))
    some = (names[start : start + together] for start in range(0, len(names), together))
    return [found for part in some for found in count_together(con, part, rows)]


def count_together(con: Connection, names: Sequence[str], rows: str) -> list[ColumnTexts]:
    """What the rows of some columns hold."""
    columns = ", ".join(
        f"trim({quote_identifier(name)}) AS c{place}" for place, name in enumerate(names)
    )
    places = ", ".join(f"c{place}" for place in range(len(names)))
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE {TEXTS} AS SELECT c, t, count(*) AS n "
        f"FROM (SELECT {columns} FROM {rows}) UNPIVOT (t FOR c IN ({places})) "
        "WHERE t <> '' GROUP BY ALL"
    )
    filled = con.execute(f"SELECT c, sum(n) FROM {TEXTS} GROUP BY c").fetchall()
    sums = ", ".join(f"coalesce(sum(n) FILTER ({each}), 0)" for each in CONDITIONS)
    dashed = f"CASE WHEN {matches(ANY_DATE)} THEN {plain_day('t')} END"
    counted = con.execute(
        f"SELECT c, {sums} FROM (SELECT c, t, n, {dashed} AS day FROM {TEXTS} "
        f"WHERE {matches(ANY_BEGINNING)}) GROUP BY c"
    ).fetchall()
    gone = f"lower(t) IN ({', '.join(map(quote_literal, MISSING))})"
    texts = con.execute(f"SELECT c, t, n FROM {TEXTS} WHERE {gone} ORDER BY n DESC, t").fetchall()
    con.execute(f"DROP TABLE {TEXTS}")
    filled_at = {column: int(n) for column, n in filled}
    counted_at = {column: [int(each) for each in found] for column, *found in counted}
    nothing = [0] * len(CONDITIONS)
    return [
        column_texts(
            name,
            filled_at.get(f"c{place}", 0),
            {str(text): int(n) for column, text, n in texts if column == f"c{place}"},
            counted_at.get(f"c{place}", nothing),
        )
        for place, name in enumerate(names)
    ]


def column_texts(
    name: str, filled: int, missing: Mapping[str, int], found: Sequence[int]
) -> ColumnTexts:
    """All rows of a column, and those of each of CONDITIONS."""
    styles, rest = found[: len(STYLES)], found[len(STYLES) :]
    orders, rest = rest[: len(ORDERS)], rest[len(ORDERS) :]
    short, rest = rest[: len(SHORT_YEARS)], rest[len(SHORT_YEARS) :]
    return ColumnTexts(
        name,
        filled,
        missing,
        dict(zip(STYLES, styles, strict=True)),
        dict(zip(ORDERS, orders, strict=True)),
        dict(zip(SHORT_YEARS, short, strict=True)),
        *rest,
    )


def matches(pattern: str) -> str:
    """True of a text `t` that is all of a pattern."""
    return f"regexp_full_match(t, {quote_literal(pattern)})"


def is_date(order: tuple[str, str]) -> str:
    """True of a text `t` that is a date in an order; `day` is it with dashes, without a time."""
    pattern, form = order
    return f"day IS NOT NULL AND {matches(f'{pattern}({TIME_OF_DAY})?')} AND " + (
        f"{parsed_day('day', form)} IS NOT NULL"
    )


def day(text: str, form: str) -> str:
    """The SQL of the day that a text writes in a form, without its time of day."""
    return parsed_day(plain_day(text), form)


def plain_day(text: str) -> str:
    """The SQL of a date with dashes between its parts, without its time of day."""
    date = f"regexp_replace({text}, {quote_literal(f'{TIME_OF_DAY}$')}, '')"
    return f"regexp_replace({date}, {quote_literal(f',?{SIGN}')}, '-', 'g')"


def parsed_day(plain: str, form: str) -> str:
    """The SQL of the day that such a date stands for; NULL where there is none."""
    forms = [form, form.replace("%b", "%B")] if "%b" in form else [form]
    return f"try_strptime({plain}, {sql_list(forms)})"


ANY_DATE = rf"[0-9A-Za-z]{{1,9}}{SIGN}[0-9A-Za-z]{{1,9}},?{SIGN}\d.*"
"""What every date looks like."""
ANY_BEGINNING = r"[-+.,]{0,2}\d.*|[A-Za-z]{3,9}[-/. ]\d.*|(?i:true|false)"
"""How a text begins for which any of the conditions may hold: most free texts do not."""
CONDITIONS = (
    *[matches(style.pattern) for style in STYLES],
    *[is_date(each) for each in ORDERS.values()],
    *[is_date(each) for each in SHORT_YEARS.values()],
    "lower(t) IN ('true', 'false')",
    matches(f".*{TIME_OF_DAY}"),
    matches(r"[+-]?\d+,(\d{1,2}|\d{4,})"),
    matches(r"[+-]?\d{1,3}([,. ']\d{3})+([,.]\d+)?"),
    matches(r"[+-]?\d{4,}([,.]\d+)?"),
)
"""What is asked of every text `t`, in the order of the fields of ColumnTexts."""


# ---------------------------------------------------------------------- deciding


def decide(
    found: Sequence[ColumnTexts], options: ReadingOptions, separator: str
) -> list[ColumnMeaning]:
    """How each column is read; what one column leaves open, the others may settle."""
    single = [decide_alone(each, options, separator) for each in found]
    orders = {each.order for each in single if each.order in ("dmy", "mdy")}
    commas = any(each.style.decimal == "," for each in single)
    return [
        settled_by_others(each, texts, orders, commas=commas)
        for each, texts in zip(single, found, strict=True)
    ]


def settled_by_others(
    one: ColumnMeaning, found: ColumnTexts, orders: set[str], *, commas: bool
) -> ColumnMeaning:
    """A column that can be read in two ways, read as the file's other columns are."""
    options = dict(one.doubts)
    if "dates" in options and len(orders) == 1:
        return replace(one, meaning="date", order=next(iter(orders)), doubts=())
    if "decimal" in options and commas:
        return replace(one, meaning="number", style=COMMA, doubts=())
    # Where 1,5 is one and a half, 1.234 is above a thousand.
    pointed = NumberStyle(",", ".")
    if commas and one.style == PLAIN and found.styles[pointed] == found.others > 0:
        return replace(one, meaning="number", style=pointed)
    return one


def decide_alone(found: ColumnTexts, options: ReadingOptions, separator: str) -> ColumnMeaning:
    """How a column is read, by what it holds."""
    if not found.others:
        return ColumnMeaning(found.name)
    if found.truths == found.others:
        return ColumnMeaning(found.name, "boolean")
    styles = [style for style, rows in found.styles.items() if rows == found.others]
    if styles or options.decimal or options.thousands:
        return number(found, options, styles, separator)
    return date(found, options)


def number(
    found: ColumnTexts, options: ReadingOptions, styles: Sequence[NumberStyle], separator: str
) -> ColumnMeaning:
    """A column of which all texts are numbers in some style."""
    if options.decimal or options.thousands:
        decimal = options.decimal or ("," if options.thousands == "." else ".")
        chosen = NumberStyle(decimal, options.thousands or "")
        if found.styles.get(chosen) == found.others:
            return ColumnMeaning(found.name, "number", chosen)
        return date(found, options)
    if PLAIN in styles:
        return ColumnMeaning(found.name, "number", PLAIN)
    dotted = NumberStyle(".", ",")
    if COMMA in styles and dotted in styles:  # 1,234: a thousand, or one and a bit
        if not found.ungrouped and found.grouped < found.others and separator == ",":
            return ColumnMeaning(found.name, "number", dotted)
        return ColumnMeaning(found.name, doubts=(("decimal", ","), ("thousands", ",")))
    return ColumnMeaning(found.name, "number", styles[0])


def date(found: ColumnTexts, options: ReadingOptions) -> ColumnMeaning:
    """A column of which all texts are dates in some order."""
    if options.dates == "text":
        return ColumnMeaning(found.name)
    orders = [order for order, rows in found.orders.items() if rows == found.others]
    if options.dates in orders:
        return ColumnMeaning(found.name, "date", order=str(options.dates))
    if options.dates and found.short_orders[options.dates] == found.others:
        return ColumnMeaning(found.name, "date", order=f"short {options.dates}")
    if len(orders) == 1:
        return ColumnMeaning(found.name, "date", order=orders[0])
    short = [order for order, rows in found.short_orders.items() if rows == found.others]
    if orders or short:
        likely = [order for order in ("dmy", "mdy", "ymd") if order in (orders or short)]
        return ColumnMeaning(found.name, doubts=tuple(("dates", order) for order in likely))
    return ColumnMeaning(found.name)


# ---------------------------------------------------------------------- reading


def value_of(one: ColumnMeaning, column: str, kind: str) -> str:
    """The SQL of a column's values; what is missing becomes NULL."""
    text = f"trim({column})"
    match one.meaning:
        case "number":
            return f"TRY_CAST({one.style.plain(text)} AS {kind})"
        case "boolean":
            return f"TRY_CAST({text} AS BOOLEAN)"
        case "date":
            short = one.order.startswith("short ")
            forms = SHORT_YEARS if short else ORDERS
            return f"CAST({day(text, forms[one.order.removeprefix('short ')][1])} AS {kind})"
        case "text":
            return column


def type_of(con: Connection, one: ColumnMeaning, found: ColumnTexts) -> str:
    """DuckDB's type for a column's values."""
    if one.meaning != "number":
        return "BOOLEAN" if one.meaning == "boolean" else "TIMESTAMP" if found.timed else "DATE"
    text = one.style.plain(f"trim({quote_identifier(one.name)})")
    # A cast to BIGINT would round 1.5; numbers beyond 64 bits are not whole numbers of ours.
    broken = con.execute(
        f"SELECT count(*) FROM {SOURCE} WHERE {text} ~ '.*[0-9][.eE].*' OR ({text} ~ '[+-]?[0-9]+' "
        f"AND TRY_CAST({text} AS BIGINT) IS NULL)"
    ).fetchall()[0][0]
    return "DOUBLE" if broken else "BIGINT"


def make_whole(con: Connection, names: Sequence[str]) -> None:
    """Make integers of columns of whole numbers: pandas writes 555.0 where others are missing."""
    for name in names:
        x = quote_identifier(name)
        whole = f"isnan({x}) OR ({x} = floor({x}) AND abs({x}) < {2**53})"
        (is_whole,) = con.execute(
            f"SELECT coalesce(bool_and({whole}), false) FROM {SOURCE} WHERE {x} IS NOT NULL"
        ).fetchall()[0]
        if is_whole:
            number = f"CASE WHEN isnan({x}) THEN NULL ELSE CAST({x} AS BIGINT) END"
            con.execute(f"ALTER TABLE {SOURCE} ALTER {x} TYPE BIGINT USING {number}")


# ---------------------------------------------------------------------- what is left to decide


def finding_of(con: Connection, found: ColumnTexts, one: ColumnMeaning) -> ColumnFinding | None:
    """What a person should decide about a column before it is read as something else than text."""
    if one.doubts:
        what: Literal["dates", "numbers"] = "dates" if one.doubts[0][0] == "dates" else "numbers"
        as_text = ("dates", "text") if what == "dates" else ("decimal", ".")
        texts = frequent(con, one.name, "TRUE")
        return ColumnFinding(one.name, what, texts, (*one.doubts, as_text), stops=True)
    if one.meaning != "text" and found.missing:
        beside = BESIDE[one.meaning]
        settled = (("na", True),)
        return ColumnFinding(one.name, "missing", found.missing, settled, beside, stops=True)
    return None


def frequent(con: Connection, name: str, condition: str, most: int = 10) -> dict[str, int]:
    """Texts of a column for which a condition on `t` holds, the most frequent first."""
    column = f"trim({quote_identifier(name)})"
    rows = con.execute(
        f"SELECT t, count(*) FROM (SELECT {column} AS t FROM {SOURCE} WHERE {column} <> '') "
        f"WHERE {condition} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {most}"
    ).fetchall()
    return {str(text): int(count) for text, count in rows}


def missing_texts(
    con: Connection,
    names: Sequence[str],
    options: ReadingOptions,
    findings: list[ColumnFinding],
) -> None:
    """Texts of columns of texts that stand for NULL: read so with `na`, else a finding."""
    if not names:
        return
    texts = ", ".join(map(quote_literal, (*SURELY_MISSING, *MAYBE_MISSING)))
    counts = ", ".join(
        f"count(*) FILTER (trim({quote_identifier(name)}) IN ({texts}))" for name in names
    )
    held = con.execute(f"SELECT {counts} FROM {SOURCE}").fetchall()[0]
    for name in (name for name, rows in zip(names, held, strict=True) if rows):
        found = frequent(con, name, f"t IN ({texts})")
        kept = {"NA"} if has_codes(con, name) else set()
        surely = {t: n for t, n in found.items() if t in SURELY_MISSING and t not in kept}
        maybe = {text: n for text, n in found.items() if text not in surely}
        if surely and options.na:
            column = quote_identifier(name)
            gone = f"trim({column}) IN ({', '.join(map(quote_literal, surely))})"
            con.execute(
                f"ALTER TABLE {SOURCE} ALTER {column} TYPE VARCHAR USING "
                f"CASE WHEN {gone} THEN NULL ELSE {column} END"
            )
        elif surely and options.na is None:
            findings.append(ColumnFinding(name, "missing", surely, (("na", True),)))
        if maybe:
            flags = tuple(("null_text", text) for text in maybe)
            findings.append(ColumnFinding(name, "maybe-missing", maybe, flags))


def has_codes(con: Connection, name: str) -> bool:
    """Whether a column holds codes of capital letters: NA among them may be Namibia."""
    others = frequent(con, name, f"t NOT IN ({', '.join(map(quote_literal, SURELY_MISSING))})", 50)
    return len(others) >= FEWEST_CODES and all(CODES.fullmatch(text) for text in others)


def mixed(con: Connection, columns: Sequence[ColumnTexts]) -> list[ColumnFinding]:
    """Columns of numbers with a few other texts, such as 'refused' or '90+'."""
    findings = []
    for found in columns:
        numbers = found.styles[PLAIN]
        if found.others > numbers >= 0.8 * found.others:
            gone = ", ".join(map(quote_literal, MISSING))
            other = f"NOT {matches(PLAIN.pattern)} AND lower(t) NOT IN ({gone})"
            texts = frequent(con, found.name, other, FEWEST_CODES)
            if len(texts) < FEWEST_CODES:
                flags = tuple(("null_text", text) for text in texts)
                findings.append(ColumnFinding(found.name, "mixed", texts, flags, "numbers"))
    return findings


SENTINELS = tuple(-int("9" * digits) for digits in range(1, 7))
"""Numbers that surveys and instruments write for 'no answer'."""
LARGE_SENTINELS = (999, 9999, 99_999, 999_999)
FAR, FEWEST = 5, 3
"""How many times the next number a large sentinel is, and in how many rows it is found."""


def sentinels(
    con: Connection, names: Sequence[str], with_points: Sequence[str]
) -> list[ColumnFinding]:
    """Numbers that plainly mean 'missing': -999 where all others are positive, 9999 far above."""
    found = {name: one for name in names if (one := sentinel_of(con, name)) is not None}
    findings = []
    for name, (value, rows) in found.items():
        others = [n for n in names if found.get(n, (None, 0))[0] != value and holds(con, n, value)]
        # The option is for all columns: where another has the number, nothing can be offered.
        texts = [] if others else [str(value), f"{value}.0"][: 1 + (name in with_points)]
        flags = tuple(("null_text", text) for text in texts)
        findings.append(ColumnFinding(name, "sentinel", {str(value): rows}, flags, "numbers"))
    return findings


def sentinel_of(con: Connection, name: str) -> tuple[int, int] | None:
    """The number of a column that lies apart from all others, and its rows."""
    x = quote_identifier(name)
    low, high = con.execute(f"SELECT min({x}), max({x}) FROM {SOURCE}").fetchall()[0]
    for value in (low, high):
        if value not in SENTINELS + LARGE_SENTINELS:
            continue
        rows, least, most = con.execute(
            f"SELECT count(*) FILTER ({x} = {value}), min({x}) FILTER ({x} <> {value}), "
            f"max({x}) FILTER ({x} <> {value}) FROM {SOURCE}"
        ).fetchall()[0]
        if least is None or least < 0 or rows < (2 if value == SENTINELS[0] else 1):
            continue
        if value < 0 or (rows >= FEWEST and FAR * most < value):
            return int(value), int(rows)
    return None


def holds(con: Connection, name: str, value: int) -> bool:
    """Whether a column has a number."""
    found = f"SELECT count(*) FROM {SOURCE} WHERE {quote_identifier(name)} = {value}"
    return bool(con.execute(found).fetchall()[0][0])
