"""What an answer from a generalized or bucketized release is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from voile.engines.rows import PublicDomain
from voile.query.domain import DomainSums
from voile.recoding.grouping import Recode
from voile.schema import Schema

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Method = Literal["uniform", "entropy"]


@dataclass(frozen=True, eq=False)
class ClassBox:
    """What is shown of one generalized column: an interval of positions for each class."""

    order: Codes
    """(size,): the code of the schema's domain at each position."""
    low: Codes
    """(classes,): the first position of the class."""
    high: Codes
    """(classes,): the last position, which belongs to it."""


@dataclass(frozen=True, eq=False)
class Hidden:
    """The sensitive records of every bucket: how many of its rows have each, not which."""

    of_class: Codes
    """(records,): ascending."""
    codes: Mapping[str, Codes]
    """For each sensitive column, the code of every record."""
    rows: Counts
    """(records,): how many rows of the class have this record."""


@dataclass(frozen=True, eq=False)
class ClassSource:
    """The classes of a release, as numbers, and the engine that knows its domain.

    The rows as they are written hold labels, not values; so conditions are computed on the domain
    alone, and `engine` needs no rows (`open_domain(schema)`).
    """

    engine: PublicDomain
    domain: DomainSums
    schema: Schema
    rows: int
    recode: Recode
    classes: int
    of_row: Codes
    """(rows,): the class of every row, ascending."""
    known: Mapping[str, Codes]
    """The columns that are shown exactly: the code of every row, in the order of `of_row`."""
    boxes: Mapping[str, ClassBox] = field(default_factory=dict)
    """Generalized: the other columns."""
    hidden: Hidden | None = None
    """Bucketized: the other columns."""
    removed: int = 0
    """Rows of the table that the release does not show."""
    method: Method = "uniform"
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What an analyst should know about a column."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What was fitted once, by what it is; give one dictionary to all sources of a release."""
