"""The columns of a table and their public domain: declared, inferred, checked, or narrowed."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.table import Table
from voile.errors import PromiseError, TableError, UsageError, spelled
from voile.kinds.options import SchemaSource
from voile.learning import LearningBudget, LearntSchema, learn_schema
from voile.noise import Key
from voile.noise.whole import WordSource
from voile.options.choices import Nulls
from voile.progress import Progress
from voile.schema import Attribute, Bins, Interval, Range, Schema, Values
from voile.schema.attribute import interval
from voile.schema.infer import ColumnProfile, infer_attribute
from voile.units import counted

ACTIVE = "active"
"""What stands for the domain that a table has."""
LARGEST_DOMAIN = 10**250


def choose_schema(
    table: Table, columns: Sequence[str] | None, schema: SchemaSource | None, nulls: Nulls
) -> tuple[Schema, list[str]]:
    """The public domain: the declared one, or what the chosen columns hold."""
    notes: list[str] = []
    if schema is not None and not is_active(schema):
        declared = read_schema(schema)
        if columns is not None:
            declared = declared.select(columns)
        table.check_columns(declared.names)
        if left := [c for c in table.columns if c not in declared.names]:
            why = "not in the schema" if columns is None else "not among the columns"
            notes.append(f"left out, {why}: {', '.join(left)}")
        table.check_kinds(declared)
        return declared, notes + dropped_times(table, declared.names) + rounding(table, declared)
    names = table.check_columns(columns if columns is not None else list(table.columns))
    table.check_meaning(names)
    check_some_complete(table, names, nulls)
    profiles = table.profiles(names, drop_nulls=nulls == "drop")
    if columns is None:
        refuse_identifiers(profiles, names)
    domain = Schema(tuple(infer_attribute(p, null=nulls == "as-value") for p in profiles))
    table.check_kinds(domain)
    notes.append(
        f"the domain was read off the table; declare it with {spelled('schema')} to disclose less"
    )
    return domain, notes + dropped_times(table, names)


def learn_domain(
    table: Table,
    columns: Sequence[str] | None,
    nulls: Nulls,
    budget: LearningBudget,
    source: WordSource | Key,
    progress: Progress | None = None,
) -> LearntSchema:
    """The public domain of the chosen columns, learnt from them within the budget."""
    names = table.check_columns(columns if columns is not None else list(table.columns))
    check_some_complete(table, names, nulls)
    if columns is None:
        refuse_identifiers(table.profiles(names, drop_nulls=nulls == "drop"), names)
    found = learn_schema(table, names, budget, source, nulls=nulls, progress=progress)
    table.check_kinds(found.schema)
    return replace(found, notes=(*found.notes, *dropped_times(table, names)))


def is_active(schema: object) -> bool:
    """Whether the domain is to be read off the table, as 'active' says."""
    return isinstance(schema, str | Path) and str(schema) == ACTIVE


def check_some_complete(table: Table, names: Sequence[str], nulls: Nulls) -> None:
    """Refuse to drop all rows."""
    if nulls == "drop" and not table.complete_rows(names):
        empty = [name for name, count in table.null_counts(names).items() if count == len(table)]
        raise TableError(
            "no row is without NULLs"
            + (f", for {', '.join(map(repr, empty))} holds nothing but NULLs" if empty else ""),
            hint=f"leave such columns out with {spelled('columns')}, or use "
            f"{spelled('nulls', 'as-value')}",
        )


def read_schema(schema: SchemaSource) -> Schema:
    """A domain that is declared: as it is, as data, or in a file.

    A domain that an earlier release learnt, and paid for, costs nothing to use again: whoever
    declares it vouches for that.
    """
    if isinstance(schema, LearntSchema):
        found = schema.schema
    elif isinstance(schema, Schema):
        found = schema
    else:
        found = Schema.from_dict(schema) if isinstance(schema, Mapping) else Schema.open(schema)
    if not any(a.public == "learnt" for a in found):
        return found
    return Schema(
        tuple(replace(a, public="declared") if a.public == "learnt" else a for a in found)
    )


def dropped_times(table: Table, names: Sequence[str]) -> list[str]:
    """A note on columns with times of day, of which only the day is kept."""
    cut = [name for name in names if name in table.with_time_of_day]
    return [f"only the day (UTC) is kept of {', '.join(cut)}"] if cut else []


def rounding(table: Table, schema: Schema) -> list[str]:
    """A note on each column whose values were rounded to the steps of its domain."""
    return [
        f"{count:,} values of {name} were rounded to steps of {schema[name].domain.step:g}: "  # type: ignore[union-attr]
        "answers are about the rounded values"
        for name, count in table.rounded(schema).items()
    ]


def refuse_identifiers(profiles: Sequence[ColumnProfile], names: Sequence[str]) -> None:
    """A column that names people is published only when it is named."""
    suspects = [p for p in profiles if p.looks_like_identifier]
    if suspects:
        first = suspects[0]
        others = [n for n in names if n not in {p.name for p in suspects}]
        raise TableError(
            f"column {first.name!r} looks like an identifier ({first.distinct:,} different values "
            f"in {first.rows:,} rows): such columns are published only by name",
            hint=f"choose the columns: {spelled('columns', others)}"
            if others
            else "there is nothing else in the table; group the values first",
        )


def columns_option(names: Sequence[str]) -> str:
    """Names as --columns takes them, ready for a shell."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return shlex.quote(line.getvalue())


def check_nulls(table: Table, schema: Schema, nulls: Nulls) -> None:
    """Refuse NULLs in columns that have no NULL in their domain, unless the options allow them."""
    if nulls != "error":
        return
    allowed = {a.name for a in schema if a.null}
    found = {
        name: count
        for name, count in table.null_counts(schema.names).items()
        if name not in allowed
    }
    if found:
        listed = ", ".join(f"{name!r} ({counted(count, 'row')})" for name, count in found.items())
        raise TableError(
            f"there are NULLs in {listed}",
            hint=f"{spelled('nulls', 'drop')} leaves such rows out; "
            f"{spelled('nulls', 'as-value')} makes NULL one more value (in a codebook: null: true)",
        )


def check_name(name: str) -> None:
    """A name stands in headings and file names: one line of readable text."""
    if not name.isprintable() or not 0 < len(name) <= 200:
        raise UsageError(f"{name!r} cannot name a table", hint="use one line of readable text")


def check_domain(size: int) -> None:
    """Chances of single tuples must be numbers that a float can hold."""
    if size > LARGEST_DOMAIN:
        raise PromiseError(
            f"the domain has about 10^{size.bit_length() * 0.30103:.0f} tuples, "
            "more than can be handled",
            hint="use fewer or coarser columns",
        )


# ----------------------------------------------------------------------
# domains without what only rows that were left out have
# A domain that was read off the table lists what occurs in it. Where rows are left out of a release
# because they stand out, their values must not stand in its manifest.


Codes = npt.NDArray[Any]
LARGEST = 2**27


@dataclass(frozen=True, eq=False)
class NarrowedDomain:
    """A column's domain cut to what is shown, and the new place of each old code."""

    attribute: Attribute
    kept: npt.NDArray[np.bool_]
    """(old codes,)"""

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """(old codes + 1,): how many codes before each one are kept."""
        return np.concatenate([[0], np.cumsum(self.kept)])


def narrowed_domain(attribute: Attribute, codes: Codes) -> NarrowedDomain:
    """The domain of these codes; one that was declared discloses nothing, and stays."""
    size = attribute.size
    if attribute.public != "active":
        return NarrowedDomain(attribute, np.ones(1 if size > LARGEST else size, dtype=bool))
    if size > LARGEST:
        raise TableError(
            f"column {attribute.name!r} has {size:,} possible values, too many to leave out those "
            "of rows that are left out",
            hint=f"declare its domain with {spelled('schema')}",
        )
    used = np.bincount(codes, minlength=size) > 0
    values = used[: attribute.domain.size]
    null = attribute.null and bool(used[-1])
    if not isinstance(attribute.domain, Values) and values.any():
        first, last = np.flatnonzero(values)[[0, -1]]
        values[first : last + 1] = True
    found = replace(attribute, domain=cut(attribute, np.flatnonzero(values)), null=null)
    return NarrowedDomain(found, np.concatenate([values, [null]]) if attribute.null else values)


def cut(attribute: Attribute, codes: npt.NDArray[np.int64]) -> Any:
    """The part of a domain with these codes, which for all but lists is a stretch of it."""
    domain = attribute.domain
    first, last = int(codes[0]), int(codes[-1])
    low, high = domain.at(first), domain.at(last)
    match domain:
        case Values(values):
            return Values(tuple(values[code] for code in codes))
        case Bins(edges):
            return type(domain)(edges[first : last + 2])
        case Range():
            return Range(low, high)  # type: ignore[arg-type]
        case Interval():
            if first == last:
                return Values((low,))
            return interval(attribute.name, float(low), float(high), domain.step)  # type: ignore[arg-type]
