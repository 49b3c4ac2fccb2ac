"""The table that releases are measured against: read once, with its large populations."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from voile.engines import connect
from voile.engines.table import Table
from voile.errors import UsageError, spelled
from voile.evaluate.losses import Populations, jensen_shannon, populations
from voile.evaluate.options import SubjectKeywords, SubjectOptions
from voile.hierarchies import default_levels
from voile.kinds.blocks import Points, RowBlocks
from voile.kinds.classes.finding import units_for
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.reading import (
    ClassInput,
    by_frequency,
    frequencies,
    orders_for,
    prepare,
)
from voile.kinds.evaluation import Truth
from voile.options.reading import ReadingOptions
from voile.privacy.divergence import shares
from voile.privacy.requirements import requirements_of
from voile.progress import Progress, Silent
from voile.recoding import Units
from voile.schema.hierarchy import Levels

FORMAT = 1
"""Of the digest: raised when the same settings would measure something else."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A table, its columns' parts, and the populations that U_loss is about."""

    source: str
    """How a command names the table."""
    table: Table
    """To be read again for releases that are not made of classes."""
    options: ClassOptions
    """Everything but how rows are grouped."""
    prepared: ClassInput
    levels: dict[str, Levels]
    """Of every quasi-identifier: what is given or shipped, else the usual ones."""
    units: Units
    """Positions are codes of the schema."""
    populations: Populations
    min_support: float
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    """How the table's text is read."""

    @property
    def overall(self) -> Any:
        """The whole table's shares of the sensitive values."""
        return shares(self.units.overall[0])

    @cached_property
    def truth(self) -> Truth:
        """The table as losses ask for it."""
        units, schema = self.units, self.prepared.schema
        counts = np.zeros((len(units.weights), units.sensitive_sizes[0]), dtype=np.int64)
        counts[np.arange(len(counts)), units.sensitive[0]] = units.weights
        columns = schema.select([*self.options.qi, *self.options.sensitive])
        return Truth(columns, units.codes, counts, list(units.codes))

    @cached_property
    def told(self) -> RowBlocks:
        """What the table itself tells, for `workload`."""
        values = np.eye(self.units.sensitive_sizes[0])[self.units.sensitive[0]]
        return (Points(values * self.units.weights[:, None], self.units.codes),)

    @cached_property
    def revealed(self) -> tuple[float, float]:
        """P_loss of a person whose value is known outright: for the commonest and rarest value."""
        values = np.flatnonzero(self.overall)
        known = jensen_shannon(self.overall, np.eye(len(self.overall))[values])
        return float(known.min()), float(known.max())

    @cached_property
    def raw_p_loss(self) -> float:
        """P_loss of the table as it is: each combination of quasi-identifiers is a class."""
        _, cell = np.unique(self.units.codes, axis=1, return_inverse=True)
        counts = self.units.histograms(cell.ravel().astype(np.int32), int(cell.max()) + 1).counts[0]
        return float(jensen_shannon(self.overall, shares(counts)).max())

    @cached_property
    def digest(self) -> str:
        """Of all that a measured point depends on, besides its own method and requirements."""
        found = hashlib.sha256()
        settings = {
            "format": FORMAT,
            "qi": list(self.options.qi), "sensitive": list(self.options.sensitive),
            "min_support": self.min_support, "schema": self.prepared.schema.to_dict(),
        }  # fmt: skip
        found.update(json.dumps(settings, sort_keys=True, default=str).encode())
        for name in self.options.qi:
            if (levels := self.prepared.levels.get(name)) is not None:
                for nodes in (*levels.nodes, levels.leaves):
                    found.update(nodes.tobytes())
        for array in (self.units.codes, self.units.sensitive, self.units.weights):
            found.update(array.tobytes())
        return found.hexdigest()

    def options_with(self, changes: Mapping[str, Any]) -> ClassOptions:
        """The shared options with some of them changed."""
        return self.options.but(**changes)

    def prepared_for(self, options: ClassOptions) -> ClassInput:
        """The same rows in the order, and with the requirements, of these options."""
        schema = self.prepared.schema
        levels = {**self.prepared.levels, **(self.levels if options.method == "fulldomain" else {})}
        sizes = [schema[name].size for name in options.sensitive]
        counts = frequencies(
            schema, by_frequency(schema, levels, options), self.prepared.codes,
            self.prepared.weights,
        )  # fmt: skip
        return replace(
            self.prepared,
            levels=levels,
            orders=orders_for(schema, levels, options, counts),
            requirements=requirements_of(
                options.sensitive, sizes, levels=levels, **options.requires
            ),
        )


def read_subject(
    table: Any,
    *,
    source: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[SubjectKeywords],
) -> Subject:
    """Read the table; columns that are neither quasi-identifiers nor sensitive are left out.

    The options are those of `SubjectOptions`.
    """
    return subject_of(table, SubjectOptions(**options), source, progress or Silent())


def subject_of(
    table: Any, asked: SubjectOptions, source: str | None, progress: Progress
) -> Subject:
    """The table by options that are checked."""
    qi, sensitive, min_support = asked.qi, asked.sensitive, asked.min_support
    read = connect(table, null_text=tuple(asked.null_text))
    read.check_columns([*qi, sensitive, *asked.identifiers])
    options = ClassOptions(
        method="trivial", qi=tuple(qi), sensitive=(sensitive,),
        identifiers=tuple(c for c in read.columns if c not in {*qi, sensitive}),
        hierarchies=asked.hierarchies, schema=asked.schema_, nulls=asked.nulls, simulate_seed=0,
    )  # fmt: skip
    prepared = prepare(read, options, progress)
    units, _ = units_for(replace(prepared, orders={}), options)
    levels = {
        name: prepared.levels.get(name) or default_levels(prepared.schema[name]) for name in qi
    }
    counts = np.zeros((len(units.weights), units.sensitive_sizes[0]), dtype=np.int64)
    counts[np.arange(len(counts)), units.sensitive[0]] = units.weights
    least = math.ceil(min_support * units.rows - 1e-9)
    found = populations(units.codes, list(levels.values()), least, counts)
    if not found.number:
        raise UsageError(
            f"no condition on {', '.join(qi)} has {least:,} rows ({min_support:g} of the table) "
            "and not all of them",
            hint=f"lower {spelled('min_support')}, or name columns that tell rows apart",
        )
    return Subject(
        source or read.name, read, options, prepared, levels, units, found, min_support,
        read.reading,
    )  # fmt: skip
