"""The private table, as losses are measured against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.engines.encode import codes as codes_of
from voile.engines.encode import domain_array
from voile.engines.table import Table
from voile.errors import TableError, UsageError, did_you_mean
from voile.evaluate.losses.blocks import Points, Told
from voile.evaluate.losses.other_kinds import points
from voile.hierarchies import default_levels, read_hierarchies
from voile.kinds.classes.release import ClassRelease
from voile.kinds.classes.schema import grouping_schema
from voile.kinds.classes.wish import GroupWish
from voile.kinds.release import Release
from voile.kinds.views.release import ViewRelease
from voile.privacy.divergence import shares
from voile.recoding.units import Codes, Counts
from voile.schema import Schema
from voile.schema.hierarchy import Levels


@dataclass(frozen=True, eq=False)
class Truth:
    """The private table: its different combinations of quasi-identifiers, with their rows."""

    schema: Schema
    """Of the quasi-identifiers, then the sensitive column."""
    cells: Codes
    counts: Counts
    """(cells, sensitive values)"""
    others: Codes
    """(columns, people): different combinations of all columns but the sensitive one."""
    places: Mapping[str, Codes] = field(default_factory=dict)
    """For columns whose domain in the release is narrower: the code of each of its values here."""

    @property
    def qi(self) -> tuple[str, ...]:
        return tuple(self.schema.names[:-1])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.schema.sizes[:-1])

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def overall(self) -> Floats:
        return shares(self.counts.sum(axis=0))

    @property
    def told(self) -> Told:
        """What the table itself tells."""
        return (Points(self.counts.astype(np.float64), self.cells),)

    def by_position(self, orders: Sequence[Codes]) -> list[Counts]:
        """For each quasi-identifier the rows that have each value, in the column's order."""
        rows = self.counts.sum(axis=1)
        return [
            np.bincount(codes, rows, size).astype(np.int64)[order]
            for codes, size, order in zip(self.cells, self.sizes, orders, strict=True)
        ]


def columns_asked(
    release: Release, sensitive: str | None, qi: Sequence[str] | None
) -> tuple[str, list[str]]:
    """The sensitive column and the quasi-identifiers, by what the release has."""
    value = sensitive_asked(release, sensitive)
    possible = release.qi if isinstance(release, ClassRelease) else release.schema.names
    possible = [name for name in possible if name != value]
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
    known = release.sensitive if isinstance(release, ClassRelease) else release.schema.names
    if sensitive is None and isinstance(release, ClassRelease) and len(known) == 1:
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
    expected = manifest.public_rows
    if isinstance(release, ClassRelease):
        expected = release.rows + release.manifest.parameters.removed
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
        distinct(others) if isinstance(release, ViewRelease) else cells.codes,
        places,
    )


def domain_of(table: Table, release: Release) -> tuple[Schema, dict[str, Codes]]:
    """The release's domain, and what only rows have that it leaves out; where its values went."""
    schema = release.schema
    if not isinstance(release, ClassRelease) or not release.manifest.parameters.removed:
        return schema, {}
    parameters = release.manifest.parameters
    wish = GroupWish(
        qi=parameters.qi,
        sensitive=parameters.sensitive,
        insensitive=parameters.insensitive,
        nulls=release.manifest.nulls,
    )
    whole, _ = grouping_schema(table, wish)
    wide = Schema(tuple(whole[a.name] if a.public == "active" else a for a in schema))
    places = {
        a.name: codes_of(domain_array(a), wide[a.name]).astype(np.int32)
        for a in schema
        if a.size != wide[a.name].size
    }
    return wide, places


def distinct(codes: Sequence[Codes]) -> Codes:
    """The different combinations."""
    rows = np.stack([*codes, np.zeros(len(codes[0]), dtype=np.int32)])
    return points(rows, 1, np.ones(rows.shape[1])).codes


def levels_of(truth: Truth, given: Mapping[str, Any], table_name: str) -> list[Levels]:
    """The hierarchies of the quasi-identifiers: those given, those shipped, the usual ones."""
    schema = truth.schema.select(truth.qi)
    known = read_hierarchies(given, schema, table_name)
    return [known.get(attribute.name) or default_levels(attribute) for attribute in schema]
