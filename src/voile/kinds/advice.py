"""What would help where nothing of use can be published: computed, not composed.

Every change is tried on the comparison of all methods, from public numbers alone, and is listed
only where it brings the expected error below what is of use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from voile.kinds.choosing import (
    MATTERS,
    USEFUL,
    EpsilonPromise,
    MethodChoice,
    PublicSize,
    in_per_cent,
)
from voile.privacy.gaussian import mu_for
from voile.privacy.spent import Spent
from voile.records import Record

LARGER = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""ε that are tried, in parts of the one that was asked for: 10 is the largest that says much."""
LARGEST_EPSILON = 10.0
SURE = 0.96
"""Of what is of use: what advice must come to, since the next look has other noise."""
CLEAR = 1 / 30
"""Noise beside the rows with which columns get a domain."""
USUAL_SIZE = 8
"""Values of a column of which nothing is known."""
QUESTIONS = (100, 50, 20, 10, 5, 2, 1)
"""How many answers of a server are tried."""

Comparison = Callable[[PublicSize, EpsilonPromise], MethodChoice]


@dataclass(frozen=True)
class AdvisedChange(Record):
    """A change with which something of use could be had."""

    about: str
    expected_error: float
    options: dict[str, Any]
    """Options of `publish` that are changed; those of a server where `questions` is not 0."""
    questions: int = 0


def changes_for(
    choice: MethodChoice, names: Sequence[str], compared: Comparison, faintness: float
) -> list[AdvisedChange]:
    """The cheapest of each kind of change, at most three.

    `faintness` is the noise on the histograms that the domain was learnt from, beside the rows.
    """
    found = [
        fewer_columns(choice, names, compared),
        larger_epsilon(choice, compared, faintness),
        few_questions(choice),
    ]
    return [change for change in found if change is not None]


def fewer_columns(
    choice: MethodChoice, names: Sequence[str], compared: Comparison
) -> AdvisedChange | None:
    """Leave out as few columns as will do: those without a domain, then those of most values."""
    public, promise = choice.public, choice.promise
    order = sorted(range(len(names)), key=lambda i: (i not in public.lost, -public.sizes[i]))

    def error(left_out: int) -> float:
        fewer = public.of(sorted(order[left_out:]))
        return compared(fewer, promise).chosen.expected_error

    low, high = 1, len(names) - 1
    if high < low or error(high) > SURE * USEFUL:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= SURE * USEFUL else (middle + 1, high)
    if error(low) > SURE * USEFUL:  # of few rows, fewer columns do not always err less
        return None
    out = [names[i] for i in sorted(order[:low])]
    kept = [names[i] for i in sorted(order[low:])]
    return AdvisedChange(f"leave out {', '.join(map(repr, out))}", error(low), {"columns": kept})


def larger_epsilon(
    choice: MethodChoice, compared: Comparison, faintness: float
) -> AdvisedChange | None:
    """The least ε that will do; columns without a domain are taken to get one with less noise."""
    promise, public = choice.promise, choice.public
    usual = int(median(public.sizes[i] for i in public.wide)) if public.wide else USUAL_SIZE
    sizes = tuple(usual if i in public.lost else n for i, n in enumerate(public.sizes))
    learnt = replace(public, sizes=sizes, lost=())
    for times in LARGER:
        epsilon = float(f"{promise.epsilon * times:.2g}")
        if epsilon > LARGEST_EPSILON:
            return None
        more = replace(promise, epsilon=epsilon, spent=same_share(promise, epsilon))
        clear = not public.lost or faintness <= CLEAR * times
        error = compared(learnt if clear else public, more).chosen.expected_error
        if error <= SURE * USEFUL:
            return AdvisedChange(f"promise less: ε = {epsilon:g}", error, {"epsilon": epsilon})
    return None


def same_share(promise: EpsilonPromise, epsilon: float) -> Spent:
    """What a look costs that has the same share of a larger budget."""
    spent = promise.spent
    left = promise.delta - spent.delta
    larger = mu_for(epsilon, left) / mu_for(promise.epsilon, left) if spent.mu else 1.0
    pure = spent.epsilon * epsilon / promise.epsilon
    return replace(spent, mu=spent.mu * larger, epsilon=pure)


def few_questions(choice: MethodChoice) -> AdvisedChange | None:
    """As many answers of a server as are of use: geometric noise, ε in equal shares."""
    count = max(1.0, MATTERS * choice.public.rows)
    for questions in QUESTIONS:
        error = server_error(questions, choice.promise.epsilon, count)
        if error <= USEFUL:
            answers = "1 question" if questions == 1 else f"{questions} questions"
            options = {"queries": questions, "epsilon": choice.promise.epsilon}
            return AdvisedChange(f"a server for {answers} instead", error, options, questions)
    return None


def server_error(questions: int, epsilon: float, count: float) -> float:
    """How far a server's answer is off, relative to a count: the middle of geometric noise."""
    return math.log(2) * questions / epsilon / count


def listed_changes(
    changes: Sequence[AdvisedChange], spelling: Callable[[dict[str, Any]], str], address: str
) -> str:
    """One line each: what, how far off counts would be, and the command."""
    lines = []
    for number, change in enumerate(changes, start=1):
        command = server_command(change, address) if change.questions else spelling(change.options)
        lines.append(f"{number}. {change.about} ({in_per_cent(change.expected_error)}): {command}")
    return "\n    ".join([*lines, ""]) if lines else ""


def server_command(change: AdvisedChange, address: str) -> str:
    """How a server of the table is begun; its address may have flags that say how it is read."""
    return (
        f"voile serve init server --table {address} --queries {change.questions} "
        f"--epsilon {change.options['epsilon']:g} --noise geometric"
    )
