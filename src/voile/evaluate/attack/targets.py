"""Whom an adversary is after: a small table of people, with what it knows of each.

Columns are attributes of the release, and besides them `name` (or the column that was named) and
`prior`. An empty cell, or a column that is missing, is not known. NULL is written as NULL.
"""

from __future__ import annotations

import datetime as dt
import math
import shlex
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from voile.arrays import Floats, Ints
from voile.client.domains import EPOCH
from voile.engines import read_all
from voile.engines.encode import OUTSIDE, clamped, codes, column_type, values_at
from voile.errors import UsageError, did_you_mean, spelled
from voile.schema import Attribute, Bins, Schema, Values, WholeBins
from voile.schema.attribute import bin_in_words, domain_in_words, ordinal, plain

UNKNOWN = -1
"""The code of a value that the adversary does not know."""
MOST_CANDIDATES = 10**6
NAME, PRIOR = "name", "prior"
NULL_TEXT = "NULL"
SEPARATORS = ",;\t"
"""Between the cells of a CSV file; the first where none of them occurs."""


@dataclass(frozen=True)
class Targets:
    """Rows of people: codes[j][i] is row i's place in attribute j's domain, or UNKNOWN."""

    schema: Schema
    names: tuple[str, ...]
    codes: tuple[Ints, ...]
    priors: Floats | None = None

    def __len__(self) -> int:
        return len(self.names)

    def is_complete(self) -> npt.NDArray[np.bool_]:
        """Which rows leave nothing unknown, and so are one tuple."""
        return np.asarray(np.all(np.stack(self.codes) != UNKNOWN, axis=0))

    def candidates(self, row: int) -> tuple[Ints, ...]:
        """All tuples of the domain that agree with what is known of a row."""
        known = [int(column[row]) for column in self.codes]
        sizes = [a.size if c == UNKNOWN else 1 for a, c in zip(self.schema, known, strict=True)]
        count = math.prod(sizes)
        if count > MOST_CANDIDATES:
            raise UsageError(
                f"{self.names[row]} could be any of {count:,} tuples, more than "
                f"{MOST_CANDIDATES:,}",
                hint=f"give more of what is known: {self._widest(known)} has the most values",
            )
        # Only by what is unknown: arrays have at most 64 axes.
        places = np.unravel_index(np.arange(count), [s for s in sizes if s > 1] or [1])
        free = iter(places)
        return tuple(
            np.full(count, 0 if c == UNKNOWN else c, np.int64)
            if size == 1
            else np.asarray(next(free), np.int64)
            for size, c in zip(sizes, known, strict=True)
        )

    def _widest(self, known: Sequence[int]) -> str:
        unknown = [a for a, c in zip(self.schema, known, strict=True) if c == UNKNOWN]
        return max(unknown, key=lambda a: a.size).name

    def people(self) -> Iterator[tuple[str, list[int]]]:
        """Each name with its rows, in the order of the first."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            rows.setdefault(name, []).append(row)
        yield from rows.items()


def tuples_of(schema: Schema, found: Sequence[npt.NDArray[Any]]) -> list[dict[str, Any]]:
    """Tuples as people read them, by attribute."""
    columns = [values_at(a, c).to_pylist() for a, c in zip(schema, found, strict=True)]
    rows = zip(*columns, strict=True)
    return [dict(zip(schema.names, map(plain, row), strict=True)) for row in rows]


def value_words(attribute: Attribute, value: Any) -> str:
    """A value as people read it: a bin, which is published as its middle, as the interval."""
    if value is None:
        return NULL_TEXT
    if not isinstance(attribute.domain, Bins):
        return str(value)
    if isinstance(attribute.domain, WholeBins):
        number = ordinal(value) - EPOCH if isinstance(value, dt.date) else value
        return bin_in_words(attribute.domain, int(attribute.domain.encode(np.array([number]))[0]))
    edges = attribute.domain.edges
    place = min(bisect_right(edges, value), len(edges) - 1)
    return f"{edges[place - 1]:.6g} to {edges[place]:.6g}"


class SpelledValues:
    """The values of a schema's attributes as data and in words; each is looked up once.

    An attack spells the same few values for thousands of people.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._known: list[dict[int, tuple[Any, str]]] = [{} for _ in schema]

    def tuples(
        self, found: Sequence[npt.NDArray[Any]]
    ) -> list[tuple[dict[str, Any], dict[str, str]]]:
        """Tuples by attribute: as data, and as people read them."""
        columns = [self.column(j, codes) for j, codes in enumerate(found)]
        names = self.schema.names
        return [
            (
                {name: value for name, (value, _) in zip(names, row, strict=True)},
                {name: words for name, (_, words) in zip(names, row, strict=True)},
            )
            for row in zip(*columns, strict=True)
        ]

    def column(self, attribute: int, codes: npt.NDArray[Any]) -> list[tuple[Any, str]]:
        """The values with these codes of one attribute."""
        known, places = self._known[attribute], codes.tolist()
        new = [code for code in dict.fromkeys(places) if code not in known]
        if new:
            of = self.schema.attributes[attribute]
            values = values_at(of, np.array(new, codes.dtype)).to_pylist()
            # Bins are told apart before they are made plain: their words are the interval.
            known.update(
                (code, (plain(value), value_words(of, plain(value))))
                for code, value in zip(new, values, strict=True)
            )
        return [known[code] for code in places]


# ---------------------------------------------------------------------- reading them


def read_targets(source: object, schema: Schema, *, name: str | None = None) -> Targets:
    """Targets from a CSV file, any other table that is read, or a data frame."""
    table = read_texts(source)
    check_columns(table, schema, name)
    if not table.num_rows:
        raise UsageError("the targets have no rows", hint="give a row for each person")
    found = tuple(coded(table, attribute) for attribute in schema)
    label = name or (NAME if NAME in table.column_names and NAME not in schema.names else None)
    numbered = [f"row {i + 1}" for i in range(table.num_rows)]
    given = table[label].to_pylist() if label else numbered
    names = tuple(text or number for text, number in zip(given, numbered, strict=True))
    has_prior = PRIOR in table.column_names and PRIOR not in schema.names
    priors = chances(table[PRIOR].combine_chunks(), PRIOR) if has_prior else None
    return Targets(schema, names, found, priors)


def read_texts(source: object) -> Any:
    """A table with every cell as text: a zip code keeps its zeros."""
    if isinstance(source, str | Path) and Path(source).suffix.lower() in (".csv", ".tsv"):
        table = read_csv(Path(source))
    else:
        table = read_all(source)
        table = table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))
    blank = [pc.utf8_trim_whitespace(pc.fill_null(column, "")) for column in table.columns]
    return pa.table(blank, names=table.column_names)


def read_csv(path: Path) -> Any:
    """A CSV file, all of it text; what separates its cells is read off its first line."""
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}", hint="name a CSV file")
    try:
        content = path.read_bytes()
        head = content.decode("utf-8-sig").split("\n", 1)[0]
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(SEPARATORS, key=head.count)
        options = csv.ParseOptions(delimiter=delimiter)
        with csv.open_csv(pa.BufferReader(content), parse_options=options) as reader:
            names = reader.schema.names
        return csv.read_csv(
            pa.BufferReader(content),
            parse_options=options,
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{str(path)!r}, line {line}, is not UTF-8",
            hint="save it as UTF-8 (in Excel: CSV UTF-8), or convert it: "
            f"iconv -f latin1 -t utf-8 {shlex.quote(str(path))} > utf8.csv",
        ) from None
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"{str(path)!r} cannot be read: {reason}",
            hint="is it CSV, its cells separated by commas, semicolons or tabs?",
        ) from None


def check_columns(table: Any, schema: Schema, name: str | None) -> None:
    """Every column is an attribute, the name or the prior: a misspelt one is not passed over."""
    there = list(table.column_names)
    if len(set(there)) < len(there):
        raise UsageError(
            f"the targets name a column twice: {', '.join(there)}", hint="name each column once"
        )
    if name is not None and name not in there:
        raise UsageError(f"the targets have no column {name!r}", hint=did_you_mean(name, there))
    for column in there:
        if column not in (*schema.names, name or NAME, PRIOR):
            raise UsageError(
                f"the targets have a column {column!r}, which is no attribute of the release",
                hint=f"{did_you_mean(column, schema.names)}; with "
                f"{spelled('name', column)} it names people",
            )
    if not set(there) & set(schema.names):
        raise UsageError(
            "the targets have no attribute of the release",
            hint=f"its attributes are {', '.join(schema.names)}",
        )


def coded(table: Any, attribute: Attribute) -> Ints:
    """A column of texts as places in the domain, UNKNOWN where a cell is empty."""
    if attribute.name not in table.column_names:
        return np.full(table.num_rows, UNKNOWN, np.int64)
    texts = table[attribute.name].combine_chunks()
    found = places(texts, attribute)
    unknown = equals(texts, "")
    if attribute.null:
        found[equals(texts, NULL_TEXT) & (found == OUTSIDE)] = attribute.size - 1
    wrong = np.flatnonzero((found == OUTSIDE) & ~unknown)
    if len(wrong):
        row = int(wrong[0])
        raise UsageError(
            f"targets, row {row + 1}, column {attribute.name!r}: {texts[row].as_py()!r} is not in "
            f"the domain ({domain_in_words(attribute)})",
            hint="correct it, or leave the cell empty if it is not known",
        )
    found[unknown] = UNKNOWN
    return found


def places(texts: Any, attribute: Attribute) -> Ints:
    """Each text's place in the domain, OUTSIDE where it is none of its values."""
    if isinstance(attribute.domain, Values) and attribute.kind != "numeric":
        listed = pa.array([spelt(value) for value in attribute.domain], pa.string())
        written = pc.utf8_lower(texts) if attribute.kind == "boolean" else texts
        found = pc.index_in(written, value_set=listed)
        unlisted = OUTSIDE if attribute.other_code is None else attribute.other_code
        return np.asarray(found.fill_null(unlisted), dtype=np.int64)
    values = numbers(texts) if attribute.kind == "numeric" else parsed(texts, attribute)
    unread = values.is_null().to_numpy(zero_copy_only=False)
    values = clamped(values, attribute) if attribute.clamp else values
    return np.where(unread, OUTSIDE, codes(values, attribute))


def equals(texts: Any, text: str) -> npt.NDArray[np.bool_]:
    """Which texts are this one."""
    return np.asarray(pc.equal(texts, text).to_numpy(zero_copy_only=False))


def spelt(value: Any) -> str:
    """A value as a file of targets spells it."""
    return str(plain(value)).lower() if isinstance(value, bool) else str(plain(value))


def numbers(texts: Any) -> Any:
    """Texts as floats; what is no number is NULL."""
    is_number = pc.match_substring_regex(texts, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    return pc.if_else(is_number, texts, None).cast(pa.float64())


def parsed(texts: Any, attribute: Attribute) -> Any:
    """Texts as whole numbers or days; what is neither is NULL."""
    pattern = r"^[+-]?\d{1,18}$" if attribute.kind == "integer" else r"^\d{4}-\d\d-\d\d$"
    fits = pc.match_substring_regex(texts, pattern)
    try:
        return pc.if_else(fits, texts, None).cast(column_type(attribute))
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"targets, column {attribute.name!r}: {str(error).splitlines()[0]}",
            hint="write days as 1999-12-31",
        ) from None


def chances(texts: Any, column: str) -> Floats:
    """A column of probabilities; NaN where a cell is empty."""
    found: Floats = np.array(numbers(texts).to_numpy(zero_copy_only=False), np.float64)
    wrong = np.flatnonzero(~equals(texts, "") & ~((found >= 0) & (found <= 1)))
    if len(wrong):
        row = int(wrong[0])
        raise UsageError(
            f"row {row + 1}, column {column!r}: {texts[row].as_py()!r} is no probability",
            hint="give a number from 0 to 1",
        )
    return found
