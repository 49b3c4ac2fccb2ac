"""What a survey promises to a person who answers, and whether its parameters keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voile.client.column import Column
from voile.client.epsilon import local_epsilon, together
from voile.errors import PromiseError, UsageError, did_you_mean

SLACK = 1e-9
"""Relative difference of ε that two languages' logarithms may have."""


@dataclass(frozen=True)
class Promise:
    """Local ε of the whole row, and of single columns, that a survey says it stays within."""

    epsilon: float | None
    columns: Mapping[str, float]


def row_epsilon(columns: Sequence[Column], joint: float | None) -> float:
    """Local ε of a row: the sum over its perturbed columns, or that of the one joint coin.

    Infinite where nothing is perturbed. Columns with one value tell nothing in any case.
    """
    telling = [column for column in columns if column.size > 1]
    if not telling:
        return 0.0
    if joint is not None:
        return local_epsilon(joint, math.prod(column.size for column in columns))
    perturbed = [column.epsilon() for column in telling if column.retention < 1]
    return together(perturbed) if perturbed else math.inf


def column_epsilon(column: Column, columns: Sequence[Column], joint: float | None) -> float:
    """What the sent row tells between two rows that differ in this column only.

    Under a joint coin that is the whole ε: a row that was kept shows every one of its columns.
    """
    if joint is None or column.size == 1:
        return column.epsilon() if column.size > 1 else 0.0
    return row_epsilon(columns, joint)


def check_promise(
    promise: Promise, columns: Sequence[Column], joint: float | None, where: str
) -> None:
    """Refuse a spec whose parameters do not keep its own promise."""
    if promise.epsilon is not None:
        found = row_epsilon(columns, joint)
        if exceeds(found, promise.epsilon):
            raise PromiseError(
                f"{where} promises ε ≤ {promise.epsilon:g} for a row, and its parameters "
                f"give {spelt(found)}",
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
                f"give {spelt(found)}",
                hint="do not answer this survey; its owner must lower the retention",
            )


def spelt(epsilon: float) -> str:
    return f"{epsilon:.6g}" if math.isfinite(epsilon) else "none: what is told is told as it is"


def exceeds(epsilon: float, promised: float) -> bool:
    """Whether ε is above what was promised, by more than arithmetic can do."""
    return epsilon > promised * (1 + SLACK)
