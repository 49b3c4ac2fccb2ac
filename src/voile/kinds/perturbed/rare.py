"""Rare values of columns whose replacements are their own values: reported, or suppressed.

Such a column shows only values that somebody has, so that a rare one shows whose it is. Suppressed
values become NULL; NULL itself must then not be rare, and a domain that was read off the table
must not list them any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines.encode import values_at
from voile.errors import TableError, UsageError, spelled
from voile.kinds.perturbed.retention import ColumnNoise, Local, Retention, WholeRows
from voile.privacy.local import rare_values
from voile.schema import Attribute, Range, Schema, Values

Codes = npt.NDArray[Any]
MOST_VALUES = 2**26
RARE = 5
"""Values that fewer rows have are reported, unless the options say otherwise."""


@dataclass(frozen=True)
class PerturbableTable:
    """A table as it is perturbed, and what its holder should know."""

    schema: Schema
    codes: list[Codes]
    mechanism: Local
    notes: tuple[str, ...] = ()


def without_rare(
    schema: Schema, codes: list[Codes], mechanism: Local, least: int | None
) -> PerturbableTable:
    """Values that fewer than `least` rows have made NULL; None: only reported."""
    own = isinstance(mechanism, Retention) and not mechanism.local
    if least is not None and not own:
        raise UsageError(
            f"{spelled('suppress_below')} is for columns that are replaced by their own values",
            hint=f"leave it out: with {spelled('replace', 'uniform')} anyone may have any value",
        )
    if isinstance(mechanism, WholeRows):
        return PerturbableTable(schema, codes, mechanism)
    done = [
        (attribute, column, noise, "") if noise.local else treated(attribute, column, noise, least)
        for attribute, column, noise in zip(schema, codes, mechanism.columns, strict=True)
    ]
    return PerturbableTable(
        Schema(tuple(attribute for attribute, *_ in done)),
        [column for _, column, *_ in done],
        Retention(tuple(noise for _, _, noise, _ in done)),
        tuple(note for *_, note in done if note),
    )


def treated(
    attribute: Attribute, codes: Codes, noise: ColumnNoise, least: int | None
) -> tuple[Attribute, Codes, ColumnNoise, str]:
    """A column after its rare values were suppressed or reported, with a note about it."""
    if attribute.size > MOST_VALUES:
        raise UsageError(
            f"{attribute.name!r} has {attribute.size:,} values, too many to be replaced by its own",
            hint=f"use {spelled('replace', 'uniform')}, or declare bins or a larger step",
        )
    counts = np.bincount(codes, minlength=attribute.size)
    rare = rare_values(counts, least or RARE)
    if rare is None:
        return attribute, codes, noise, ""
    if least is None:
        note = (
            f"{attribute.name} is replaced by its own values, and {len(rare.codes):,} of them "
            f"occur fewer than {RARE} times: whoever knows that a value is rare may know whose it "
            f"is; {spelled('suppress_below')} makes such values NULL"
        )
        return attribute, codes, noise, note
    gone = to_suppress(attribute, counts, least)
    smaller, places = shrunk(attribute, counts, gone)
    note = (
        f"{len(gone):,} rare values of {attribute.name}, in {int(counts[gone].sum()):,} rows, were "
        "made NULL: answers about it leave these rows out"
    )
    return smaller, places[codes], replace(noise, size=smaller.size), note


def to_suppress(attribute: Attribute, counts: npt.NDArray[np.int64], least: int) -> list[int]:
    """The rare values, and the next rarest until NULL is not rare itself."""
    values = counts[: attribute.domain.size]
    nulls = int(counts[attribute.domain.size :].sum())
    order = [int(i) for i in np.argsort(values, kind="stable") if values[i] > 0]
    gone: list[int] = []
    for code in order:
        if values[code] >= least and (not gone or nulls >= least) and not 0 < nulls < least:
            break
        gone.append(code)
        nulls += int(values[code])
    if len(gone) == len(order):
        raise TableError(
            f"no value of {attribute.name!r} is left when those of fewer than {least} rows go",
            hint=f"use a smaller {spelled('suppress_below')}, or leave the column out",
        )
    return gone


def shrunk(
    attribute: Attribute, counts: npt.NDArray[np.int64], gone: list[int]
) -> tuple[Attribute, npt.NDArray[np.int64]]:
    """The attribute with NULL, and without suppressed values if it was read off the table.

    And the new place of every value.
    """
    size = attribute.domain.size
    left = np.arange(size)
    domain = attribute.domain
    if attribute.public == "active" and isinstance(domain, Values):
        left = np.setdiff1d(left, gone)
        domain = Values(tuple(domain.values[i] for i in left))
    elif attribute.public == "active" and isinstance(domain, Range):
        there = np.setdiff1d(np.flatnonzero(counts[:size]), gone)
        left = np.arange(there[0], there[-1] + 1)
        low, high = values_at(attribute, left[[0, -1]]).to_pylist()
        domain = Range(low, high)
    found = replace(attribute, domain=domain, null=True)
    places = np.full(size + 1, found.domain.size, dtype=np.int64)
    places[left] = np.arange(len(left))
    places[gone] = found.domain.size
    return found, places
