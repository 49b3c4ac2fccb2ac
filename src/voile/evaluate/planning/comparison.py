"""All methods under one promise, before anything is published: what `voile plan` shows.

The comparison is the one by which `voile publish` chooses. Beside it stands what the chosen
methods were off by in one release each from a fixed seed, which is thrown away: made from the
private table, for the steward alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from voile.engines import connect
from voile.errors import VoileError
from voile.evaluate.felt import FeltError, felt_error
from voile.evaluate.planning.foresight import FOR_THE_STEWARD
from voile.kinds.advice import AdvisedChange, same_share, server_error
from voile.kinds.automatic import (
    PreparedChoice,
    best_of,
    choose_method,
    helpful_changes,
    options_for,
)
from voile.kinds.choosing import MATTERS, USEFUL, MethodCandidate, in_per_cent
from voile.kinds.options import AutomaticOptions
from voile.kinds.people import kept_rows
from voile.kinds.registry import publishing_kind
from voile.progress import Progress, Silent
from voile.records import Record

SEED = 0
"""The coins of releases that are thrown away; always the same, so that plans are repeatable."""
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
"""For which errors are compared; the promise's own is among them."""
ANSWERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""How many answers of a server are compared."""


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
    method: str
    """The one that errs least, of those that can be chosen."""
    expected_error: float
    off_by: float
    """The same in people: how far a count is off that holds 1 % of the rows."""
    each_off_by: Mapping[str, float]
    """The errors of all methods in people."""
    useful: bool
    in_words: str
    """What the promise means in beliefs."""


@dataclass(frozen=True)
class ErrorOfAnswers(Record):
    """How far an answer is off of a server that gives so many, under the same ε."""

    answers: int
    expected_error: float
    """Of a count that holds 1 % of the rows, relative to it."""
    off_by: float
    """The same in people."""


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
    count: float
    """About how many rows are 1 % of them: what errors are relative to."""
    most_useful_error: float
    """Above this nothing is published, unless one insists."""
    methods: tuple[ComparedMethod, ...]
    by_epsilon: tuple[ErrorAt, ...]
    by_answers: tuple[ErrorOfAnswers, ...]
    changes: tuple[AdvisedChange, ...]
    """What would help, where nothing of use can be had."""
    notes: tuple[str, ...]


def compare_methods(
    table: Any,
    *,
    progress: Progress | None = None,
    epsilons: Sequence[float] = EPSILONS,
    **options: Any,
) -> MethodComparison:
    """Compare all methods for a table, also at other `epsilons`. Nothing is published."""
    asked = AutomaticOptions(**{**options, "simulate_seed": SEED})
    given = connect(table)
    kept = kept_rows(given, asked)
    source = given if kept is None else kept.table
    work = progress or Silent()
    prepared = choose_method(source, asked, work)
    choice = prepared.choice
    work.start("measuring on a trial release", len(choice.considered))
    methods = []
    for one in choice.considered:
        felt = measured(kept or given, source, one, prepared, asked)
        work.advance(1)
        methods.append(
            ComparedMethod(one.method, one.about, one.expected_error, one is choice.chosen, felt)
        )
    useful = choice.chosen.expected_error <= USEFUL
    return MethodComparison(
        name=asked.name or source.name,
        rows=len(source),
        columns=len(prepared.names),
        promise=choice.promise.to_dict(),
        in_words=choice.promise.in_words(),
        method=choice.chosen.method,
        why=choice.why,
        expected_error=choice.chosen.expected_error,
        useful=useful,
        count=MATTERS * choice.public.rows,
        most_useful_error=USEFUL,
        methods=tuple(methods),
        by_epsilon=curve(prepared, epsilons),
        by_answers=answers_of_server(prepared),
        changes=() if useful else tuple(helpful_changes(prepared)),
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


def curve(prepared: PreparedChoice, epsilons: Sequence[float]) -> tuple[ErrorAt, ...]:
    """The expected errors at other ε, with the same domain for the same share of the budget."""
    public, promise = prepared.choice.public, prepared.choice.promise
    count = max(MATTERS * public.rows, 1.0)
    found = []
    for epsilon in sorted({*epsilons, promise.epsilon}):
        other = replace(promise, epsilon=epsilon, spent=same_share(promise, epsilon), eta=None)
        try:
            choice = best_of(public, other)
        except (VoileError, StopIteration):
            continue  # nothing is left to publish with
        known = {one.method: one.expected_error for one in choice.considered}
        errors = {method: error for method, error in known.items() if math.isfinite(error)}
        error = choice.chosen.expected_error
        found.append(
            ErrorAt(
                epsilon,
                errors,
                choice.chosen.method,
                error,
                error * count,
                {method: each * count for method, each in errors.items()},
                error <= USEFUL,
                choice.promise.in_words(),
            )
        )
    return tuple(found)


def answers_of_server(prepared: PreparedChoice) -> tuple[ErrorOfAnswers, ...]:
    """The same ε in equal shares for answers of a server, with geometric noise."""
    count = max(MATTERS * prepared.choice.public.rows, 1.0)
    found = []
    for answers in ANSWERS:
        error = server_error(answers, prepared.choice.promise.epsilon, count)
        found.append(ErrorOfAnswers(answers, error, error * count))
    return tuple(found)


def headline(found: MethodComparison) -> str:
    """The one number, in words."""
    return (
        f"a count that holds 1 % of the rows is off by about {in_per_cent(found.expected_error)} "
        f"with {found.method}"
    )
