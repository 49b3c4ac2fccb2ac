"""Publishing without naming a method: learn the domain privately, compare, take the best.

The order of things: the domain is learnt from a stated share of the budget, or declared; every
kind says what it could publish with the rest, and how far counts would be off (choosing.py); the
best of them publishes. Where even that is of no use, nothing is published, and what would help is
computed: see advice.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.engines.table import Table
from voile.errors import PromiseError, TableError, spelled
from voile.kinds.advice import AdvisedChange, changes_for, listed_changes
from voile.kinds.choosing import (
    MATTERS,
    USEFUL,
    Columns,
    EpsilonPromise,
    MethodCandidate,
    MethodChoice,
    PublicSize,
    compare,
    in_per_cent,
)
from voile.kinds.domain import (
    check_nulls,
    choose_schema,
    is_active,
    read_schema,
    refuse_identifiers,
)
from voile.kinds.manifest import weak_epsilon
from voile.kinds.options import AutomaticOptions
from voile.kinds.people import kept_rows
from voile.kinds.publishing import PublishResult, refuse_weakness
from voile.kinds.registration import Registrar
from voile.kinds.registry import kinds, publishing_kind
from voile.learning import LearningBudget, LearntSchema, learn_schema
from voile.learning.budget import Noise
from voile.learning.learner import lost as lost_column
from voile.noise import Key
from voile.privacy.gaussian import mu_for
from voile.progress import Progress, Silent
from voile.schema import Schema
from voile.schema.places import hidden_bins
from voile.signing import KeySource
from voile.units import counted

EPSILON, DELTA = 1.0, 1e-9
LOOK = 0.01
"""The share of the budget for a look at the number of rows, where nothing else is learnt."""
THRESHOLD_SHARE: Mapping[Noise, float] = {"gaussian": 0.1, "geometric": 0.999}
"""The share of δ for categories that one person alone has: geometric noise needs none of it."""
SCHEMA_SHARE: Mapping[Noise, float] = {"gaussian": 0.1, "geometric": 0.2}
"""The share of the budget for learning the domain. Geometric noise is the better one for counts of
few columns and the worse one for thresholds, where its tail counts: so more of it goes there."""
MOST_SCHEMA_SHARE: Mapping[Noise, float] = {"gaussian": 0.2, "geometric": 0.3}
"""What that share may grow to where the noise would be large beside the number of rows."""
FEW_COLUMNS = 4
"""Up to so many learnt columns geometric noise serves better, for learning and for counting."""

Spelling = Callable[[dict[str, Any]], str]
"""The command, or call, with some options changed."""


class UselessError(PromiseError):
    """Nothing that keeps the promise would be of use; what would help is in the hint."""

    def __init__(self, message: str, hint: str, changes: Sequence[AdvisedChange]) -> None:
        super().__init__(message, hint=hint)
        self.changes = tuple(changes)


@dataclass(frozen=True)
class PreparedChoice:
    """A method that was chosen, and the domain that it publishes."""

    choice: MethodChoice
    schema: LearntSchema
    names: tuple[str, ...]


def publish_best(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    register: Registrar | None = None,
    spelling: Spelling | None = None,
    address: str = "TABLE",
    **options: Any,
) -> PublishResult:
    """Publish a table by the method that errs least under the promise.

    `spelling` and `address` are how the caller writes the command, and the table in it, with the
    flags that say how it is read.
    """
    asked = AutomaticOptions(**options)
    if not (asked.weak or asked.simulate_seed is not None):
        refuse_weakness(weak_epsilon(asked.epsilon or EPSILON))  # before any work is done
    source = connect(table)
    kept = kept_rows(source, asked)
    prepared = choose_method(source if kept is None else kept.table, asked, progress or Silent())
    choice = prepared.choice
    if choice.chosen.expected_error > USEFUL and not asked.yes:
        refuse_useless(prepared, spelling or call_with, address)
    best = choice.chosen
    done = publishing_kind(best.method).publish(
        kept or source, to=to, overwrite=overwrite, progress=progress, sign=sign, register=register,
        **options_for(best, prepared, asked),
    )  # fmt: skip
    return replace(done, choice=as_published(choice, done))


def as_published(choice: MethodChoice, done: PublishResult) -> MethodChoice:
    """The choice with the exception that the release itself states."""
    if (stated := done.release.stated_beliefs()) is None:
        return choice
    return replace(choice, promise=replace(choice.promise, eta=stated.eta))


def options_for(
    best: MethodCandidate, prepared: PreparedChoice, asked: AutomaticOptions
) -> dict[str, Any]:
    """The options with which the chosen kind publishes."""
    found: dict[str, Any] = {
        "method": best.method,
        "schema": prepared.schema,
        "nulls": asked.nulls,
        "person": asked.person,
        "rows_per_person": asked.rows_per_person,
        "weak": asked.weak,
        "name": asked.name,
        "simulate_seed": asked.simulate_seed,
        **best.options,
    }
    if best.options.get("workload") is True:
        found["workload"] = list(asked.on)
    if "epsilon" not in best.options:
        found |= {"epsilon": asked.epsilon or EPSILON, "delta": asked.delta or DELTA}
    return found


# ----------------------------------------------------------------------
# the domain, and the comparison


def choose_method(source: Table, asked: AutomaticOptions, progress: Progress) -> PreparedChoice:
    """Learn the domain, and compare all ways to publish it."""
    learnt, names = learnt_domain(source, asked, progress)
    epsilon, delta = asked.epsilon or EPSILON, asked.delta or DELTA
    rows = asked.rows_per_person or 1
    promise = EpsilonPromise(epsilon, delta, learnt.account.spent(), rows)
    schema = learnt.schema
    questions = asked_columns(asked, schema, source)
    lost = tuple(i for i, attribute in enumerate(schema) if lost_column(attribute))
    bins = tuple(map(hidden_bins, schema))
    public = PublicSize(tuple(schema.sizes), float(learnt.rows), lost, questions, bins)
    return PreparedChoice(best_of(public, promise), learnt, names)


def best_of(public: PublicSize, promise: EpsilonPromise) -> MethodChoice:
    """The comparison of every kind's candidates."""
    found = [one for kind in kinds() for one in kind.candidates(public, promise)]
    if not found:
        raise PromiseError(
            f"ε = {promise.epsilon:g} leaves nothing to publish with",
            hint=f"give a larger {spelled('epsilon')}",
        )
    return compare(found, public, promise)


def learnt_domain(
    source: Table, asked: AutomaticOptions, progress: Progress
) -> tuple[LearntSchema, tuple[str, ...]]:
    """The domain with what it cost: learnt, or declared and only the number of rows looked at."""
    if not len(source):
        raise TableError("the table has no rows to publish", hint="see `voile inspect TABLE`")
    declared = known_domain(source, asked)
    names = declared.names if declared is not None else columns_for(source, asked)
    if declared is None and asked.nulls == "error":
        check_no_nulls(source, names)
    noise: Noise = "geometric" if len(names) <= FEW_COLUMNS else "gaussian"
    share = LOOK if declared is not None else asked.schema_share or SCHEMA_SHARE[noise]
    epsilon, delta = asked.epsilon or EPSILON, asked.delta or DELTA
    whole = epsilon if noise == "geometric" else mu_for(epsilon, delta) ** 2 / 2
    most = 0.0 if declared is not None or asked.schema_share else MOST_SCHEMA_SHARE[noise] * whole
    thresholds, rows = THRESHOLD_SHARE[noise] * delta, asked.rows_per_person or 1
    budget = LearningBudget(noise, share * whole, thresholds, rows_per_person=rows, most=most)
    key = Key.fresh() if asked.simulate_seed is None else Key.from_seed(asked.simulate_seed)
    found = learn_schema(
        source, names, budget, key, declared=declared, nulls=asked.nulls, progress=progress
    )
    return found, tuple(names)


def known_domain(source: Table, asked: AutomaticOptions) -> Schema | None:
    """The domain that is declared, or read off the table where that was asked for."""
    if asked.schema_ is None:
        return None
    if is_active(asked.schema_):
        return choose_schema(source, asked.columns, asked.schema_, asked.nulls)[0]
    declared = read_schema(asked.schema_)
    if asked.columns is not None:
        declared = declared.select(asked.columns)
    source.check_columns(declared.names)
    source.check_kinds(declared)
    check_nulls(source, declared, asked.nulls)
    return declared


def columns_for(source: Table, asked: AutomaticOptions) -> list[str]:
    """The columns to publish; a column that names people only where it is named."""
    names = source.check_columns(
        asked.columns if asked.columns is not None else list(source.columns)
    )
    if asked.columns is None:
        refuse_identifiers(source.profiles(names, drop_nulls=asked.nulls == "drop"), names)
    return list(names)


def check_no_nulls(source: Table, names: Sequence[str]) -> None:
    """Refuse NULLs that nobody said what to do with."""
    if found := source.null_counts(names):
        listed = ", ".join(f"{name!r} ({counted(count, 'row')})" for name, count in found.items())
        raise TableError(
            f"there are NULLs in {listed}",
            hint=f"{spelled('nulls', 'as-value')} makes NULL one more value; "
            f"{spelled('nulls', 'drop')} leaves such rows out",
        )


def asked_columns(asked: AutomaticOptions, schema: Schema, source: Table) -> tuple[Columns, ...]:
    """The columns that each of the steward's questions reads."""
    if not asked.on:
        return ()
    from voile.query import parse  # noqa: PLC0415  (few have questions)

    found = []
    for sql in asked.on:
        query = parse(sql, schema, {}, asked.name or source.name)
        parts = [*query.conditions, *query.values, *query.groups]
        places = {schema.names.index(n) for part in parts for n in part.attributes}
        found.append(tuple(sorted(places)) or (0,))
    return tuple(dict.fromkeys(found))


# ----------------------------------------------------------------------
# where nothing is of use


def refuse_useless(prepared: PreparedChoice, spelling: Spelling, address: str) -> None:
    """Stop, and list the cheapest changes with the error that each would give."""
    choice, changes = prepared.choice, helpful_changes(prepared)
    count = MATTERS * choice.public.rows
    why = (
        f"a count of 1 % of the rows (about {count:,.0f}) would be off by about "
        f"{in_per_cent(choice.chosen.expected_error)}"
    )
    if choice.public.lost and not math.isfinite(choice.chosen.expected_error):
        why = (
            f"of {len(choice.public.lost):,} of {counted(len(prepared.names), 'column')} no values "
            f"could be learnt from about {choice.public.rows:,.0f} rows"
        )
    listed = listed_changes(changes, spelling, address)
    anyway = f"publish it all the same: {spelling({'yes': True})}"
    raise UselessError(
        f"nothing of use can be published under ε = {choice.promise.epsilon:g}: {why}",
        f"{listed}or {anyway}" if listed else anyway,
        changes,
    )


def helpful_changes(prepared: PreparedChoice) -> list[AdvisedChange]:
    """What would help, where nothing of use can be had: at most three changes."""
    choice = prepared.choice
    noise = [column.scales[-1] for column in prepared.schema.account.columns]
    faintness = max(noise, default=0.0) / max(choice.public.rows, 1.0)
    return changes_for(choice, prepared.names, best_of, faintness)


def call_with(changes: dict[str, Any]) -> str:
    """The call in Python with some options changed."""
    words = ", ".join(f"{name}={value!r}" for name, value in changes.items())
    return f"voile.publish(table, {words})"
