"""The terms of a series: made by its first view, and the same for all that follow."""

from __future__ import annotations

from typing import Any

from voile.engines.table import Table
from voile.errors import PromiseError, SchemaError, spelled
from voile.kinds.domain import read_schema
from voile.kinds.views.ledger import Terms
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.steps import Prepared, prepare
from voile.privacy.series import plan_series
from voile.progress import Progress
from voile.query.rows import HISTORY, SCORE, SPREAD
from voile.schema import Schema

VIEWS = 4
REPEATED = (
    "prior_factor", "prior", "posterior", "adversary", "retention", "form", "distinct", "nulls",
)  # fmt: skip
"""Options that are the same for all views."""


def begin(table: Table, options: ViewOptions, progress: Progress) -> tuple[Prepared, Terms]:
    """The terms of a new series, for this table and all that follow it."""
    prepared = prepare(table, options, progress)
    check_columns(prepared.schema)
    noise = plan_series(
        prepared.promise,
        options.form,
        options.views or VIEWS,
        changing=options.changes_at_most != 0,
        retention=options.retention,
    )
    assert options.series is not None  # noqa: S101
    terms = Terms(
        name=options.series,
        noise=noise,
        promise=prepared.promise,
        changes_at_most=options.changes_at_most,
        schema=prepared.schema,
        rows_told=options.tells_rows,
        simulated=options.simulate_seed is not None,
        options={option: getattr(options, option) for option in REPEATED},
    )
    return prepared, terms


def check_columns(schema: Schema) -> None:
    taken = {HISTORY, SCORE, SPREAD} & {name.lower() for name in schema.names}
    if taken:
        raise SchemaError(
            f"a series keeps its own column {taken.pop()!r}", hint="rename that of the table"
        )


def resume(table: Table, options: ViewOptions, terms: Terms, progress: Progress) -> Prepared:
    """Read the table as the series' terms have it; refuse what contradicts them."""
    check_terms(options, terms)
    same = options.but(
        prior=terms.promise.prior, prior_factor=None, schema=terms.schema, columns=None
    )
    return prepare(table, same, progress)


def check_terms(options: ViewOptions, terms: Terms) -> None:
    given: dict[str, Any] = {option: getattr(options, option) for option in REPEATED}
    given |= {"series": options.series, "simulated": options.simulate_seed is not None}
    kept: dict[str, Any] = terms.options | {"series": terms.name, "simulated": terms.simulated}
    for option, now, first in (
        ("views", options.views, terms.noise.views),
        ("changes_at_most", options.changes_at_most, terms.changes_at_most),
    ):
        if now is not None:  # what is not said stays as it is
            given[option], kept[option] = now, first
    for option, first in kept.items():
        if given[option] != first:
            raise different(terms, spelt(option, first), spelt(option, given[option]))
    check_schema(options, terms)


def check_schema(options: ViewOptions, terms: Terms) -> None:
    names = list(terms.schema.names)
    columns = options.columns
    if options.schema_ is not None:
        declared = read_schema(options.schema_)
        declared = declared if columns is None else declared.select(columns)
        for name in (*names, *declared.names):
            if name not in declared.names or name not in names:
                raise different(terms, f"the columns {', '.join(names)}",
                                f"{', '.join(declared.names)}")  # fmt: skip
            if declared[name] != terms.schema[name]:
                raise different(terms, f"another domain of {name!r}", "this one")
    elif columns is not None and list(columns) != names:
        raise different(terms, spelled("columns", names), spelled("columns", list(columns)))


def different(terms: Terms, first: str, now: str) -> PromiseError:
    return PromiseError(
        f"the series {terms.name!r} was begun with {first}, not {now}",
        hint="give the same options for every view, or begin another series under another name",
    )


def spelt(option: str, value: Any) -> str:
    """An option as the caller would give it."""
    if option == "simulated":
        return spelled("simulate_seed") if value else "secret coins"
    name = {"form": "rows"}.get(option, option)
    return f"no {spelled(name)}" if value is None or value is False else spelled(name, value)
