"""Sources that say themselves what their values are: their columns of texts, read as options say.

A column of texts in Parquet, a database or a data frame is one by its owner's word: it is left as
it is until an option says that its texts mean something else.
"""

from __future__ import annotations

from collections.abc import Sequence

from voile.engines.duckdb.sources import cells
from voile.engines.duckdb.sources.common import SOURCE, Connection, clear
from voile.engines.duckdb.sources.text import TextNotes, columns_of, read_as
from voile.engines.findings import ColumnFinding
from voile.errors import UsageError, spelled
from voile.options.reading import ReadingOptions
from voile.query.quoting import quote_identifier, quote_literal

MEANINGS = ("null_text", "na", "decimal", "thousands", "dates")
"""Options that say what texts mean; all others say how a text file is written."""
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
           "UBIGINT", "FLOAT", "DOUBLE")  # fmt: skip
COPY = "voile_copy"
FIRST = 4096
"""Rows that are looked at for texts that stand for NULL."""


def refuse_options(options: ReadingOptions, what: str, also: Sequence[str] = ()) -> None:
    """Refuse options that say how a text file is written, for a source that is none.

    `also` are options that it takes nevertheless.
    """
    for name, value in options.given_keywords().items():
        if name not in (*MEANINGS, *also):
            raise UsageError(
                f"{spelled(name, value)} says how a text file is written, and {what} is none",
                hint=f"leave out {spelled(name, value)}; its columns have names and types already",
            )


def read_texts(con: Connection, options: ReadingOptions, made: TextNotes) -> None:
    """Read the columns of texts of `source` as the options say."""
    if not any(name in MEANINGS for name in options.given_keywords()):
        return
    copy(con)
    remove_texts(con, options.null_text)
    texts = columns_of(con, "VARCHAR")
    found = cells.look(con, texts)
    read = {
        one.name: one
        for one in cells.decide(list(found.values()), options, ",")
        if is_asked_for(one, found[one.name], options)
    }
    for name, one in read.items():
        read_as(con, one, found[name], made)
    if options.na:
        cells.missing_texts(con, [name for name in texts if name not in read], options, [])


def is_asked_for(
    one: cells.ColumnMeaning, found: cells.ColumnTexts, options: ReadingOptions
) -> bool:
    """Whether an option says that these texts are something else."""
    if one.meaning == "text" or (found.missing and not options.na):
        return False
    if one.meaning == "date" and options.dates:
        return True
    if one.meaning == "number" and (options.decimal or options.thousands):
        return True
    return bool(found.missing)


def copy(con: Connection) -> None:
    """Copy `source` into a table that can be changed; texts of a fixed list are plain texts."""
    described = con.execute(f"DESCRIBE {SOURCE}").fetchall()
    plain = [
        f"CAST({quote_identifier(name)} AS VARCHAR) AS {quote_identifier(name)}"
        for name, kind, *_ in described
        if kind.startswith("ENUM")
    ]
    replaced = f" REPLACE ({', '.join(plain)})" if plain else ""
    con.execute(f"CREATE OR REPLACE TEMP TABLE {COPY} AS SELECT *{replaced} FROM {SOURCE}")
    clear(con)
    con.execute(f"ALTER TABLE {COPY} RENAME TO {SOURCE}")


def remove_texts(con: Connection, texts: Sequence[str]) -> None:
    """Make NULL of these texts, and of numbers that are written so."""
    if not texts:
        return
    for kinds, listed in ((("VARCHAR",), texts), (NUMBERS, [t for t in texts if is_number(t)])):
        for name in columns_of(con, *kinds) if listed else []:
            column = quote_identifier(name)
            values = ", ".join(quote_literal(t) if "VARCHAR" in kinds else t for t in listed)
            con.execute(f"UPDATE {SOURCE} SET {column} = NULL WHERE {column} IN ({values})")


def is_number(text: str) -> bool:
    """Whether a text is a number as SQL writes it."""
    digits = text.removeprefix("-").replace(".", "", 1)
    return digits.isascii() and digits.isdigit()


def hidden_gaps(con: Connection) -> list[ColumnFinding]:
    """Columns of texts that hold numbers or dates, and texts that stand for NULL."""
    names = columns_of(con, "VARCHAR")
    first = cells.count(con, names, f"(FROM {SOURCE} LIMIT {FIRST})", FIRST)
    likely = [text.name for text in first if cells.is_likely(text)]
    (rows,) = con.execute(f"SELECT count(*) FROM {SOURCE}").fetchall()[0]
    found = {text.name: text for text in cells.count(con, likely, SOURCE, rows)}
    findings = []
    for one in cells.decide(list(found.values()), ReadingOptions(), ","):
        text = found[one.name]
        if one.meaning != "text" and text.missing:
            beside = cells.BESIDE[one.meaning]
            settled = (("na", True),)
            findings.append(ColumnFinding(one.name, "missing", text.missing, settled, beside))
    return findings
