"""The private table, as losses are measured against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voile.engines.encode import codes as codes_of
from voile.engines.encode import domain_array
from voile.engines.table import Table
from voile.errors import TableError, UsageError, did_you_mean
from voile.hierarchies import default_levels, read_hierarchies
from voile.kinds.blocks import points
from voile.kinds.evaluation import Truth
from voile.kinds.release import Release
from voile.recoding.units import Codes
from voile.schema import Schema
from voile.schema.hierarchy import Levels


def columns_asked(
    release: Release, sensitive: str | None, qi: Sequence[str] | None
) -> tuple[str, list[str]]:
    """The sensitive column and the quasi-identifiers, by what the release has."""
    value = sensitive_asked(release, sensitive)
    possible = [name for name in release.roles.qi if name != value]
    chosen = list(possible if qi is None else qi)
    for name in chosen:
        if name == value:
            raise UsageError(f"{name!r} is in --qi and in --sensitive", hint="it is one of them")
        if name not in possible:
            raise UsageError(
                f"the release has no quasi-identifier {name!r}",
                hint=did_you_mean(name, possible),
            )
    if len(set(chosen)) < len(chosen):
        raise UsageError(
            f"a column is named twice: {', '.join(chosen)}", hint="name each column once"
        )
    if not chosen:
        raise UsageError("no quasi-identifiers were named", hint=f"--qi {','.join(possible)}")
    return value, chosen


def sensitive_asked(release: Release, sensitive: str | None) -> str:
    """The column that is named, or the only one that the release calls sensitive."""
    roles = release.roles
    known = list(roles.sensitive)
    if sensitive is None and roles.stated and len(known) == 1:
        return known[0]
    if sensitive is None:
        raise UsageError(
            "it was not said which column is sensitive",
            hint=f"--sensitive {known[-1]}: one of {', '.join(known)}"
            if known
            else "the release has no sensitive column, and so no losses",
        )
    if sensitive not in known:
        raise UsageError(
            f"the release has no sensitive column {sensitive!r}",
            hint=did_you_mean(sensitive, known),
        )
    return sensitive


def read_truth(table: Table, release: Release, qi: Sequence[str], sensitive: str) -> Truth:
    """The table by the release's own domain; refused where it cannot be the one behind it."""
    manifest = release.manifest
    table.check_columns(release.schema.names)
    schema, places = domain_of(table, release)
    codes, _ = table.columns_of_codes(schema, drop_nulls=manifest.nulls == "drop")
    found = len(codes[0])
    expected = release.rows_behind
    if expected is not None and expected != found:
        raise TableError(
            f"table {table.name!r} has {found:,} rows, and the release was made of {expected:,}",
            hint="give the table that the release was made of",
        )
    if not found:
        raise TableError(f"table {table.name!r} has no rows", hint="nothing can be measured")
    by_name = dict(zip(schema.names, codes, strict=True))
    rows = np.stack([by_name[name].astype(np.int32) for name in [*qi, sensitive]])
    cells = points(rows, schema[sensitive].size, np.ones(found))
    others = [by_name[name].astype(np.int32) for name in schema.names if name != sensitive]
    return Truth(
        schema.select([*qi, sensitive]),
        cells.codes,
        np.rint(cells.counts).astype(np.int64),
        others,
        places,
    )


def domain_of(table: Table, release: Release) -> tuple[Schema, dict[str, Codes]]:
    """The table's domain in the release's terms, and where the release's values are in it.

    It is wider where the release leaves out values that only rows have that it does not show.
    """
    schema, wide = release.schema, release.domain_behind(table)
    places = {
        a.name: codes_of(domain_array(a), wide[a.name]).astype(np.int32)
        for a in schema
        if a.size != wide[a.name].size
    }
    return wide, places


def levels_of(truth: Truth, given: Mapping[str, Any], table_name: str) -> list[Levels]:
    """The hierarchies of the quasi-identifiers: those given, those shipped, the usual ones."""
    schema = truth.schema.select(truth.qi)
    known = read_hierarchies(given, schema, table_name)
    return [known.get(attribute.name) or default_levels(attribute) for attribute in schema]
