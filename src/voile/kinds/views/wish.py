"""What was asked for: the columns, their domain, and the promise; or why it cannot be had."""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from voile.engines.table import NULLS, Nulls, Table
from voile.errors import PromiseError, TableError, UsageError
from voile.kinds.views.noise_prior import Given
from voile.mechanisms import Publishing, Shaped
from voile.privacy import Adversary, DGamma, Form, LikelihoodRatio
from voile.privacy.series import check_views
from voile.schema import Schema
from voile.schema.infer import ColumnProfile, infer_attribute
from voile.units import counted

METHODS = ("alphabeta",)
PRIOR_FACTOR, POSTERIOR = 10.0, 0.2
MOST_ROWS = 4_000_000_000
MOST_DRAWN = 3e8
"""Hits that shaped noise may take: a few minutes; likely tuples are hit many times."""
LARGEST_DOMAIN = 10**250
SERIES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Wish:
    """All that a steward asks for, checked before the table is read.

    The prior is `prior`, or `prior_factor`·n/m (10 if neither is given). `rows` is the form, and
    is the steward's choice, never the data's: the choice would leak.
    """

    method: str = "alphabeta"
    prior_factor: float | None = None
    prior: float | None = None
    posterior: float = POSTERIOR
    adversary: Adversary = "independent"
    retention: float | None = None
    max_view_ratio: float | None = None
    columns: Sequence[str] | None = None
    schema: Schema | str | Path | Mapping[str, Any] | None = None
    nulls: Nulls = "error"
    rows: Form | None = None
    distinct: bool = False
    name: str | None = None
    simulate_seed: int | None = None
    noise_prior: Given | None = None
    """What noise is shaped by: 'product' (the table's own marginals), a file, or chances."""
    noise_floor: float | None = None
    """The share of shaped noise that is spread evenly."""
    series: str | None = None
    """The name of the series that this is a view of; the options below are for a series."""
    views: int | None = None
    """How many views it may have (4 if nothing is said)."""
    changes_at_most: int | None = None
    """A public bound on the rows added or removed between two views; 0: the table never changes."""
    always_fresh: bool = False
    """A new view also where the table has not changed, so that nobody learns that."""
    ledger: str | Path | None = None
    """The steward's file of the series; NAME.series beside the release if not given."""

    def __post_init__(self) -> None:
        self._check_words()
        self._check_shape()
        self._check_series()
        if self.prior_factor is not None and self.prior is not None:
            raise UsageError("a prior and a prior factor were given", hint="give one of them")
        factor = self.prior_factor
        if factor is not None and not (factor > 0 and math.isfinite(factor)):
            raise UsageError(f"prior-factor {factor} must be positive", hint="the paper's is 10")
        # Any prior below the posterior will do where it is not known yet.
        DGamma(self.prior or self.posterior / 2, self.posterior, self.adversary)
        if self.retention is not None and not 0 < self.retention <= 1:
            raise UsageError(
                f"retention {self.retention} must lie in (0, 1]", hint="the paper's is 0.5"
            )

    def _check_words(self) -> None:
        if self.method not in METHODS:
            raise UsageError(
                f"method {self.method!r} is not known",
                hint=f"there is {', '.join(METHODS)}, and those that group rows: see --help",
            )
        if self.rows not in (None, "set", "multiset"):
            raise UsageError(f"rows {self.rows!r} is not known", hint="use 'multiset' or 'set'")
        if self.nulls not in NULLS:
            raise UsageError(f"nulls {self.nulls!r} is not known", hint=f"use {', '.join(NULLS)}")
        if self.distinct and self.rows != "set":
            raise UsageError(
                "--distinct belongs to --rows set", hint="add --rows set, or leave it out"
            )

    def _check_shape(self) -> None:
        if self.noise_prior is None:
            if self.noise_floor is not None:
                raise UsageError("--noise-floor belongs to --noise-prior", hint="give both")
            return
        if self.form == "set":
            raise UsageError(
                "--noise-prior is for --rows multiset",
                hint="a likely tuple needs several copies of noise, which a set cannot hold",
            )
        if self.max_view_ratio is not None:
            raise UsageError(
                "--max-view-ratio does not go with --noise-prior",
                hint="a smaller --retention makes the view smaller",
            )

    def _check_series(self) -> None:
        own = {"--views": self.views, "--changes-at-most": self.changes_at_most,
               "--always-fresh": self.always_fresh or None, "--ledger": self.ledger}  # fmt: skip
        if self.series is None:
            if given := [option for option, value in own.items() if value is not None]:
                raise UsageError(f"{given[0]} belongs to --series", hint="name the series")
            return
        if not SERIES.fullmatch(self.series):
            raise UsageError(
                f"{self.series!r} cannot name a series",
                hint="use letters, digits, '-', '_' and '.', such as people-by-quarter",
            )
        if self.views is not None:
            check_views(self.views)
        if self.changes_at_most is not None and self.changes_at_most < 0:
            raise UsageError(
                f"--changes-at-most {self.changes_at_most} must not be negative",
                hint="count the rows that are added and those that are removed; 0 means never",
            )
        for option, value in (("--noise-prior", self.noise_prior),
                              ("--max-view-ratio", self.max_view_ratio)):  # fmt: skip
            if value is not None:
                raise UsageError(f"{option} does not go with --series", hint="leave one out")

    @property
    def form(self) -> Form:
        return self.rows or "multiset"

    @property
    def drop_nulls(self) -> bool:
        return self.nulls == "drop"

    @property
    def tells_rows(self) -> bool:
        """Whether a published parameter is a function of n, from which n follows."""
        return self.prior is None or self.max_view_ratio is not None


def choose_schema(table: Table, wish: Wish) -> tuple[Schema, list[str]]:
    """The public domain: the declared one, or what the chosen columns hold."""
    notes: list[str] = []
    columns = [wish.columns] if isinstance(wish.columns, str) else wish.columns
    if wish.schema is not None:
        declared = read_schema(wish.schema)
        if columns is not None:
            declared = declared.select(columns)
        table.check_columns(declared.names)
        if left := [c for c in table.columns if c not in declared.names]:
            why = "not in the schema" if columns is None else "not asked for"
            notes.append(f"left out, {why}: {', '.join(left)}")
        table.check_kinds(declared)
        return declared, notes + dropped_times(table, declared.names) + rounding(table, declared)
    names = table.check_columns(columns if columns is not None else list(table.columns))
    if wish.drop_nulls and not table.complete_rows(names):
        empty = [name for name, count in table.null_counts(names).items() if count == len(table)]
        raise TableError(
            "no row is without NULLs"
            + (f", for {', '.join(map(repr, empty))} holds nothing but NULLs" if empty else ""),
            hint="leave such columns out with --columns, or use --nulls as-value",
        )
    profiles = table.profiles(names, drop_nulls=wish.drop_nulls)
    if columns is None:
        refuse_identifiers(profiles, names)
    domain = Schema(tuple(infer_attribute(p, null=wish.nulls == "as-value") for p in profiles))
    table.check_kinds(domain)
    notes.append("the domain was read off the table; declare it with --schema to disclose less")
    return domain, notes + dropped_times(table, names)


def read_schema(schema: Schema | str | Path | Mapping[str, Any]) -> Schema:
    if isinstance(schema, Schema):
        return schema
    return Schema.from_dict(schema) if isinstance(schema, Mapping) else Schema.open(schema)


def dropped_times(table: Table, names: Sequence[str]) -> list[str]:
    cut = [name for name in names if name in table.with_time_of_day]
    return [f"only the day (UTC) is kept of {', '.join(cut)}"] if cut else []


def rounding(table: Table, schema: Schema) -> list[str]:
    return [
        f"{count:,} values of {name} were rounded to steps of {schema[name].domain.step:g}: "  # type: ignore[union-attr]
        "answers are about the rounded values"
        for name, count in table.rounded(schema).items()
    ]


def refuse_identifiers(profiles: Sequence[ColumnProfile], names: Sequence[str]) -> None:
    """A column that names people is published only when asked for by name."""
    suspects = [p for p in profiles if p.looks_like_identifier]
    if suspects:
        first = suspects[0]
        others = [n for n in names if n not in {p.name for p in suspects}]
        raise TableError(
            f"column {first.name!r} looks like an identifier ({first.distinct:,} different values "
            f"in {first.rows:,} rows): the release would list them all",
            hint=f"choose the columns: --columns {columns_option(others)}"
            if others
            else "there is nothing else in the table; group the values first",
        )


def columns_option(names: Sequence[str]) -> str:
    """Names as --columns takes them, ready for a shell."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return shlex.quote(line.getvalue())


def weak_prior(promise: DGamma, size: int) -> list[str]:
    """A warning where the promise covers nobody who knows that the person is in the table."""
    if Fraction(promise.prior) * size >= 1:
        return []
    return [
        f"d = {promise.prior:.3g} is below 1/m = {float(Fraction(1, size)):.3g}: someone who knows "
        "that a person is in the table, and nothing else, believes more than that already, and "
        "is promised against nothing"
    ]


def weakened(wished: DGamma, promise: DGamma) -> list[str]:
    """Shaped noise promises less than was asked for to records that are not likely."""
    if promise.prior >= wished.prior * (1 - 1e-6):
        return []
    return [
        f"asked for d = {wished.prior:.3g}: noise with a shape promises that to likely records, "
        f"and d = {promise.prior:.3g} to all; a larger --noise-floor promises more to all"
    ]


def linked_list(promise: DGamma, ratio: LikelihoodRatio) -> list[str]:
    """What the default does not promise against, in a number."""
    if promise.adversary == "exclusive":
        return []
    reached = float(ratio.linked_posterior(promise.prior))
    return [
        "someone who knows that a person is in the table, and has a list of records that could be "
        f"theirs, may come to believe in one of them with up to {reached:.3g}; --adversary "
        f"exclusive keeps that below {promise.posterior:g}"
    ]


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
        listed = ", ".join(f"{name!r} ({counted(count, 'row')})" for name, count in found.items())
        raise TableError(
            f"there are NULLs in {listed}",
            hint="--nulls drop leaves such rows out; --nulls as-value makes NULL one more value "
            "(in a codebook: null: true)",
        )


def promise_for(density: Fraction, wish: Wish) -> DGamma:
    """d is given, or k times n/m, the prior of someone who knows only the table's size."""
    prior, posterior = wish.prior, wish.posterior
    if prior is None:
        factor = PRIOR_FACTOR if wish.prior_factor is None else wish.prior_factor
        d = Fraction(factor) * density
        if posterior <= d:
            most = float(Fraction(posterior) / density)
            ways = [f"--prior-factor below {most:.4g}"] if most > 1 else []
            ways += [f"--posterior above {float(d):.4g}"] if d < 1 else []
            ways += ["more or finer columns, so that the domain is larger", "--prior with a number"]
            raise PromiseError(
                f"prior factor {factor:g} means d = {float(d):.6g}, which is not below the "
                f"posterior γ = {posterior:.6g}: Theorem 4.3 needs d ≤ γ",
                hint="nearest feasible: " + ", or ".join(ways),
            )
        prior = float(d)
    return DGamma(prior, posterior, wish.adversary)


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


def check_size(mechanism: Publishing, rows: int, size: int) -> None:
    if isinstance(mechanism, Shaped) and mechanism.drawn(size) > MOST_DRAWN:
        raise PromiseError(
            f"noise of this shape needs about {mechanism.drawn(size):.3g} draws, more than "
            f"{MOST_DRAWN:.3g}: the prior has most of its mass on few tuples",
            hint="use a smaller prior, a larger posterior, fewer skewed columns, or even noise",
        )
    expected = mechanism.retention * rows + mechanism.expected_noise(size)
    if expected > MOST_ROWS:
        raise PromiseError(
            f"this promise needs a view of about {expected:.3g} rows",
            hint="use fewer or coarser columns, a smaller prior, a larger posterior, "
            "or --max-view-ratio",
        )
