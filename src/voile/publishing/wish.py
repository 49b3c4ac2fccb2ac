"""What was asked for: the columns, their domain, and the promise; or why it cannot be had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from voile.engines.duckdb import NULLS, Nulls, Table
from voile.errors import PromiseError, TableError, UsageError
from voile.mechanisms import AlphaBeta
from voile.privacy import Adversary, DGamma, Form
from voile.schema import Schema
from voile.schema.infer import ColumnProfile, infer_attribute

METHODS = ("alphabeta",)
PRIOR_FACTOR, POSTERIOR = 10.0, 0.2
MOST_ROWS = 4_000_000_000
LARGEST_DOMAIN = 10**250


def check_options(
    method: str,
    rows: str | None,
    nulls: str,
    prior_factor: float | None,
    prior: float | None,
    *,
    distinct: bool,
) -> Form:
    """Which form is used is the steward's choice, never the data's: the choice would leak."""
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not known", hint=f"there is {', '.join(METHODS)}")
    if rows not in (None, "set", "multiset"):
        raise UsageError(f"rows {rows!r} is not known", hint="use 'multiset' or 'set'")
    if nulls not in NULLS:
        raise UsageError(f"nulls {nulls!r} is not known", hint=f"use {', '.join(NULLS)}")
    if distinct and rows != "set":
        raise UsageError("--distinct belongs to --rows set", hint="add --rows set, or leave it out")
    if prior_factor is not None and prior is not None:
        raise UsageError("a prior and a prior factor were given", hint="give one of them")
    if prior_factor is not None and not (prior_factor > 0 and math.isfinite(prior_factor)):
        raise UsageError(f"prior-factor {prior_factor} must be positive", hint="the paper's is 10")
    return "set" if rows == "set" else "multiset"


def choose_schema(
    table: Table,
    columns: Sequence[str] | None,
    schema: Schema | str | Path | None,
    nulls: Nulls,
) -> tuple[Schema, list[str]]:
    """The public domain: the declared one, or what the chosen columns hold."""
    notes: list[str] = []
    if schema is not None:
        declared = schema if isinstance(schema, Schema) else Schema.open(schema)
        if columns is not None:
            declared = declared.select(columns)
        table.check_columns(declared.names)
        if left := [c for c in table.columns if c not in declared.names]:
            notes.append(f"left out, not in the schema: {', '.join(left)}")
        table.check_kinds(declared)
        return declared, notes
    names = table.check_columns(columns if columns is not None else list(table.columns))
    profiles = table.profiles(names, drop_nulls=nulls == "drop")
    if columns is None:
        refuse_identifiers(profiles, names)
    domain = Schema(tuple(infer_attribute(p, null=nulls == "as-value") for p in profiles))
    table.check_kinds(domain)
    notes.append("the domain was read off the table; declare it with --schema to disclose less")
    return domain, notes


def refuse_identifiers(profiles: Sequence[ColumnProfile], names: Sequence[str]) -> None:
    """A column that names people is published only when asked for by name."""
    suspects = [p for p in profiles if p.looks_like_identifier]
    if suspects:
        first = suspects[0]
        others = [n for n in names if n not in {p.name for p in suspects}]
        raise TableError(
            f"column {first.name!r} looks like an identifier ({first.distinct:,} different values "
            f"in {first.rows:,} rows): the release would list them all",
            hint=f"choose the columns: --columns {','.join(others)}",
        )


def check_nulls(table: Table, schema: Schema, nulls: Nulls) -> None:
    if nulls != "error":
        return
    allowed = {a.name for a in schema if a.null}
    found = {
        name: count
        for name, count in table.null_counts(schema.names).items()
        if name not in allowed
    }
    if found:
        listed = ", ".join(f"{name!r} ({count:,} rows)" for name, count in found.items())
        raise TableError(
            f"there are NULLs in {listed}",
            hint="--nulls drop leaves such rows out; --nulls as-value makes NULL one more value "
            "(in a codebook: null: true)",
        )


def promise_for(
    density: Fraction,
    prior_factor: float | None,
    prior: float | None,
    posterior: float,
    adversary: Adversary,
) -> DGamma:
    """d is given, or k times n/m, the prior of someone who knows only the table's size."""
    if prior is None:
        factor = PRIOR_FACTOR if prior_factor is None else prior_factor
        d = Fraction(factor) * density
        if posterior <= d:
            small = " (so the domain is too small for the table)" if d >= 1 else ""
            raise PromiseError(
                f"prior factor {factor:g} means d = {float(d):.6g}{small}, which is not below the "
                f"posterior γ = {posterior:.6g}: Theorem 4.3 needs d ≤ γ",
                hint=f"nearest feasible: --prior-factor below {posterior / float(density):.4g}"
                + (f", or --posterior above {float(d):.4g}" if d < 1 else "")
                + ", or say yourself what may be believed beforehand: --prior",
            )
        prior = float(d)
    return DGamma(prior, posterior, adversary)


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


def check_size(mechanism: AlphaBeta, rows: int, size: int) -> None:
    expected = Fraction(mechanism.retention) * rows + Fraction(mechanism.noise_mean) * size
    if expected > MOST_ROWS:
        raise PromiseError(
            f"this promise needs a view of about {float(expected):.3g} rows",
            hint="use fewer or coarser columns, a smaller prior, a larger posterior, "
            "or --max-view-ratio",
        )
