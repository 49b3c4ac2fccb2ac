"""Results of several runs, put together by point: what figures and their checks are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from voile.reproduce.verdict import Sample

Point = tuple[Any, ...]


@dataclass(frozen=True)
class Series:
    """What every run gave at every point; a point is, say, (retention, columns, method)."""

    names: tuple[str, ...]
    samples: Mapping[Point, Sample]

    @classmethod
    def of(cls, names: Sequence[str], measured: Iterable[tuple[Point, float]]) -> Series:
        found: dict[Point, list[float]] = {}
        for point, value in measured:
            found.setdefault(point, []).append(value)
        return cls(tuple(names), {point: Sample.of(values) for point, values in found.items()})

    def __getitem__(self, point: Point) -> Sample:
        return self.samples[point]

    def mean(self, *point: Any) -> float:
        return self.samples[point].mean

    def columns(self, value: str = "error") -> dict[str, list[Any]]:
        """As a CSV has it: the point, the mean, the spread of runs, and their number."""
        found: dict[str, list[Any]] = {
            name: [point[place] for point in self.samples] for place, name in enumerate(self.names)
        }
        found[value] = [sample.mean for sample in self.samples.values()]
        found["sd"] = [sample.sd for sample in self.samples.values()]
        found["runs"] = [sample.runs for sample in self.samples.values()]
        return found


def only(columns: Mapping[str, Sequence[Any]], **wanted: Sequence[Any]) -> dict[str, list[Any]]:
    """The rows of a table whose values are among those wanted."""
    size = len(next(iter(columns.values())))
    kept = [
        row
        for row in range(size)
        if all(columns[name][row] in values for name, values in wanted.items())
    ]
    return {name: [values[row] for row in kept] for name, values in columns.items()}


def rises(values: Sequence[float]) -> bool:
    """Whether every value is above the one before."""
    return all(before < after for before, after in pairwise(values))


def growth(values: Sequence[float]) -> list[float]:
    """By how much each value is times the one before."""
    return [after / before for before, after in pairwise(values)]
