"""What local perturbation would promise and cost, before anyone sends a row.

Domains come from a codebook or from a table. What is measured on a table is for its steward.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from voile.engines.table import Nulls, Table
from voile.errors import TableError, UsageError
from voile.evaluate.planning.foresight import FOR_THE_STEWARD
from voile.evaluate.planning.local_measure import Sample, measure
from voile.evaluate.planning.local_plan import PRIORS, LocalPlan
from voile.evaluate.planning.local_wish import LocalWish, alone, choose
from voile.privacy.wording import NEARLY_SURE, chance
from voile.publishing.wish import Wish, check_nulls, choose_schema, columns_option, read_schema
from voile.schema import Schema

ONLY_IN_SETS = (
    "an (s, ρ₁, ρ₂) promise is about sets of values, for one who hears only that a value lies in "
    "the set; whoever sees the value itself is held back by ε alone"
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
    **wish: Any,
) -> LocalPlan:
    """The retentions that keep a wish, what they promise, and what errors they leave.

    Domains come from the `schema`, or from the table. With a table, what an attacker could learn
    is measured on it. `wish` is as for `LocalWish`.
    """
    asked = LocalWish(**wish)
    check_rows(rows)
    if table is None:
        found = LocalPlan(
            wish=asked,
            schema=declared(schema, columns),
            rows=rows,
            retentions=choose(asked, declared(schema, columns).sizes, rows),
            notes=(),
        )
    else:
        options = Wish(columns=columns, schema=schema, nulls=nulls)
        found = of_table(asked, table, options, tuple(null_text), rows)
    limits = alone(asked, found.schema.sizes)
    return replace(found, alone=limits, notes=(*found.notes, *remarks(found)))


def declared(schema: Schema | str | Path | None, columns: Sequence[str] | None) -> Schema:
    if schema is None:
        raise UsageError(
            "there is neither a table nor a codebook", hint="name a TABLE, or give --schema FILE"
        )
    found = read_schema(schema)
    return found if columns is None else found.select(columns)


def of_table(
    asked: LocalWish, table: Any, options: Wish, null_text: tuple[str, ...], rows: int | None
) -> LocalPlan:
    """A plan with what is measured on the table."""
    private = table if isinstance(table, Table) else Table(table, null_text=null_text)
    schema, notes = choose_schema(private, options)
    check_nulls(private, schema, options.nulls)
    keys = private.keys(schema, drop_nulls=options.drop_nulls)
    if not len(keys):
        raise TableError(
            f"table {private.name!r} has no rows", hint="give the codebook alone: --schema FILE"
        )
    rows = len(keys) if rows is None else rows
    retentions = choose(asked, schema.sizes, rows)
    source = table if isinstance(table, str) else private.name
    return LocalPlan(
        wish=asked,
        schema=schema,
        rows=rows,
        retentions=retentions,
        notes=(FOR_THE_STEWARD, *notes),
        measured=measure(Sample.of(keys, schema), retentions, asked.breach),
        command=perturb_command(source, options, null_text, schema, retentions),
    )


def check_rows(rows: int | None) -> None:
    if rows is not None and rows < 1:
        raise UsageError(f"--rows {rows} must be at least 1", hint="how many rows will be sent")


def remarks(found: LocalPlan) -> list[str]:
    """What should be known beside the numbers."""
    notes = []
    if found.wish.s_breach:
        notes.append(ONLY_IN_SETS)
    if found.wish.is_by_error:
        notes.append(BY_ERROR_ALONE)
    after = found.beliefs.after[PRIORS.index(0.1)]
    if after > NEARLY_SURE:
        notes.append(
            f"ε = {found.beliefs.epsilon:.3g} for a row promises next to nothing: a belief of 10 % "
            f"may become {chance(after)}"
        )
    for column, p in zip(found.columns, found.retentions, strict=True):
        if found.rows is not None and p * p * found.rows < 1:
            notes.append(
                f"{column.name!r} has {column.size:,} values: with a retention of {p:g} nothing "
                "can be counted of it; declare a coarser domain, or leave it out"
            )
    return notes


def perturb_command(
    source: str,
    options: Wish,
    null_text: Sequence[str],
    schema: Schema,
    retentions: Sequence[float],
) -> str:
    """The line for a shell that perturbs the table so."""
    parts = ["voile perturb", shlex.quote(source), "-o RELEASE"]
    parts += retention_options(schema, retentions)
    if options.columns is not None:
        parts.append(f"--columns {columns_option(list(options.columns))}")
    if options.schema is not None:
        parts.append(f"--schema {shlex.quote(str(options.schema))}")
    if options.nulls != "error":
        parts.append(f"--nulls {options.nulls}")
    parts += [f"--null-text {shlex.quote(text)}" for text in null_text]
    return " ".join(parts)


def retention_options(schema: Schema, retentions: Sequence[float]) -> list[str]:
    if len(set(retentions)) == 1:
        return [f"--retention {retentions[0]:.10g}"]
    return [
        f"--retention {shlex.quote(f'{name}={p:.10g}')}"
        for name, p in zip(schema.names, retentions, strict=True)
    ]
