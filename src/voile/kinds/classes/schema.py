"""The domain of a table that is to be grouped: fine where values are cut, lists where counted."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

from voile.engines import connect
from voile.engines.table import Table
from voile.errors import TableError, spelled
from voile.kinds.classes.options import ClassOptions
from voile.kinds.domain import check_nulls, choose_schema, dropped_times
from voile.schema import Attribute, Range, Schema, Values
from voile.schema.attribute import interval, ordinal
from voile.schema.infer import ColumnProfile, infer_attribute

LARGEST_QI = 2**31 - 1
MOST_SENSITIVE = 10_000
FINE = 4
"""Decimal digits of a column's range that are kept where numbers are cut."""


def grouping_schema(table: Table, options: ClassOptions) -> tuple[Schema, list[str]]:
    """The declared domain, or one that suits what each column is for."""
    names = table.check_columns(options.listed)
    if options.schema_ is not None:
        schema, notes = choose_schema(table, names, options.schema_, options.nulls)
    else:
        drop = options.nulls == "drop"
        if drop and not table.complete_rows(names):
            raise TableError(
                "no row is without NULLs",
                hint=f"use {spelled('nulls', 'as-value')}, or leave columns out",
            )
        null = options.nulls == "as-value"
        profiles = {p.name: p for p in table.profiles(names, drop_nulls=drop)}
        if options.population is not None:  # a public table: its domain tells nothing
            public = as_table(options.population)
            public.check_columns(list(options.qi))
            profiles |= {p.name: p for p in public.profiles(list(options.qi), drop_nulls=drop)}
        schema = Schema(tuple(attribute_for(profiles[n], options, null=null) for n in names))
        notes = dropped_times(table, names)
        if not any(profiles[name].nulls for name in names):
            check_sizes(schema, options)
            return schema, notes
    check_nulls(table, schema, options.nulls)
    check_sizes(schema, options)
    return schema, notes


def attribute_for(profile: ColumnProfile, options: ClassOptions, *, null: bool) -> Attribute:
    name = profile.name
    if name in options.qi and profile.kind == "categorical" and profile.looks_like_identifier:
        raise TableError(
            f"quasi-identifier {name!r} looks like an identifier ({profile.distinct:,} different "
            f"values in {profile.rows:,} rows): the release would list them all",
            hint=f"{spelled('identifiers', [name])} leaves it out; or declare its domain "
            f"with {spelled('schema')}",
        )
    try:
        found = infer_attribute(profile, null=null)
    except TableError as error:
        raise TableError(
            error.message, hint=f"{spelled('identifiers', [name])} leaves it out"
        ) from None
    if name in (options.hierarchies or {}) and profile.values is not None:
        return replace(found, domain=Values(profile.values))  # the hierarchy says what lies between
    if name in options.qi:
        return cuttable(found, profile)
    many = not isinstance(found.domain, Values)
    if name in options.insensitive and found.kind == "numeric" and many:
        if profile.values is None:
            raise TableError(
                f"column {profile.name!r} has too many different numbers to be shown as they are",
                hint=f"round them, or declare bins or an interval for it with {spelled('schema')}",
            )
        return replace(found, domain=Values(profile.values))
    return found


def cuttable(attribute: Attribute, profile: ColumnProfile) -> Attribute:
    """An ordered column with every number between its ends, so that ranges mean what they say."""
    low, high = profile.low, profile.high
    if low is None or high is None or profile.kind not in ("integer", "date", "numeric"):
        return attribute
    if profile.kind == "numeric":
        if isinstance(attribute.domain, Values):
            return attribute
        assert isinstance(low, float) and isinstance(high, float)  # noqa: S101
        step = Decimal(10) ** (math.ceil(math.log10(high - low)) - FINE)
        first = float(Decimal(repr(low)) // step * step - (step if low < 0 else 0))
        last = float(-(-Decimal(repr(high)) // step) * step + (step if high > 0 else 0))
        return replace(attribute, domain=interval(attribute.name, first, last, float(step)))
    assert not isinstance(low, str | float) and not isinstance(high, str | float)  # noqa: S101
    if ordinal(high) - ordinal(low) >= LARGEST_QI:
        return attribute
    return replace(attribute, domain=Range(low, high))


def as_table(given: Any) -> Table:
    return connect(given)


def check_sizes(schema: Schema, options: ClassOptions) -> None:
    for name in options.qi:
        if schema[name].size > LARGEST_QI:
            raise TableError(
                f"column {name!r} has {schema[name].size:,} possible values, too many to be cut",
                hint=f"declare bins or a smaller range for it with {spelled('schema')}",
            )
    for name in options.sensitive:
        if schema[name].size > MOST_SENSITIVE:
            raise TableError(
                f"sensitive column {name!r} has {schema[name].size:,} possible values: each would "
                "be rare in every class",
                hint=f"group its values, or declare bins for it with {spelled('schema')}",
            )
