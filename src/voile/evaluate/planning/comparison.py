"""All methods under one promise, before anything is published: what `voile plan` shows.

The comparison is the one by which `voile publish` chooses. Beside it stands what the chosen
methods were off by in one release each from a fixed seed, which is thrown away: made from the
private table, for the steward alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from voile.engines import connect
from voile.errors import VoileError
from voile.evaluate.felt import FeltError, felt_error
from voile.evaluate.planning.foresight import FOR_THE_STEWARD
from voile.kinds.automatic import PreparedChoice, best_of, choose_method, options_for
from voile.kinds.choosing import USEFUL, MethodCandidate, in_per_cent
from voile.kinds.options import AutomaticOptions
from voile.kinds.people import kept_rows
from voile.kinds.registry import publishing_kind
from voile.progress import Progress, Silent
from voile.records import Record

SEED = 0
"""The coins of releases that are thrown away; always the same, so that plans are repeatable."""
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
"""For which errors are compared; the promise's own is among them."""


@dataclass(frozen=True)
class ComparedMethod(Record):
    """One method, and what its counts are off by."""

    method: str
    about: str
    expected_error: float
    chosen: bool
    felt: FeltError | None
    """Of one release from a fixed seed; None where it was not measured."""


@dataclass(frozen=True)
class ErrorAt(Record):
    """The expected error of each method at another ε."""

    epsilon: float
    errors: Mapping[str, float]


@dataclass(frozen=True)
class MethodComparison(Record):
    """What `voile plan` shows."""

    name: str
    rows: int
    columns: int
    promise: Mapping[str, Any]
    in_words: str
    method: str
    why: str
    expected_error: float
    useful: bool
    methods: tuple[ComparedMethod, ...]
    by_epsilon: tuple[ErrorAt, ...]
    notes: tuple[str, ...]


def compare_methods(
    table: Any,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> MethodComparison:
    """Compare all methods for a table. Nothing is published."""
    asked = AutomaticOptions(**{**options, "simulate_seed": SEED})
    given = connect(table)
    kept = kept_rows(given, asked)
    source = given if kept is None else kept.table
    work = progress or Silent()
    prepared = choose_method(source, asked, work)
    choice = prepared.choice
    methods = tuple(
        ComparedMethod(
            one.method, one.about, one.expected_error, one is choice.chosen,
            measured(kept or given, source, one, prepared, asked),
        )
        for one in choice.considered
    )  # fmt: skip
    return MethodComparison(
        name=asked.name or source.name,
        rows=len(source),
        columns=len(prepared.names),
        promise=choice.promise.to_dict(),
        in_words=choice.promise.in_words(),
        method=choice.chosen.method,
        why=choice.why,
        expected_error=choice.chosen.expected_error,
        useful=choice.chosen.expected_error <= USEFUL,
        methods=methods,
        by_epsilon=curve(prepared),
        notes=(FOR_THE_STEWARD,),
    )


def measured(
    given: Any,
    source: Any,
    candidate: MethodCandidate,
    prepared: PreparedChoice,
    asked: AutomaticOptions,
) -> FeltError | None:
    """What one release was off by; None where it cannot be chosen, or would be of no use."""
    if not candidate.eligible or not candidate.expected_error <= 4 * USEFUL:
        return None
    options = options_for(candidate, prepared, asked)
    try:
        release = publishing_kind(candidate.method).publish(given, **options).release
    except VoileError:  # a view that would be too large
        return None
    return felt_error(release, source, drop_nulls=asked.nulls == "drop")


def curve(prepared: PreparedChoice) -> tuple[ErrorAt, ...]:
    """The expected errors at other ε, with the same domain."""
    public, promise = prepared.choice.public, prepared.choice.promise
    found = []
    for epsilon in sorted({*EPSILONS, promise.epsilon}):
        try:
            choice = best_of(public, replace(promise, epsilon=epsilon))
        except (VoileError, StopIteration):
            continue  # what was learnt cost more than that
        errors = {one.method: one.expected_error for one in choice.considered}
        found.append(ErrorAt(epsilon, {m: e for m, e in errors.items() if math.isfinite(e)}))
    return tuple(found)


def headline(found: MethodComparison) -> str:
    """The one number, in words."""
    return (
        f"a count that holds 1 % of the rows is off by about {in_per_cent(found.expected_error)} "
        f"with {found.method}"
    )
