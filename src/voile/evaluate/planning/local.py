"""What local perturbation would promise and cost, before anyone sends a row.

Domains come from a codebook or from a table. What is measured on a table is for its steward.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.engines.table import Nulls
from voile.errors import TableError, UsageError, spelled
from voile.evaluate.planning.foresight import FOR_THE_STEWARD
from voile.evaluate.planning.local_choice import (
    alone,
    breach_of,
    breach_of_sets,
    check_promise,
    choose,
)
from voile.evaluate.planning.local_measure import Sample, measure
from voile.evaluate.planning.local_plan import PRIORS, LocalPlan
from voile.kinds.domain import check_nulls, choose_schema, columns_option, read_schema
from voile.kinds.options import DomainOptions
from voile.options.planning import LocalPlanOptions
from voile.privacy.guarantee import NEARLY_SURE, chance
from voile.schema import Schema

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
    **options: Any,
) -> LocalPlan:
    """The retentions that keep what is asked for, what they promise, and what errors they leave.

    Domains come from the `schema`, or from the table. With a table, what an attacker could learn
    is measured on it. `options` are those of `LocalPlanOptions`.
    """
    asked = LocalPlanOptions(**options)
    check_promise(asked)
    check_rows(rows)
    domain = DomainOptions(columns=columns, schema=schema, nulls=nulls)
    found = (
        of_codebook(asked, domain, rows)
        if table is None
        else of_table(asked, table, domain, tuple(null_text), rows)
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
    table: Any,
    domain: DomainOptions,
    null_text: tuple[str, ...],
    rows: int | None,
) -> LocalPlan:
    """A plan with what is measured on the table."""
    private = connect(table, null_text=null_text)
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
        measured=measure(Sample.of(keys, schema), retentions, breach_of(asked)),
    )
    source = table if isinstance(table, str) else private.name
    return replace(found, command=perturb_command(source, found, domain, null_text))


def check_rows(rows: int | None) -> None:
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
    source: str, found: LocalPlan, domain: DomainOptions, null_text: Sequence[str]
) -> str:
    """The line for a shell that perturbs the table so."""
    parts = ["voile perturb", shlex.quote(source), "-o RELEASE", *settings(found)]
    parts += chosen_columns(domain)
    if domain.schema_ is not None:
        parts.append(f"--schema {shlex.quote(str(domain.schema_))}")
    if domain.nulls != "error":
        parts.append(f"--nulls {domain.nulls}")
    parts += [f"--null-text {shlex.quote(text)}" for text in null_text]
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
    return [] if domain.columns is None else [f"--columns {columns_option(list(domain.columns))}"]
