"""Finding out a table's risk: whatever it holds, made by Voile or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voile.engines import connect
from voile.engines.table import Table
from voile.errors import UsageError, did_you_mean, spelled
from voile.evaluate.risk.disclosure import (
    Cells,
    RiskRows,
    cells_of,
    disclosures,
    journalist,
    presence,
    prosecutor,
    read,
)
from voile.evaluate.risk.found import Risk
from voile.evaluate.risk.uniqueness import feasible, unique_sets, uniqueness
from voile.kinds.manifest import MANIFEST
from voile.privacy.guarantee import NumberRange
from voile.release import ClassRelease
from voile.units import counted

SUPPRESSED_ROWS = ("count", "leave-out")
NAMED = 10
"""Columns that a note names."""


def risk(
    table: object,
    *,
    qi: Sequence[str] | None = None,
    sensitive: Sequence[str] | str = (),
    population: object | None = None,
    threshold: float = 0.2,
    sampling_fraction: float | None = None,
    largest: int = 3,
    suppressed: Sequence[str] = ("*",),
    suppressed_rows: str = "count",
    null_text: Sequence[str] = (),
) -> Risk:
    """k, ℓ, t, δ and the risk that rows are found again, of a file, frame or Arrow table.

    Without `qi` all columns but the sensitive ones are quasi-identifiers. A suppressed cell is a
    value of its own that matches only other suppressed cells; so is NULL.
    """
    _check(threshold, sampling_fraction, largest, suppressed_rows)
    private = connect(table, null_text=null_text)
    own = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    names = columns_of(private, qi, own)
    public = None if population is None else connect(population, null_text=null_text)
    rows = read(private, names, own, public, suppressed)
    seen = rows.without_suppressed_rows() if suppressed_rows == "leave-out" else rows
    cells = cells_of(seen.units)
    outside = _outside(cells)
    looked = feasible(len(names), int((cells.rows > 0).sum()), largest)
    return Risk(
        table=private.name,
        rows=seen.units.rows,
        qi=names,
        qi_given=qi is not None,
        sensitive=own,
        classes=cells.rows[cells.rows > 0],
        disclosures=disclosures(seen.units, cells, own),
        prosecutor=prosecutor(cells, threshold),
        journalist=journalist(cells, threshold),
        presence=presence(cells),
        uniqueness=uniqueness(cells.rows, cells.population, sampling_fraction),
        unique_sets=unique_sets(cells, names, looked),
        population=None if cells.population is None else int(cells.population.sum()),
        outside=outside,
        suppressed_cells=rows.suppressed_cells,
        suppressed_rows=rows.suppressed_rows,
        rows_left_out=rows.units.rows - seen.units.rows,
        notes=tuple(_notes(rows, seen, outside, largest, looked, names, qi)),
    )


def _check(
    threshold: float, sampling_fraction: float | None, largest: int, suppressed_rows: str
) -> None:
    """Refuse before the table is read."""
    share = NumberRange(0, 1, with_high=True)
    share.check("threshold", threshold)
    if sampling_fraction is not None:
        share.check("sampling fraction", sampling_fraction)
    NumberRange(1, with_low=True, whole=True).check("largest", largest)
    if suppressed_rows not in SUPPRESSED_ROWS:
        raise UsageError(
            f"what to do with suppressed rows, {suppressed_rows!r}, is not known",
            hint=did_you_mean(suppressed_rows, list(SUPPRESSED_ROWS)),
        )


def columns_of(
    table: Table, qi: Sequence[str] | None, sensitive: tuple[str, ...]
) -> tuple[str, ...]:
    """The quasi-identifiers; no column is both."""
    if sensitive:
        table.check_columns(sensitive)
    chosen = [name for name in table.columns if name not in sensitive] if qi is None else list(qi)
    both = [name for name in chosen if name in sensitive]
    if both:
        raise UsageError(f"{both[0]!r} is a quasi-identifier and sensitive", hint="name it once")
    return tuple(table.check_columns(chosen))


def _outside(cells: Cells) -> int:
    """Rows that the population, which should have them all, does not have."""
    if cells.population is None:
        return 0
    missing = np.maximum(cells.rows - cells.population, 0)
    if int(missing.sum()) == int(cells.rows.sum()):
        raise UsageError(
            "no row of the table has the same quasi-identifiers as a row of the population",
            hint="values must be written alike in both; a generalized table needs a population "
            "that is generalized likewise",
        )
    return int(missing.sum())


def _notes(
    rows: RiskRows,
    seen: RiskRows,
    outside: int,
    largest: int,
    looked: int,
    names: Sequence[str],
    qi: Sequence[str] | None,
) -> list[str]:
    """What a reader should know before believing the numbers."""
    found = []
    if qi is None:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        found.append(
            f"all {len(names)} columns were taken for quasi-identifiers "
            f"({', '.join(names[:NAMED])}{more}): name those that others may know with "
            f"{spelled('qi')}"
        )
    if rows.suppressed_cells and seen is rows:
        found.append(
            f"{counted(rows.suppressed_cells, 'cell', 'are')} suppressed: each counts as a "
            "value of its own, so that a class of such rows may look smaller than the people it "
            "may be about"
        )
    if outside:
        found.append(
            f"{counted(outside, 'row', 'are')} not in the population: the journalist's classes "
            "are taken to be at least as large as the table's"
        )
    if looked < min(largest, len(names)):
        found.append(
            f"sets of more than {counted(looked, 'column')} were not looked at: there are too many"
        )
    return found


# ---------------------------- the rows that a release shows, as a table whose risk can be measured


def shown_rows(
    source: Any, qi: Sequence[str] | None, sensitive: Sequence[str]
) -> tuple[Any, Sequence[str] | None, Sequence[str]]:
    """The table and its columns; of a release of classes what it shows, and says they are."""
    if not isinstance(source, str | Path) or not (Path(source) / MANIFEST).is_file():
        return source, qi, sensitive
    release = ClassRelease.open(source)
    if release.hidden is not None:
        raise UsageError(
            f"{str(source)!r} is bucketized: everybody's quasi-identifiers are shown as they are",
            hint="`voile verify` measures its buckets; `voile loss` what they tell",
        )
    return release.to_arrow(), qi or release.qi, sensitive or release.sensitive
