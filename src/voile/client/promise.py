"""What a survey promises to a person who answers, and whether its parameters keep it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from voile.client.column import Column
from voile.errors import PromiseError, UsageError, did_you_mean

SLACK = 1e-9
"""Relative difference of ε that two languages' logarithms may have."""


@dataclass(frozen=True)
class Promise:
    """Local ε of the whole row, and of single columns, that a survey says it stays within."""

    epsilon: float | None
    columns: Mapping[str, float]


def row_epsilon(columns: Sequence[Column], joint: float | None) -> float:
    """Local ε of a row: the sum over its perturbed columns, or that of the one joint coin."""
    if joint is None:
        return math.fsum(column.epsilon() for column in columns if column.retention < 1)
    if joint == 0 or all(column.size == 1 for column in columns):
        return 0.0
    if joint == 1:
        return math.inf
    # ln(1 + a) with ln a in hand, since a = p·D/(1 − p) may be larger than any double.
    log = math.log(joint / (1 - joint)) + math.fsum(math.log(column.size) for column in columns)
    return log + math.log1p(math.exp(-log)) if log > 0 else math.log1p(math.exp(log))


def column_epsilon(column: Column, columns: Sequence[Column], joint: float | None) -> float:
    """What the sent row tells between two rows that differ in this column only.

    Under a joint coin that is the whole ε: a row that was kept shows every one of its columns.
    """
    if joint is None or column.size == 1:
        return column.epsilon() if column.size > 1 else 0.0
    return row_epsilon(columns, joint)


def prior_posterior(prior: float, epsilon: float) -> float:
    """The largest belief after a row with local ε was seen, of one that was `prior` before.

    ρ₂ = ρ₁·e^ε / (1 − ρ₁ + ρ₁·e^ε), for any statement about the row (amplification).
    """
    if not 0 <= prior <= 1:
        raise UsageError(f"a prior belief of {prior}", hint="give a number from 0 to 1")
    if not epsilon >= 0:
        raise UsageError(f"ε is {epsilon}", hint="give a number that is not negative")
    if prior == 0:
        return 0.0
    return 1 / (1 + (1 - prior) / prior * math.exp(-epsilon))


def check_promise(
    promise: Promise, columns: Sequence[Column], joint: float | None, where: str
) -> None:
    """Refuse a spec whose parameters do not keep its own promise."""
    if promise.epsilon is not None and exceeds(row_epsilon(columns, joint), promise.epsilon):
        raise PromiseError(
            f"{where} promises ε ≤ {promise.epsilon:g} for a row, and its parameters "
            f"give {row_epsilon(columns, joint):.6g}",
            hint="do not answer this survey; its owner must lower a retention",
        )
    by_name = {column.name: column for column in columns}
    for name, promised in promise.columns.items():
        if name not in by_name:
            raise UsageError(
                f"{where}: the promise names column {name!r}, which is not there",
                hint=did_you_mean(name, list(by_name)),
            )
        found = column_epsilon(by_name[name], columns, joint)
        if exceeds(found, promised):
            raise PromiseError(
                f"{where} promises ε ≤ {promised:g} for column {name!r}, and its parameters "
                f"give {found:.6g}",
                hint="do not answer this survey; its owner must lower the retention",
            )


def check_limit(
    columns: Sequence[Column], joint: float | None, at_most: float | None, public: Collection[str]
) -> None:
    """Refuse a spec that tells more about a row than the caller allows.

    A column that is sent as it is has no ε: the caller must have named it as `public`.
    """
    if at_most is None:
        return
    if not at_most >= 0:
        raise UsageError(f"at_most is {at_most}", hint="give the largest ε that you allow")
    if joint is None:
        for column in columns:
            if column.retention == 1 and column.size > 1 and column.name not in public:
                raise PromiseError(
                    f"column {column.name!r} is sent as it is (retention 1)",
                    hint=f"say public=[{column.name!r}] if that is what you want",
                )
    found = row_epsilon(columns, joint)
    if exceeds(found, at_most):
        raise PromiseError(
            f"a row of this survey tells ε = {found:.6g}, more than the {at_most:g} you allow",
            hint="do not answer it, or raise at_most",
        )


def exceeds(epsilon: float, promised: float) -> bool:
    return epsilon > promised + SLACK * max(1.0, promised)
