"""A requirement: one small object that says which histograms a class may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.privacy.guarantee import Guarantee, NumberRange, Parametric
from voile.privacy.guarantees import Anonymity
from voile.privacy.guarantees.statements import Statement, not_kept, void

Counts = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

SLACK = 1e-12
"""By which a computed number may miss its bound."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """What requirements look at: for each class its rows and its sensitive values."""

    rows: Counts
    """(classes,): how many rows each class has."""
    counts: tuple[Counts, ...]
    """For each sensitive attribute (classes, values): how many rows of the class have the value."""
    overall: tuple[Counts, ...]
    """For each sensitive attribute (values,): the same in the whole table."""
    population: Counts | None = None
    """(classes,): rows of a public table that lie in the class, where one is given."""


class Requirement(Parametric, ABC):
    """What every class must have. Immutable; a check is one pass over all classes at once.

    A class without rows shows no sensitive value: it meets every requirement on values, and its
    measured number is NaN.
    """

    kind: ClassVar[str]
    """As in `voile guarantees`: k, l, t, semantic, …"""

    attribute: int | None = None
    """The number of the sensitive attribute that it is about; None where it is about none."""

    @property
    def monotone(self) -> bool:
        """Whether a class that is joined of classes that meet it meets it too."""
        return True

    @property
    @abstractmethod
    def spelling(self) -> str:
        """As a person writes it: 'k = 10', 't = 0.2 (Jensen–Shannon)'."""

    @abstractmethod
    def measured(self, classes: Histograms) -> Floats:
        """(classes,): what each class has: its size, its largest share, its distance."""

    @abstractmethod
    def met(self, classes: Histograms) -> Truths:
        """(classes,): whether each class meets it."""

    @abstractmethod
    def worst(self, measured: Floats) -> float:
        """What the whole release has: the least size, the largest share or distance."""

    def guarantee(self) -> Guarantee | None:
        """The same as one of `voile guarantees`, where there is a kind for it."""
        return None

    def to_dict(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """Its parameters, with stable keys; the attribute by its name where names are given."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.attribute is not None:
            found["attribute"] = names[self.attribute] if names else self.attribute
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            if field.name != "attribute" and value is not None:
                found[field.name] = _listed(value)
        return found


def _listed(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return [_listed(part) for part in value] if isinstance(value, tuple) else value


def least(measured: Floats) -> float:
    """The smallest of what the classes with rows have; infinite where there are none."""
    there = measured[~np.isnan(measured)]
    return float(there.min()) if len(there) else float("inf")


def most(measured: Floats) -> float:
    """The largest of what the classes with rows have; 0 where there are none."""
    there = measured[~np.isnan(measured)]
    return float(there.max()) if len(there) else 0.0


def divided(counts: Counts, rows: Counts) -> Floats:
    """Counts as shares of their class; NaN in a class without rows."""
    whole = np.where(rows == 0, np.nan, rows.astype(np.float64))
    shares: Floats = counts / (whole[:, None] if counts.ndim == 2 else whole)
    return shares


# ---------------------------------------------------------------------- sizes
# Requirements on how many rows a class has: k, (α,k), and δ-presence.


Whole = Annotated[int, NumberRange(1, with_low=True, whole=True)]
Share = Annotated[float, NumberRange(0, 1, with_high=True)]


@dataclass(frozen=True)
class K(Requirement):
    """k-anonymity: every class has at least k rows."""

    kind = "k"

    k: Whole

    @property
    def spelling(self) -> str:
        """Such as 'k = 10'."""
        return f"k = {self.k}"

    def measured(self, classes: Histograms) -> Floats:
        """The rows of each class."""
        return classes.rows.astype(np.float64)

    def met(self, classes: Histograms) -> Truths:
        """Whether each class has at least k rows."""
        return classes.rows >= self.k

    def worst(self, measured: Floats) -> float:
        """The rows of the smallest class."""
        return least(measured)

    def guarantee(self) -> Anonymity:
        """k-anonymity."""
        return Anonymity(int(self.k))


@dataclass(frozen=True)
class AlphaK(Requirement):
    """(α,k)-anonymity: at least k rows, and no sensitive value has a share above α.

    With `values`, only the shares of those (codes of the sensitive attribute) are limited.
    """

    kind = "alpha-k"

    alpha: Share
    k: Whole = 1
    attribute: int = 0
    values: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values == ():
            raise UsageError("no value is limited by α", hint="list some values, or none for all")

    @property
    def spelling(self) -> str:
        """Such as '(α, k) = (0.5, 10)'."""
        limited = "" if self.values is None else f" for {len(self.values)} listed values"
        return f"(α, k) = ({self.alpha:g}, {self.k}){limited}"

    def measured(self, classes: Histograms) -> Floats:
        """The largest share of a limited value in each class."""
        return divided(self._largest(classes), classes.rows)

    def met(self, classes: Histograms) -> Truths:
        """Whether each class has enough rows and no share above α."""
        within = self._largest(classes) <= (self.alpha + SLACK) * classes.rows
        return within & (classes.rows >= self.k)

    def worst(self, measured: Floats) -> float:
        """The largest share in any class."""
        return most(measured)

    def _largest(self, classes: Histograms) -> Counts:
        counts = classes.counts[self.attribute]
        limited = counts if self.values is None else counts[:, list(self.values)]
        largest: Counts = limited.max(axis=1)
        return largest


@dataclass(frozen=True)
class Presence(Requirement):
    """δ-presence: of the people of a public table that a class covers, a share is in ours.

    The share lies between `low` and `high` in every class, so that neither presence nor absence of
    someone whose public values are known is all but certain.
    """

    kind = "presence"

    low: float
    high: float

    def __post_init__(self) -> None:
        ends = NumberRange(0, 1, with_low=True, with_high=True)
        ends.check("least presence", self.low)
        ends.check("largest presence", self.high)
        if self.low > self.high:
            raise UsageError(
                f"presence from {self.low:g} to {self.high:g} is empty",
                hint="give the smaller share first",
            )

    @property
    def spelling(self) -> str:
        """Such as 'presence from 0.1 to 0.5'."""
        return f"presence from {self.low:g} to {self.high:g}"

    def measured(self, classes: Histograms) -> Floats:
        """Rows for each row of the public table; infinite where that has none, NaN of 0/0."""
        population = _population(classes)
        nobody = np.where(classes.rows > 0, np.inf, np.nan)
        return np.where(population > 0, classes.rows / np.maximum(population, 1), nobody)

    def met(self, classes: Histograms) -> Truths:
        """Whether each class's share of the public table lies between both ends."""
        population = _population(classes)
        enough = classes.rows >= (self.low - SLACK) * population
        return enough & (classes.rows <= (self.high + SLACK) * population)

    def worst(self, measured: Floats) -> float:
        """The share that lies furthest outside, or nearest to an end."""
        there = measured[~np.isnan(measured)]
        if not len(there):
            return self.low
        return float(there[np.argmax(np.maximum(self.low - there, there - self.high))])


def _population(classes: Histograms) -> Counts:
    if classes.population is None:
        raise UsageError(
            "presence is a share of a public table, and none is given",
            hint="give the table of everyone that rows may be about",
        )
    return classes.population


# ---------------------------------------------------------------------- statements
# What classes of rows promise, as the statements that every release can give.


KNOWING = "someone who knows a person's quasi-identifiers and the table's distribution, no more"
SHOWN = "measured on every class that is shown"


def class_statements(
    requirements: Sequence[Requirement],
    sensitive: Sequence[str],
    *,
    bucketized: bool,
    simulated: bool,
) -> list[Statement]:
    """Each requirement as it was given, the ones about values first; no more follows."""
    found = [
        Statement(
            requirement.to_dict(sensitive), "none", KNOWING, SHOWN,
            in_words(requirement, bucketized=bucketized),
        )
        for requirement in sorted(requirements, key=lambda r: r.attribute is None)
    ]  # fmt: skip
    return [void(one) for one in found] if simulated else found


def in_words(requirement: Requirement, *, bucketized: bool) -> str:
    """What a requirement says of every class, for `voile guarantees`."""
    if isinstance(requirement, K) and bucketized:
        return (
            f"Every class has at least {requirement.k} rows. Their quasi-identifiers are shown as "
            "they are: that hides nobody."
        )
    guarantee = requirement.guarantee()
    if guarantee is not None:
        return guarantee.explain()
    return f"In every class of records holds {requirement.spelling}."


def classes_not_promised(*, bucketized: bool) -> list[Statement]:
    """What classes of rows must not be taken to promise."""
    found = [
        not_kept(
            {"kind": "dp", "unit": unit}, "exclusive", "anyone", "does not follow",
            "One row more or less can change every class: no ε holds.",
        )
        for unit in ("add-remove", "swap")
    ]  # fmt: skip
    found.append(not_kept(
        {"kind": "d-gamma"}, "independent", "anyone who knows something else", "does not follow",
        "Someone who can rule out some of the values, or knows what others in the class have, is "
        "left with what remains: beliefs may rise to 1.",
    ))  # fmt: skip
    found.append(not_kept(
        {"kind": "composition"}, "none", "anyone with a second release of these people",
        "Ganta, Kasiviswanathan and Smith, KDD 2008",
        "Classes of two releases can be intersected, and what is left of them has no promise.",
    ))  # fmt: skip
    if bucketized:
        found.append(not_kept(
            {"kind": "presence"}, "none", "anyone", "rows are bucketized",
            "Quasi-identifiers are shown as they are: everybody sees who is in the table.",
        ))  # fmt: skip
    return found
