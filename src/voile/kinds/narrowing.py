"""Domains without what only rows that were left out have.

A domain that was read off the table lists what occurs in it. Where rows are left out of a release
because they stand out, their values must not stand in its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import TableError, spelled
from voile.schema import Attribute, Bins, Interval, Range, Values
from voile.schema.attribute import interval, value_at

Codes = npt.NDArray[Any]
LARGEST = 2**27


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A column's domain cut to what is shown, and where each old code went."""

    attribute: Attribute
    kept: npt.NDArray[np.bool_]
    """(old codes,)"""

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """(old codes + 1,): how many codes before each one are kept."""
        return np.concatenate([[0], np.cumsum(self.kept)])


def narrowed(attribute: Attribute, codes: Codes) -> Narrowed:
    """The domain of these codes; one that was declared tells nothing, and stays."""
    size = attribute.size
    if attribute.public != "active":
        return Narrowed(attribute, np.ones(1 if size > LARGEST else size, dtype=bool))
    if size > LARGEST:
        raise TableError(
            f"column {attribute.name!r} has {size:,} possible values, too many to leave out those "
            "of rows that are left out",
            hint=f"declare its domain with {spelled('schema')}",
        )
    used = np.bincount(codes, minlength=size) > 0
    values = used[: attribute.domain.size]
    null = attribute.null and bool(used[-1])
    if not isinstance(attribute.domain, Values) and values.any():
        first, last = np.flatnonzero(values)[[0, -1]]
        values[first : last + 1] = True
    found = replace(attribute, domain=cut(attribute, np.flatnonzero(values)), null=null)
    return Narrowed(found, np.concatenate([values, [null]]) if attribute.null else values)


def cut(attribute: Attribute, codes: npt.NDArray[np.int64]) -> Any:
    """The part of a domain with these codes, which for all but lists is a stretch of it."""
    domain = attribute.domain
    first, last = int(codes[0]), int(codes[-1])
    low, high = value_at(domain, first), value_at(domain, last)
    match domain:
        case Values(values):
            return Values(tuple(values[code] for code in codes))
        case Bins(edges):
            return Bins(edges[first : last + 2])
        case Range():
            return Range(low, high)  # type: ignore[arg-type]
        case Interval():
            if first == last:
                return Values((low,))
            return interval(attribute.name, float(low), float(high), domain.step)  # type: ignore[arg-type]
