"""Tables of SPSS and Stata: codes with labels, values that count as missing, days since 1582.

A column of which every value has a label is shown by its labels, in the order of the codes. Where
only some values have one (0 'none', 99 '99 and more'), the codes are kept, and a note says so.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat

from voile.errors import TableError, spelled
from voile.foreign import SPSS, ForeignTable
from voile.units import counted

Floats = npt.NDArray[np.float64]
MOST_WHOLE = 2.0**53
SPSS_DAYS = re.compile(r"(A|E|S|J)?DATE\d*|(MOYR|QYR|WKYR)\d*")
SPSS_MOMENTS = re.compile(r"(DATETIME|YMDHMS)[\d.]*")
SPSS_TIMES = re.compile(r"(D|M)?TIME[\d.]*")
STATA_DAYS, STATA_MOMENTS = re.compile(r"%-?t?d"), re.compile(r"%-?t[cC]")
STATA_PERIODS = {"w": "weeks", "m": "months", "q": "quarters", "h": "half-years"}
DAY = 86_400
SPSS_EPOCH = dt.date(1970, 1, 1) - dt.date(1582, 10, 14)
STATA_EPOCH = dt.date(1970, 1, 1) - dt.date(1960, 1, 1)
LAST_DAY = dt.date.max - dt.date(1970, 1, 1)
SHOWN = 3
"""Labels that a note shows."""


def read_labelled(file: Path, options: Mapping[str, Any]) -> ForeignTable:
    """A table of SPSS or Stata."""
    is_spss = file.suffix.lower() in SPSS
    read = pyreadstat.read_sav if is_spss else pyreadstat.read_dta
    try:
        columns, meta = read(
            str(file),
            output_format="dict",
            user_missing=True,
            disable_datetime_conversion=True,
            encoding=options.get("encoding"),
        )
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeError) as error:
        raise TableError(f"{file} cannot be read: {error}", hint=hint_for(str(error))) from None
    check_letters(read, file, meta, options)
    notes: list[str] = []
    rows, categories = {}, {}
    for name, values in columns.items():
        column = LabelledColumn(name, meta, is_spss=is_spss)
        rows[name] = column.read(values)
        notes += column.notes
        if column.shown:
            categories[name] = column.shown
    labels = {name: text.strip() for name, text in meta.column_names_to_labels.items()
              if text and text.strip()}  # fmt: skip
    return ForeignTable(pa.table(rows), notes, labels=labels, categories=categories)


def check_letters(read: Any, file: Path, meta: Any, options: Mapping[str, Any]) -> None:
    """Refuse texts that are not UTF-8 in a file that says so: the reader leaves bytes out of them.

    Read as Latin-1, where every byte is a letter, they show the bytes that there are.
    """
    encoding = str(options.get("encoding") or meta.file_encoding or "utf-8")
    texts = [name for name, kind in meta.readstat_variable_types.items() if kind == "string"]
    if encoding.lower().replace("-", "") != "utf8" or not texts:
        return
    columns, _ = read(str(file), output_format="dict", usecols=texts, encoding="iso8859-1")
    for name, values in columns.items():
        for row, text in enumerate(values, start=1):
            try:
                str(text).encode("latin-1", "ignore").decode()
            except UnicodeDecodeError as error:
                raise TableError(
                    f"row {row}, column {name!r} of {file}: byte {error.start + 1} is not UTF-8",
                    hint=hint_for("encoding"),
                ) from None


def hint_for(reason: str) -> str:
    """What to do about a file that cannot be read."""
    if "ncoding" in reason or "convert" in reason or "codec" in reason:
        return f"say how its letters are written: {spelled('encoding', 'cp1252')}"
    return "open it in the program that wrote it, and save it again"


class LabelledColumn:
    """One column, with what the file says of its codes; what was done is in `notes`."""

    def __init__(self, name: str, meta: Any, *, is_spss: bool) -> None:
        self.name, self.is_spss = name, is_spss
        self.format = str(meta.original_variable_types.get(name) or "")
        self.type = str(meta.readstat_variable_types.get(name) or "")
        self.labels = dict(meta.variable_value_labels.get(name) or {})
        self.ranges = list(meta.missing_ranges.get(name) or ())
        self.notes: list[str] = []
        self.shown: list[str] = []
        """All labels in the order of their codes, where the column is shown by them."""

    def read(self, values: Any) -> Any:
        """The column as an Arrow array."""
        given = as_array(values)
        missing = self.is_missing(given)
        if missing.any():
            self.say_missing(given[missing])
        if self.type == "string" or (given.dtype == object and self.are_texts(given[~missing])):
            texts = [None if gone or not str(v) else str(v)
                     for v, gone in zip(given.tolist(), missing, strict=True)]  # fmt: skip
            return self.labelled(texts, [v for v in texts if v is not None]) or pa.array(
                texts, pa.string()
            )
        plain = np.where(missing, np.nan, given).astype(np.float64)
        known = ~np.isnan(plain)
        distinct = np.unique(plain[known])
        shown = self.labelled([float(v) if k else None for v, k in zip(plain, known, strict=True)]
                              if self.labels else [], distinct.tolist())  # fmt: skip
        return self.number(plain, known) if shown is None else shown

    def are_texts(self, values: Any) -> bool:
        """Whether a column of objects holds texts, and not numbers beside letters."""
        return any(isinstance(v, str) for v in values.tolist())

    # ------------------------------------------------------------------ what counts as missing

    def is_missing(self, given: Any) -> Any:
        """Which values the file declares missing: ranges of SPSS, .a to .z of Stata."""
        if not self.is_spss:
            if given.dtype != object or self.type == "string":
                return np.zeros(len(given), bool)
            return np.array([isinstance(v, str) for v in given.tolist()], bool)
        found = np.zeros(len(given), bool)
        for one in self.ranges:
            low, high = one["lo"], one["hi"]
            if isinstance(low, str):
                found |= np.array([str(v).rstrip() == low.rstrip() for v in given.tolist()], bool)
            else:
                found |= (given >= low) & (given <= high)
        return found

    def say_missing(self, gone: Any) -> None:
        """Note how many values the file declares missing, and by what."""
        values, counts = np.unique(gone.astype(str) if gone.dtype == object else gone,
                                   return_counts=True)  # fmt: skip
        dot = "" if self.is_spss else "."
        named = [f"{dot}{code(v)}{self.label_of(v)}" for v in values.tolist()[:SHOWN]]
        more = ", …" if len(values) > SHOWN else ""
        self.notes.append(
            f"{self.name!r}: {counted(int(counts.sum()), 'value')} declared missing in the file "
            f"({', '.join(named)}{more}) read as NULL"
        )

    def label_of(self, value: Any) -> str:
        """The label of a code, with a space in front."""
        found = self.labels.get(value)
        return f" {found!r}" if found else ""

    # ------------------------------------------------------------------ labels

    def labelled(self, values: Sequence[Any], distinct: Sequence[Any]) -> Any:
        """The column by its labels, where every value has one; None where codes are kept."""
        labels = {v: str(t).strip() for v, t in self.labels.items()
                  if self.is_code(v) and str(t).strip()}  # fmt: skip
        if not labels or not distinct:
            return None
        distinct = sorted(set(distinct))
        without = [v for v in distinct if v not in labels]
        if without:
            named = ", ".join(f"{code(v)} {t!r}" for v, t in sorted(labels.items())[:SHOWN])
            more = ", …" if len(labels) > SHOWN else ""
            self.notes.append(
                f"{self.name!r}: {counted(len(without), 'value')} of {len(distinct)} have no label "
                f"(such as {code(without[0])}), so codes are kept; labels are {named}{more}"
            )
            return None
        ordered = sorted(labels)
        texts = [labels[v] for v in ordered]
        if twice := next((t for t in texts if texts.count(t) > 1), None):
            self.notes.append(
                f"{self.name!r}: two codes have the label {twice!r}, so codes are kept"
            )
            return None
        self.shown = texts
        places = {v: i for i, v in enumerate(ordered)}
        codes = pa.array([None if v is None else places[v] for v in values], pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string()), ordered=True)

    def is_code(self, value: Any) -> bool:
        """Whether a labelled value is one of the column's, and not one declared missing."""
        if not self.is_spss:
            return not isinstance(value, str) or self.type == "string"
        return not bool(self.is_missing(np.array([value]))[0])

    # ------------------------------------------------------------------ numbers and days

    def number(self, values: Floats, known: Any) -> Any:
        """Numbers, days or moments, by the column's format."""
        mask = ~known
        if self.is_spss:
            if SPSS_DAYS.fullmatch(self.format):
                return self.days(values / DAY - SPSS_EPOCH.days, mask)
            if SPSS_MOMENTS.fullmatch(self.format):
                return self.moments(values - SPSS_EPOCH.days * DAY, mask)
            if SPSS_TIMES.fullmatch(self.format):
                self.notes.append(f"{self.name!r} holds times, read as seconds")
        elif STATA_DAYS.match(self.format):
            return self.days(values - STATA_EPOCH.days, mask)
        elif STATA_MOMENTS.match(self.format):
            return self.moments(values / 1000 - STATA_EPOCH.days * DAY, mask)
        elif found := re.match(r"%-?t([wmqh])", self.format):
            period = STATA_PERIODS[found[1]]
            self.notes.append(f"{self.name!r} counts {period} since 1960, read as numbers")
        return plain_numbers(values, mask, single=self.type == "float")

    def days(self, values: Floats, mask: Any) -> Any:
        """Days since 1970, as dates."""
        whole = np.floor(np.where(mask, 0, values))
        self.check_days(whole)
        return pa.array(whole.astype(np.int32), pa.date32(), mask=mask)

    def moments(self, values: Floats, mask: Any) -> Any:
        """Seconds since 1970, as days with a time; as days where no time is given."""
        seconds = np.where(mask, 0, values)
        if not np.any(seconds % DAY):
            return self.days(seconds / DAY, mask)
        self.check_days(seconds / DAY)
        return pa.array((seconds * 1e6).round().astype(np.int64), pa.timestamp("us"), mask=mask)

    def check_days(self, days: Floats) -> None:
        """Refuse days that no calendar has."""
        wrong = np.flatnonzero((days > LAST_DAY.days) | (days < -719_162))
        if len(wrong):
            raise TableError(
                f"row {wrong[0] + 1}, column {self.name!r}: a day outside the years 1 to 9999",
                hint="correct it in the program that wrote the file",
            )


def as_array(values: Any) -> Any:
    """Numbers as floats, with NaN where there is none; objects where there are texts."""
    if isinstance(values, np.ndarray):
        return values
    if any(isinstance(v, str) for v in values):
        return np.array(values, dtype=object)
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def plain_numbers(values: Floats, mask: Any, *, single: bool = False) -> Any:
    """Numbers; whole ones where all are. `single` were stored with seven digits: 0.1 is 0.1."""
    held = np.where(mask, 0, values)
    if np.all(held == np.floor(held)) and np.all(np.abs(held) <= MOST_WHOLE):
        return pa.array(held.astype(np.int64), mask=mask)
    if not single:
        return pa.array(held, mask=mask)
    short = pc.cast(pc.cast(pa.array(held.astype(np.float32)), pa.string()), pa.float64())
    return pc.if_else(pa.array(mask), pa.scalar(None, pa.float64()), short)


def code(value: Any) -> str:
    """A code for reading: 1 and not 1.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)
