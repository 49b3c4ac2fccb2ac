"""A plan of local perturbation: what retentions promise, and which errors they leave."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from voile.engines import connect
from voile.engines.table import Nulls, Table
from voile.errors import TableError, UsageError, spelled
from voile.evaluate.planning.expected import finite
from voile.evaluate.planning.foresight import FOR_THE_STEWARD
from voile.evaluate.planning.local_choice import (
    ClientsNeeded,
    Condition,
    alone,
    breach_of,
    breach_of_sets,
    check_promise,
    choose,
    clients_needed,
    deviations,
    largest,
    largest_variance,
    rows_by_hoeffding,
    rows_if_normal,
    shortened,
    worst_joint_variance,
)
from voile.evaluate.planning.local_measure import RowSample, TableMeasures, measure
from voile.kinds.domain import check_nulls, choose_schema, columns_option, read_schema
from voile.kinds.options import DomainOptions
from voile.options.planning import LocalPlanKeywords, LocalPlanOptions
from voile.options.reading import ReadingOptions
from voile.privacy.local import (
    amplification,
    belief_after,
    epsilon_of,
    retention_for_ratio,
    row_amplification,
)
from voile.schema import Schema
from voile.units import NEARLY_SURE, chance

PRIORS = (0.01, 0.1, 0.5)
"""Beliefs of which a plan says what they may become."""
MOST_CONDITIONS = 4
"""Conjunctions of up to so many columns are foreseen."""
HALF = 0.5
POINTS = 40


@dataclass(frozen=True)
class Beliefs:
    """What beliefs of 1 %, 10 % and 50 % may become, by the largest likelihood ratio."""

    ratio: Fraction | None

    @property
    def after(self) -> tuple[float, ...]:
        """What each of PRIORS may become."""
        return tuple(float(belief_after(prior, self.ratio)) for prior in PRIORS)

    @property
    def epsilon(self) -> float:
        """ln of the ratio."""
        return epsilon_of(self.ratio)

    def to_list(self) -> list[dict[str, float]]:
        """Each belief before and after."""
        return [{"before": b, "after": a} for b, a in zip(PRIORS, self.after, strict=True)]


@dataclass(frozen=True)
class ColumnPlan:
    """One column: its retention, what that promises, and the error of conditions on it."""

    name: str
    size: int
    retention: float
    alone: float | None
    """The largest retention that the options would allow if this were the only column."""
    rows: int | None

    @property
    def beliefs(self) -> Beliefs:
        """What beliefs about this column's value may become."""
        return Beliefs(amplification(self.retention, Fraction(1, self.size)))

    def stderr(self, mass: float) -> float | None:
        """Of a count, in the worst table: conditions on values of this replacing mass."""
        if self.rows is None:
            return None
        variance = largest_variance([Condition(self.retention, mass)])
        return math.sqrt(variance * self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "name": self.name,
            "size": str(self.size),
            "retention": self.retention,
            "alone": self.alone,
            "epsilon": finite(self.beliefs.epsilon),
            "beliefs": self.beliefs.to_list(),
            "stderr_value": self.stderr(1 / self.size),
            "stderr_half": self.stderr(HALF),
        }


@dataclass(frozen=True)
class ConjunctionError:
    """The most that a count of the rows that meet conditions can be off by chance.

    One condition on each of so many columns, whatever the conditions and the table.
    """

    retentions: tuple[float, ...]
    """Of the columns; a plan tells of those that are retained least."""
    rows: int | None
    options: LocalPlanOptions

    @property
    def variance(self) -> float:
        """n·Var of the fraction."""
        return worst_joint_variance(self.retentions)

    @property
    def factor(self) -> float:
        """The standard error of the fraction, times √n."""
        return math.sqrt(self.variance)

    @property
    def share(self) -> float | None:
        """The standard error of the fraction."""
        return None if self.rows is None else self.factor / math.sqrt(self.rows)

    @property
    def rows_needed(self) -> int | None:
        """For the requested error, where the error is nearly normal."""
        if self.options.error is None:
            return None
        return rows_if_normal(self.variance, self.options.error, self.options.confidence)

    @property
    def rows_hoeffding(self) -> int | None:
        """The same without that assumption."""
        if self.options.error is None:
            return None
        return rows_by_hoeffding(self.retentions, self.options.error, self.options.confidence)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        share = self.share
        return {
            "conditions": len(self.retentions),
            "factor": self.factor,
            "stderr": None if share is None or self.rows is None else share * self.rows,
            "share": share,
            "margin": None if share is None else share * deviations(self.options.confidence),
            "rows_needed": self.rows_needed,
            "rows_hoeffding": self.rows_hoeffding,
        }


@dataclass(frozen=True)
class LocalPoint:
    """One retention for all columns: a row's ε, its beliefs, and errors of conjunctions."""

    retention: float
    beliefs: Beliefs
    errors: tuple[ConjunctionError, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "retention": self.retention,
            "epsilon": finite(self.beliefs.epsilon),
            "beliefs": list(self.beliefs.after),
            "factors": [error.factor for error in self.errors],
        }


@dataclass(frozen=True)
class LocalPlan:
    """What `voile plan --local` shows."""

    options: LocalPlanOptions
    schema: Schema
    rows: int | None
    retentions: tuple[float, ...]
    notes: tuple[str, ...]
    alone: tuple[float, ...] | None = None
    measured: TableMeasures | None = None
    command: str | None = None
    """The line that would carry it out; None where the domain has no file."""

    @property
    def columns(self) -> tuple[ColumnPlan, ...]:
        """The plan of each column."""
        limits = self.alone or (None,) * len(self.retentions)
        return tuple(
            ColumnPlan(a.name, a.size, p, limit, self.rows)
            for a, p, limit in zip(self.schema, self.retentions, limits, strict=True)
        )

    @property
    def beliefs(self) -> Beliefs:
        """Of a whole row."""
        return Beliefs(row_amplification(column.beliefs.ratio for column in self.columns))

    @property
    def whole_row(self) -> float | None:
        """The retention of a single coin for the whole row that keeps the row's promise.

        Of a requested retention, that is the row's ε. None where no whole row is asked about.
        """
        options, size, ratio = self.options, self.schema.size, self.beliefs.ratio
        if (
            options.is_by_error
            or options.epsilon_column is not None
            or breach_of_sets(options)
            or ratio is None
        ):
            return None
        alike = options.retention is not None
        found = (
            retention_for_ratio(ratio, Fraction(1, size)) if alike else largest(options, [size])[0]
        )
        return shortened(found, math.floor)

    @property
    def errors(self) -> tuple[ConjunctionError, ...]:
        """The errors of conjunctions on one column and on more."""
        return conjunction_errors(self.retentions, self.rows, self.options)

    @property
    def clients(self) -> ClientsNeeded | None:
        """For the requested error of a condition on one column, the one that is retained least."""
        if self.options.error is None:
            return None
        return clients_needed(min(self.retentions), self.options.error, 1 - self.options.confidence)

    def curve(self) -> tuple[LocalPoint, ...]:
        """The same for all columns alike at other retentions, and at the plan's own."""
        evenly = np.linspace(0.02, 0.98, POINTS).round(6).tolist()
        return tuple(self.at(p) for p in sorted({*evenly, *self.retentions} - {1.0}))

    def at(self, retention: float) -> LocalPoint:
        """The plan's numbers at one retention for all columns."""
        sizes = self.schema.sizes
        ratio = row_amplification(amplification(retention, Fraction(1, size)) for size in sizes)
        alike = [retention] * len(sizes)
        return LocalPoint(
            retention, Beliefs(ratio), conjunction_errors(alike, self.rows, self.options)
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "wish": self.options.to_dict(),
            "rows": self.rows,
            "columns": [column.to_dict() for column in self.columns],
            "epsilon": finite(self.beliefs.epsilon),
            "beliefs": self.beliefs.to_list(),
            "whole_row": self.whole_row,
            "errors": [error.to_dict() for error in self.errors],
            "clients": self.clients.to_dict() if self.clients else None,
            "measured": self.measured.to_dict() if self.measured else None,
            "curve": [point.to_dict() for point in self.curve()],
            "command": self.command,
            "notes": list(self.notes),
        }


def conjunction_errors(
    retentions: Sequence[float], rows: int | None, options: LocalPlanOptions
) -> tuple[ConjunctionError, ...]:
    """Of the columns that are retained least, one and more."""
    least = tuple(sorted(retentions)[:MOST_CONDITIONS])
    return tuple(ConjunctionError(least[:k], rows, options) for k in range(1, len(least) + 1))


# ----------------------- what local perturbation would promise and cost, before anyone sends a row


ONLY_IN_SETS = (
    "an (s, ρ₁, ρ₂) promise is about sets of rows, of any shape, that are less than s times as "
    "likely as by replacement, for one who hears only that a row lies in the set; whoever sees the "
    "row itself is held back by ε alone"
)
ON_ONE_COLUMN = (
    "the error is about a condition on one column; for conditions on several columns together, the "
    "errors and the rows needed stand in the table of conditions"
)
BY_ERROR_ALONE = "the retention was chosen by the error alone: read what is left of the promise"


def plan_local(
    table: Any | None = None,
    *,
    schema: Schema | str | Path | None = None,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    nulls: Nulls = "error",
    null_text: Sequence[str] = (),
    source: str | None = None,
    **options: Unpack[LocalPlanKeywords],
) -> LocalPlan:
    """The retentions that keep what is asked for, what they promise, and what errors they leave.

    Domains come from the `schema`, or from the table. With a table, what an attacker could learn
    is measured on it; `source` is what the plan's command calls it. `options` are those of
    `LocalPlanOptions`.
    """
    given: dict[str, Any] = dict(options)  # the model reads a guarantee as its two numbers
    asked = LocalPlanOptions(**given)
    check_promise(asked)
    check_rows(rows)
    domain = DomainOptions(columns=columns, schema=schema, nulls=nulls)
    found = (
        of_codebook(asked, domain, rows)
        if table is None
        else of_table(
            asked,
            connect(table, null_text=null_text),
            domain,
            rows,
            source or (table if isinstance(table, str) else None),
        )
    )
    limits = alone(asked, found.schema.sizes)
    return replace(found, alone=limits, notes=(*found.notes, *remarks(found)))


def of_codebook(asked: LocalPlanOptions, domain: DomainOptions, rows: int | None) -> LocalPlan:
    """A plan of what is declared, before there is a table."""
    if domain.schema_ is None:
        raise UsageError(
            "there is neither a table nor a codebook",
            hint=f"name a table, or give {spelled('schema')}",
        )
    schema = read_schema(domain.schema_)
    if domain.columns is not None:
        if len(set(domain.columns)) < len(domain.columns):
            raise UsageError(
                f"a column is named twice: {', '.join(domain.columns)}",
                hint="name each column once",
            )
        schema = schema.select(domain.columns)
    retentions = choose(asked, schema.sizes, rows)
    found = LocalPlan(asked, schema, rows, retentions, notes=())
    if isinstance(domain.schema_, Schema):
        return found
    parts = ["voile spec", shlex.quote(str(domain.schema_)), "-o SPEC", *settings(found)]
    return replace(found, command=" ".join([*parts, *chosen_columns(domain)]))


def of_table(
    asked: LocalPlanOptions,
    private: Table,
    domain: DomainOptions,
    rows: int | None,
    source: str | None,
) -> LocalPlan:
    """A plan with what is measured on the table."""
    schema, notes = choose_schema(private, domain.columns, domain.schema_, domain.nulls)
    check_nulls(private, schema, domain.nulls)
    keys = private.keys(schema, drop_nulls=domain.nulls == "drop")
    if not len(keys):
        raise TableError(
            f"table {private.name!r} has no rows",
            hint=f"give the codebook alone: {spelled('schema')}",
        )
    rows = len(keys) if rows is None else rows
    retentions = choose(asked, schema.sizes, rows)
    found = LocalPlan(
        options=asked,
        schema=schema,
        rows=rows,
        retentions=retentions,
        notes=(FOR_THE_STEWARD, *notes),
        measured=measure(RowSample.of(keys, schema), retentions, breach_of(asked)),
    )
    named = source or private.name
    return replace(found, command=perturb_command(named, found, domain, private.reading))


def check_rows(rows: int | None) -> None:
    """Refuse less than one row."""
    if rows is not None and rows < 1:
        raise UsageError(
            f"{spelled('rows', rows)} must be at least 1", hint="how many rows will be sent"
        )


def remarks(found: LocalPlan) -> list[str]:
    """What should be known beside the numbers."""
    notes = []
    if breach_of_sets(found.options):
        notes.append(ONLY_IN_SETS)
    if found.options.is_by_error:
        notes.append(BY_ERROR_ALONE)
    if found.options.error is not None and len(found.columns) > 1:
        notes.append(ON_ONE_COLUMN)
    after = found.beliefs.after[PRIORS.index(0.1)]
    if after > NEARLY_SURE:
        notes.append(
            f"ε = {found.beliefs.epsilon:.3g} for a row promises next to nothing: a belief of 10 % "
            f"may become {chance(after)}"
        )
    for column, p in zip(found.columns, found.retentions, strict=True):
        if found.rows is not None and p * p * found.rows < 1:
            notes.append(
                f"nothing can be counted of {column.name!r} ({column.size:,} values) with a "
                f"retention of {p:g} and {found.rows:,} rows: a coarser domain helps, or more rows"
            )
    return notes


# ---------------------------------------------------------------------- the line to type


def perturb_command(
    source: str, found: LocalPlan, domain: DomainOptions, reading: ReadingOptions
) -> str:
    """The line for a shell that perturbs the table so."""
    parts = ["voile perturb", shlex.quote(source), "-o RELEASE", *settings(found)]
    parts += chosen_columns(domain)
    if domain.schema_ is not None:
        parts.append(f"--schema {shlex.quote(str(domain.schema_))}")
    if domain.nulls != "error":
        parts.append(f"--nulls {domain.nulls}")
    parts += map(shlex.quote, reading.words())
    return " ".join(parts)


def settings(found: LocalPlan) -> list[str]:
    """The retentions, and the row's ε where it was asked for, which then is checked again."""
    requested = found.options.epsilon
    checked = [] if requested is None else [f"--most-epsilon {requested:.10g}"]
    if len(set(found.retentions)) == 1:
        return [f"--retention {found.retentions[0]:.10g}", *checked]
    named = zip(found.schema.names, found.retentions, strict=True)
    return [*(f"--retention {shlex.quote(f'{name}={p:.10g}')}" for name, p in named), *checked]


def chosen_columns(domain: DomainOptions) -> list[str]:
    """The flag that chooses columns, where some were chosen."""
    return [] if domain.columns is None else [f"--columns {columns_option(list(domain.columns))}"]
