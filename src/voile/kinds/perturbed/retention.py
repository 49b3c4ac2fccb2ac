"""Retention replacement (SIGMOD 2005): each value of a row is kept with chance p, or drawn anew.

Every row is perturbed on its own, so nobody needs to be trusted with it. Two forms:

columns   each column on its own: P(y|x) = p·1[y=x] + (1−p)·m(y), m the column's public replacing
          distribution. How a count is reconstructed: voile.answering.local
rows      FRAPP's γ-diagonal matrix: one coin for the whole row, which is kept with chance p or
          replaced by a uniform tuple of the domain

Local ε: a value changes the chance of what is seen of it by at most e^ε = 1 + p/((1−p)·min m);
a row's ε is the sum over its columns. A column that takes its replacements from its own values
(identity, swap) has none: a rare value that is seen is likely to be somebody's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.noise.keyed import Stream
from voile.noise.replacement import Replacement, perturb, perturb_rows, resample, swap

Replace = Literal["uniform", "declared", "identity", "swap"]
REPLACES: tuple[str, ...] = get_args(Replace)
LEAST_RETENTION = 1e-6
OWN_VALUES = ("identity", "swap")
"""Columns whose replacements come from themselves."""
Codes = npt.NDArray[np.signedinteger]


@dataclass(frozen=True)
class ColumnNoise:
    """How one column is perturbed."""

    size: int
    retention: float = 1.0
    replace: Replace = "uniform"
    parts: tuple[int, ...] | None = None
    """declared: whole numbers in proportion to the chances of the values."""

    def __post_init__(self) -> None:
        if not LEAST_RETENTION <= self.retention <= 1:
            raise UsageError(
                f"retention {self.retention} must lie in [{LEAST_RETENTION:g}, 1]",
                hint="1 leaves a column as it is; of values that are hardly kept nothing is learnt",
            )
        if self.replace not in REPLACES:
            raise UsageError(
                f"replace {self.replace!r} is not known", hint=f"use {', '.join(REPLACES)}"
            )
        if (self.replace == "declared") != (self.parts is not None):
            raise UsageError("a declared distribution has parts, and no other has")
        if self.parts is not None and (len(self.parts) != self.size or min(self.parts) < 1):
            raise UsageError(
                "a replacing distribution gives every value a chance",
                hint="a value that is never drawn gives away whoever has it",
            )

    @property
    def public(self) -> bool:
        """Whether the column is published as it is."""
        return self.retention == 1

    @property
    def local(self) -> bool:
        """Whether a row can be perturbed without the others."""
        return self.public or self.replace not in OWN_VALUES

    @property
    def least_mass(self) -> Fraction:
        """The least chance that a value has as a replacement."""
        if self.parts is None:
            return Fraction(1, self.size)
        return Fraction(min(self.parts), sum(self.parts))

    def masses(self) -> Floats:
        """m, where it does not depend on the table."""
        if self.parts is None:
            return np.full(self.size, 1 / self.size)
        return np.array(self.parts) / sum(self.parts)

    def ratio(self) -> Fraction | None:
        """e^ε exactly: what a value does to the chance of what is seen; None if unbounded."""
        from voile.privacy.local import amplification  # noqa: PLC0415  (not for executors)

        return amplification(self.retention, self.least_mass) if self.local else None

    def epsilon(self) -> float:
        """Local ε; ∞ where there is none."""
        from voile.privacy.local import epsilon_of  # noqa: PLC0415  (not for executors)

        return epsilon_of(self.ratio())

    def perturb(self, codes: Codes, stream: Stream) -> Codes:
        """The column's codes, each kept by chance or replaced."""
        if self.public:
            return codes
        if self.replace == "identity":
            return resample(codes, self.retention, stream)
        if self.replace == "swap":
            return swap(codes, self.retention, stream)
        return perturb(codes, Replacement(self.size, self.retention, self.parts), stream)


@dataclass(frozen=True)
class Retention:
    """Columns that are perturbed one by one."""

    columns: tuple[ColumnNoise, ...]

    def ratio(self) -> Fraction | None:
        """Of the perturbed columns of a row; None also where there are none of these."""
        from voile.privacy.local import row_amplification  # noqa: PLC0415  (not for executors)

        telling = [column for column in self.columns if column.size > 1]
        perturbed = [column for column in telling if not column.public]
        if telling and not perturbed:
            return None
        return row_amplification(column.ratio() for column in perturbed)

    @property
    def tells_columns(self) -> bool:
        """Whether some columns are public."""
        return any(column.public and column.size > 1 for column in self.columns)

    def epsilon(self) -> float:
        """Local ε of a row; ∞ where there is none."""
        from voile.privacy.local import epsilon_of  # noqa: PLC0415  (not for executors)

        return epsilon_of(self.ratio())

    @property
    def local(self) -> bool:
        """Whether a row can be perturbed without the others."""
        return all(column.local for column in self.columns)


@dataclass(frozen=True)
class WholeRows:
    """Rows that are kept or replaced as a whole, by a uniform tuple (FRAPP's γ-diagonal matrix)."""

    retention: float
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        ColumnNoise(self.size, self.retention)

    @property
    def size(self) -> int:
        """How many tuples the domain has."""
        return math.prod(self.sizes)

    def ratio(self) -> Fraction | None:
        """e^ε exactly, for a whole row."""
        return ColumnNoise(self.size, self.retention).ratio()

    def epsilon(self) -> float:
        """Local ε of a row; ∞ where there is none."""
        from voile.privacy.local import epsilon_of  # noqa: PLC0415  (not for executors)

        return epsilon_of(self.ratio())

    @property
    def local(self) -> bool:
        """A row needs no other row to be perturbed."""
        return True

    @property
    def tells_columns(self) -> bool:
        """No column is public."""
        return False

    def perturb(self, codes: list[Codes], stream: Stream) -> list[Codes]:
        """The rows' codes, each row kept by chance or replaced."""
        return list(perturb_rows(codes, self.sizes, self.retention, stream))


Local = Retention | WholeRows
