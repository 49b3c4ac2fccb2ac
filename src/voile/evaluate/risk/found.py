"""What was found out about a table's risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voile.evaluate.risk.disclosure import (
    MEASURES,
    Disclosure,
    PresenceRisk,
    Reidentification,
    over_all,
)
from voile.evaluate.risk.uniqueness import Uniqueness, UniqueSets
from voile.recoding.units import Counts
from voile.units import counted, percent

SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Where the groups of class sizes begin."""


@dataclass(frozen=True, eq=False)
class Risk:
    """Everything that `voile risk` says. It is about the private table: do not publish it."""

    table: str
    rows: int
    qi: tuple[str, ...]
    qi_given: bool
    """False where all columns were taken."""
    sensitive: tuple[str, ...]
    classes: Counts
    """(classes,): how many rows each has."""
    disclosures: tuple[Disclosure, ...]
    prosecutor: Reidentification
    journalist: Reidentification | None
    presence: PresenceRisk | None
    uniqueness: Uniqueness
    unique_sets: UniqueSets
    population: int | None
    """Rows of the population, where one is given."""
    outside: int
    """Rows whose class the population has fewer rows of than the table."""
    suppressed_cells: int
    suppressed_rows: int
    rows_left_out: int
    notes: tuple[str, ...] = ()

    @property
    def k(self) -> int:
        """The rows of the smallest class."""
        return int(self.classes.min())

    @property
    def threshold(self) -> float:
        """The chance above which a row counts as at risk."""
        return self.prosecutor.threshold

    def measured(self, key: str) -> float | None:
        """ℓ, t or δ: the worst over all sensitive attributes; None without one, or if infinite."""
        return over_all(self.disclosures, key)

    def class_sizes(self) -> list[dict[str, int | None]]:
        """How many classes and rows there are of each group of sizes."""
        ends = [*SIZES[1:], None]
        group = np.searchsorted(SIZES, self.classes, side="right") - 1
        classes = np.bincount(group, minlength=len(SIZES))
        rows = np.bincount(group, self.classes, len(SIZES))
        return [
            {
                "from": start,
                "to": None if end is None else end - 1,
                "classes": int(classes[i]),
                "rows": int(rows[i]),
            }
            for i, (start, end) in enumerate(zip(SIZES, ends, strict=True))
        ]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "table": self.table,
            "rows": self.rows,
            "qi": list(self.qi),
            "qi_given": self.qi_given,
            "sensitive": list(self.sensitive),
            "classes": len(self.classes),
            "k": self.k,
            **{key: self.measured(key) for key in MEASURES},
            "t_distance": "js",
            "attributes": [d.to_dict() for d in self.disclosures],
            "threshold": self.threshold,
            "prosecutor": self.prosecutor.to_dict(),
            "journalist": self.journalist.to_dict() if self.journalist else None,
            "marketer": self.marketer,
            "presence": self.presence.to_dict() if self.presence else None,
            "uniqueness": self.uniqueness.to_dict(),
            "class_sizes": self.class_sizes(),
            "unique_sets": self.unique_sets.to_dict(),
            "population": self.population,
            "rows_outside_population": self.outside if self.population is not None else None,
            "suppressed_cells": self.suppressed_cells,
            "suppressed_rows": self.suppressed_rows,
            "rows_left_out": self.rows_left_out,
            "notes": list(self.notes),
        }

    @property
    def marketer(self) -> float:
        """The share of rows that are found again when each is linked to somebody at random."""
        return (self.journalist or self.prosecutor).average

    def headline(self) -> str:
        """The most important thing, in a sentence."""
        alone = self.uniqueness.unique
        if alone:
            share = percent(self.uniqueness.share, rough=True)
            return (
                f"{alone:,} of {counted(self.rows, 'row')} ({share}) "
                f"{'is' if alone == 1 else 'are'} alone: "
                f"nobody else has the same {words(self.qi)}."
            )
        return (
            f"Every row shares its {words(self.qi)} with at least {self.k - 1:,} "
            f"other{'s' if self.k > 2 else ''} (k = {self.k:,})."
        )


def words(names: tuple[str, ...]) -> str:
    """Names as in a sentence; only how many, where they are many."""
    if len(names) > 8:
        return f"{len(names)} quasi-identifiers"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
