"""The spec: what a survey publishes so that anyone can perturb a row for it."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from voile.client.column import Column, Replace, local_epsilon, together
from voile.client.domains import (
    KINDS,
    LARGEST,
    Domain,
    Edges,
    Grid,
    Kind,
    Listed,
    Texts,
    day_number,
)
from voile.client.strict import (
    EXACT,
    a_flag,
    a_list,
    a_number,
    a_text,
    a_whole,
    an_object,
    read_json,
    readable,
)
from voile.errors import PromiseError, UsageError, did_you_mean

SLACK = 1e-9
"""Relative difference of ε that two languages' logarithms may have."""


@dataclass(frozen=True)
class Promise:
    """Local ε of the whole row, and of single columns, that a survey says it stays within."""

    epsilon: float | None
    columns: Mapping[str, float]


def row_epsilon(columns: Sequence[Column], joint: float | None) -> float:
    """Local ε of a row: the sum over its perturbed columns, or that of the one joint coin.

    Infinite where nothing is perturbed. Columns with one value reveal nothing in any case.
    """
    varying = [column for column in columns if column.size > 1]
    if not varying:
        return 0.0
    if joint is not None:
        return local_epsilon(joint, math.prod(column.size for column in columns))
    perturbed = [column.epsilon() for column in varying if column.retention < 1]
    return together(perturbed) if perturbed else math.inf


def column_epsilon(column: Column, columns: Sequence[Column], joint: float | None) -> float:
    """ε between two rows that differ in this column only.

    Under a joint coin that is the whole ε: a row that was kept shows every one of its columns.
    """
    if joint is None or column.size == 1:
        return column.epsilon() if column.size > 1 else 0.0
    return row_epsilon(columns, joint)


def check_promise(
    promise: Promise, columns: Sequence[Column], joint: float | None, where: str
) -> None:
    """Refuse a spec whose parameters do not keep its own promise."""
    if promise.epsilon is not None:
        found = row_epsilon(columns, joint)
        if exceeds(found, promise.epsilon):
            raise PromiseError(
                f"{where} promises ε ≤ {promise.epsilon:g} for a row, and its parameters "
                f"give {spelt(found)}",
                hint="do not answer this survey; its owner must lower a retention",
            )
    by_name = {column.name: column for column in columns}
    for name, promised in promise.columns.items():
        if name not in by_name:
            raise UsageError(
                f"{where}: the promise names column {name!r}, which is not there",
                hint=did_you_mean(name, list(by_name)),
            )
        found = column_epsilon(by_name[name], columns, joint)
        if exceeds(found, promised):
            raise PromiseError(
                f"{where} promises ε ≤ {promised:g} for column {name!r}, and its parameters "
                f"give {spelt(found)}",
                hint="do not answer this survey; its owner must lower the retention",
            )


def spelt(epsilon: float) -> str:
    """An ε in an error."""
    return f"{epsilon:.6g}" if math.isfinite(epsilon) else "none: values are sent as they are"


def exceeds(epsilon: float, promised: float) -> bool:
    """Whether ε is above what was promised, by more than arithmetic can do."""
    return epsilon > promised * (1 + SLACK)


# ---------------------------------------------------------------------- reading
# A column of a spec's document, read and checked.


MOST_LISTED = 1_000_000
"""Longest list of values, edges or replacing chances."""
LAST_DAY = int(day_number("9999-12-31"))

FORMS: dict[str, dict[frozenset[str], str]] = {
    "categorical": {frozenset({"values"}): "values"},
    "boolean": {frozenset({"values"}): "values"},
    "integer": {
        frozenset({"values"}): "values",
        frozenset({"low", "step", "per", "count"}): "grid",
    },
    "numeric": {
        frozenset({"values"}): "values",
        frozenset({"low", "step", "per", "count"}): "grid",
        frozenset({"edges"}): "edges",
    },
    "date": {frozenset({"values"}): "values", frozenset({"first", "count"}): "days"},
}
"""The forms of a domain that each kind of column may have, by their keys."""


def read_column(entry: Any, where: str, *, joint: bool) -> Column:
    """One column; the error names it by its name once that is known."""
    an_object(entry, where, required=("name", "kind", "domain", "null", "retention", "replace"))
    name = a_text(entry["name"], f"{where}: the name", 1000)
    if not name:
        raise UsageError(f"{where}: the name is empty", hint="give the column a name")
    where = f"{where} ({name!r})"
    if entry["kind"] not in KINDS:
        raise UsageError(
            f"{where}: the kind is {readable(entry['kind'])}", hint=f"one of {', '.join(KINDS)}"
        )
    kind = cast(Kind, entry["kind"])
    domain = read_domain(entry["domain"], kind, f"{where}: the domain")
    null = a_flag(entry["null"], f"{where}: 'null'")
    retention = a_number(entry["retention"], f"{where}: the retention")
    if not 0 <= retention <= 1:
        raise UsageError(f"{where}: the retention is {retention:g}", hint="give one from 0 to 1")
    replace = read_replace(entry["replace"], domain.size + null, f"{where}: 'replace'")
    if joint and (retention != 1 or replace != "uniform"):
        raise UsageError(
            f"{where} has its own way of perturbing beside 'joint'",
            hint="with 'joint', every column has retention 1 and replace 'uniform'",
        )
    return Column(name, kind, domain, null, retention, replace)


def read_replace(entry: Any, size: int, where: str) -> Replace:
    """How a value is replaced: uniformly, or by whole-numbered chances of all codes."""
    if entry == "uniform":
        return "uniform"
    if type(entry) is not list:
        raise UsageError(
            f"{where} is {readable(entry)}", hint='write "uniform" or a list of whole numbers'
        )
    parts = tuple(
        a_whole(part, f"{where}, entry {place}", 1, EXACT)
        for place, part in enumerate(a_list(entry, where, MOST_LISTED))
    )
    if len(parts) != size:
        raise UsageError(
            f"{where} has {len(parts)} entries for {size} values",
            hint="one for each value of the domain, and one for NULL where it is allowed",
        )
    if sum(parts) > EXACT:
        raise UsageError(f"{where} adds up to more than 2⁵³", hint="divide all by the same number")
    return parts


def read_domain(entry: Any, kind: Kind, where: str) -> Domain:
    """The domain of a column, in one of the forms that its kind allows."""
    forms = FORMS[kind]
    form = forms.get(frozenset(entry)) if type(entry) is dict else None
    match form:
        case "values":
            return read_values(
                a_list(entry["values"], f"{where}'s values", MOST_LISTED), kind, where
            )
        case "grid":
            return read_grid(entry, kind, where)
        case "edges":
            return read_edges(a_list(entry["edges"], f"{where}'s edges", MOST_LISTED), where)
        case "days":
            return read_days(entry, where)
    known = " or ".join("{" + ", ".join(sorted(keys)) + "}" for keys in forms)
    raise UsageError(f"{where} is not one of kind {kind}", hint=f"give {known}")


def read_values(values: list[Any], kind: Kind, where: str) -> Domain:
    """A domain that lists its values."""
    if kind == "categorical":
        texts = tuple(a_text(v, f"{where}, value {i}", 10_000) for i, v in enumerate(values))
        check_different(texts, where)
        return Texts(texts)
    numbers = tuple(
        read_value(value, kind, f"{where}, value {place}") for place, value in enumerate(values)
    )
    check_different(numbers, where)
    return Listed(numbers)


def read_value(value: Any, kind: Kind, where: str) -> float:
    """One listed value as a number."""
    match kind:
        case "boolean":
            return float(a_flag(value, where))
        case "integer":
            return float(a_whole(value, where, -EXACT, EXACT))
        case "date":
            return float(read_day(value, where))
    return a_number(value, where)


def check_different(values: tuple[Any, ...], where: str) -> None:
    """Refuse a value that is listed twice."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen:
            raise UsageError(
                f"{where} lists value {place} twice: {readable(value)}", hint="list it once"
            )
        seen.add(value)


def read_grid(entry: dict[str, Any], kind: Kind, where: str) -> Grid:
    """A domain of numbers at equal steps."""
    grid = Grid(
        low=a_whole(entry["low"], f"{where}'s low", -LARGEST, LARGEST),
        step=a_whole(entry["step"], f"{where}'s step", 1, 2 * LARGEST),
        per=a_whole(entry["per"], f"{where}'s per", 1, LARGEST),
        count=a_whole(entry["count"], f"{where}'s count", 1, 2 * LARGEST + 1),
    )
    if grid.high > LARGEST:
        raise UsageError(
            f"{where} ends at low + step·(count − 1) = {grid.high}, which is above 2⁵⁰",
            hint="make the grid coarser or shorter",
        )
    if kind == "integer" and grid.per != 1:
        raise UsageError(f"{where}'s per is {grid.per}", hint="kind integer has per 1")
    return grid


def read_edges(edges: list[Any], where: str) -> Edges:
    """A domain of bins."""
    numbers = tuple(a_number(edge, f"{where}, edge {i}") for i, edge in enumerate(edges))
    bins = Edges(numbers)
    if bins.size < 1:
        raise UsageError(f"{where} has one edge", hint="give at least two")
    if any(not a < b for a, b in itertools.pairwise(numbers)):
        raise UsageError(f"{where}'s edges do not increase", hint="order them")
    if not np.array_equal(bins.encode(bins.middles), np.arange(bins.size)):
        raise UsageError(
            f"{where} has a bin whose middle is not inside it", hint="make the bins wider"
        )
    return bins


def read_days(entry: dict[str, Any], where: str) -> Grid:
    """A domain of successive days."""
    first = read_day(entry["first"], f"{where}'s first day")
    count = a_whole(entry["count"], f"{where}'s count", 1, LARGEST)
    if first + count - 1 > LAST_DAY:
        raise UsageError(f"{where} ends after 9999-12-31", hint="lower the count")
    return Grid(low=first, step=1, per=1, count=count)


def read_day(value: Any, where: str) -> int:
    """A date as the number of days since 1970-01-01."""
    number = day_number(value) if type(value) is str else math.nan
    if math.isnan(number):
        raise UsageError(f"{where} is {readable(value)}", hint="write a date as YYYY-MM-DD")
    return int(number)


# ---------------------------------------------------------------------- spec


FORMAT = "voile-perturbation"
VERSION = 1
MOST_BYTES = 2**25
MOST_COLUMNS = 1000


@dataclass(frozen=True)
class Spec:
    """Columns, how they are perturbed, and the promise; identified by the bytes it came as.

    `joint` is None, or the retention of one coin for the whole row (FRAPP).
    """

    name: str
    columns: tuple[Column, ...] = field(compare=False)
    joint: float | None = field(compare=False)
    promise: Promise | None = field(compare=False)
    raw: bytes = field(repr=False)

    @classmethod
    def open(cls, path: str | Path) -> Spec:
        """Read a spec from a file."""
        if not isinstance(path, str | Path):
            raise UsageError(
                f"the path is of type {type(path).__name__}, not text or a Path",
                hint="give the name of a file; Spec.from_dict and Spec.from_bytes read the rest",
            )
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            raise UsageError(
                f"there is no spec {str(path)!r}",
                hint="`voile spec CODEBOOK --retention P -o FILE` writes one",
            ) from None
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or "it is no path"
            raise UsageError(f"{path}: {words}", hint="name a file that can be read") from None
        return cls.from_bytes(data, where=str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Spec:
        """A spec from plain data, which is written as JSON once; these bytes are its identity."""
        try:
            text = json.dumps(
                document, ensure_ascii=False, allow_nan=False, separators=(",", ":")
            ).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"the spec cannot be written as JSON: {error}",
                hint="give a dict of texts, finite numbers, lists and dicts",
            ) from None
        return cls.from_bytes(text)

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str = "the spec") -> Spec:
        """Read a spec, exactly as it was published."""
        document = an_object(
            read_json(data, where, MOST_BYTES),
            where,
            required=("format", "version", "columns"),
            optional=("name", "joint", "promise"),
        )
        check_format(document, where, FORMAT, VERSION)
        joint = read_joint(document.get("joint"), where)
        columns = tuple(
            read_column(entry, f"{where}, column {number}", joint=joint is not None)
            for number, entry in enumerate(
                a_list(document["columns"], f"{where}: 'columns'", MOST_COLUMNS)
            )
        )
        check_names(columns, where)
        promise = read_promise(document.get("promise"), where)
        if promise is not None:
            check_promise(promise, columns, joint, where)
        name = a_text(document.get("name", ""), f"{where}: 'name'", 1000)
        return cls(name, columns, joint, promise, bytes(data))

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data."""
        document: dict[str, Any] = json.loads(self.raw)
        return document

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def public(self) -> tuple[str, ...]:
        """Names of the columns that are sent as they are."""
        if self.joint is not None:
            return tuple(column.name for column in self.columns) if self.joint == 1 else ()
        return tuple(column.name for column in self.columns if column.retention == 1)

    def epsilon(self) -> float:
        """Local ε of a row: of all its columns together but those that are sent as they are.

        Rounded up; infinite where no column is perturbed.
        """
        return self._epsilon

    @cached_property
    def _epsilon(self) -> float:
        return row_epsilon(self.columns, self.joint)

    def column_epsilons(self) -> dict[str, float]:
        """Local ε of each column; infinite where it is sent as it is."""
        return {
            column.name: column_epsilon(column, self.columns, self.joint) for column in self.columns
        }


def check_format(document: dict[str, Any], where: str, wanted: str, newest: int) -> None:
    """Refuse another kind of document, and one of a newer version."""
    if document["format"] != wanted:
        raise UsageError(
            f"{where} is not of the format {wanted!r}", hint=f"write {wanted!r} as its 'format'"
        )
    version = a_whole(document["version"], f"{where}: 'version'", 1, 2**31)
    if version > newest:
        raise UsageError(
            f"{where} is of version {version}; this Voile reads up to {newest}",
            hint="install a newer Voile",
        )


def check_names(columns: tuple[Column, ...], where: str) -> None:
    """Refuse names of columns that differ in case at most."""
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.name.casefold(), column.name)
        if other is not column.name:
            raise UsageError(
                f"{where}: the columns {other!r} and {column.name!r} differ in case at most",
                hint="give them different names",
            )


def read_joint(entry: Any, where: str) -> float | None:
    """The retention of the one coin for the whole row, if there is one."""
    if entry is None:
        return None
    an_object(entry, f"{where}: 'joint'", required=("retention",))
    retention = a_number(entry["retention"], f"{where}: the joint retention")
    if not 0 <= retention <= 1:
        raise UsageError(
            f"{where}: the joint retention is {retention:g}", hint="give a number from 0 to 1"
        )
    return retention


def read_promise(entry: Any, where: str) -> Promise | None:
    """The promise, if the spec makes one."""
    if entry is None:
        return None
    an_object(entry, f"{where}: 'promise'", required=(), optional=("epsilon", "columns"))
    columns = entry.get("columns", {})
    if type(columns) is not dict:
        raise UsageError(
            f"{where}: the promise's 'columns' is not a JSON object",
            hint="write {} with the columns' names and their ε",
        )
    epsilon = entry.get("epsilon")
    return Promise(
        None if epsilon is None else read_epsilon(epsilon, f"{where}: the promised epsilon"),
        {
            name: read_epsilon(value, f"{where}: the promised epsilon of column {name!r}")
            for name, value in columns.items()
        },
    )


def read_epsilon(value: Any, where: str) -> float:
    """A promised ε, finite and not negative."""
    epsilon = a_number(value, where)
    if not 0 <= epsilon < math.inf:
        raise UsageError(f"{where} is {epsilon:g}", hint="give a number that is not negative")
    return epsilon
