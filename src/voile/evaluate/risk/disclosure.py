"""What classes tell about sensitive values: ℓ, t and δ of the worst class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from voile.evaluate.risk.reading import Cells
from voile.privacy.requirements import Histograms, L, Requirement, Semantic, T
from voile.recoding.units import Units

PART = 2**22
"""Counts of classes by values that are held at a time."""

MEASURES: dict[str, Requirement] = {
    "l_distinct": L(1, "distinct"),
    "l_frequency": L(1, "frequency"),
    "l_entropy": L(1, "entropy"),
    "t": T(0, "js"),
    "t_emd_equal": T(0, "emd-equal"),
    "semantic": Semantic(0, "forbidden"),
    "semantic_ignored": Semantic(0, "ignored"),
}
"""What is measured of a sensitive attribute, by its key; the bounds do not matter here."""

LARGER_IS_SAFER = ("l_distinct", "l_frequency", "l_entropy")


@dataclass(frozen=True)
class Disclosure:
    """The worst of all classes, for one sensitive attribute."""

    attribute: str
    values: int
    measured: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        found = {key: as_json(key, value) for key, value in self.measured.items()}
        return {"attribute": self.attribute, "values": self.values, **found}


def as_json(key: str, value: float) -> float | None:
    """JSON has no infinity; and how many values there are is a whole number."""
    if not np.isfinite(value):
        return None
    return int(value) if key == "l_distinct" else float(value)


def disclosures(units: Units, cells: Cells, names: tuple[str, ...]) -> tuple[Disclosure, ...]:
    """For each sensitive attribute what the classes tell about it."""
    return tuple(disclosure(units, cells, number, name) for number, name in enumerate(names))


def disclosure(units: Units, cells: Cells, number: int, name: str) -> Disclosure:
    found: dict[str, list[float]] = {key: [] for key in MEASURES}
    for part in histograms(units, cells, number):
        for key, requirement in MEASURES.items():
            found[key].append(requirement.worst(requirement.measured(part)))
    measured = {
        key: min(worst) if key in LARGER_IS_SAFER else max(worst) for key, worst in found.items()
    }
    return Disclosure(name, int((units.overall[number] > 0).sum()), measured)


def histograms(units: Units, cells: Cells, number: int) -> Iterator[Histograms]:
    """The classes' sensitive values, some classes at a time."""
    size, overall = units.sensitive_sizes[number], units.overall[number]
    order = np.argsort(cells.classes, kind="stable")
    ordered = cells.classes[order]
    many, step = len(cells.rows), max(1, PART // max(1, size))
    for first in range(0, many, step):
        last = min(first + step, many)
        here = order[np.searchsorted(ordered, first) : np.searchsorted(ordered, last)]
        places = (cells.classes[here] - first) * size + units.sensitive[number, here]
        flat = np.bincount(places, units.weights[here], (last - first) * size)
        counts = flat.astype(np.int64).reshape(last - first, size)
        yield Histograms(cells.rows[first:last], (counts,), (overall,))


def over_all(found: tuple[Disclosure, ...], key: str) -> float | None:
    """The worst of all sensitive attributes; None where there is none."""
    if not found:
        return None
    values = [d.measured[key] for d in found]
    return as_json(key, min(values) if key in LARGER_IS_SAFER else max(values))
