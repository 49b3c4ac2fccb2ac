"""Whether classes at some levels may be shown, and which rows must be suppressed for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.privacy.requirements import AlphaK, Histograms, K, L, Presence, Requirement
from voile.recoding.rollup import Cells
from voile.recoding.units import Counts, Units

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Verdict:
    """What was found about the classes at some levels."""

    kept: Truths
    """(classes,): those that are shown."""
    feasible: bool
    hopeless: bool
    """Whether finer levels are known to be infeasible too."""


class Judge:
    """The requirements, the limit of suppression, and what is done with suppressed rows."""

    def __init__(
        self, units: Units, requirements: Sequence[Requirement], suppression: float, *, shown: bool
    ) -> None:
        self._overall = units.overall
        self._presence = [r for r in requirements if isinstance(r, Presence)]
        self._others = [r for r in requirements if not isinstance(r, Presence)]
        self._limit = int(np.floor(suppression * units.rows + 1e-9))
        self._shown = shown
        self._lasting = [r for r in requirements if self._limit == 0 and r.monotone]
        if self._limit:
            self._lasting = [part for r in requirements for part in closed_part(r)]

    @property
    def suppresses(self) -> bool:
        """Whether any row may be suppressed."""
        return self._limit > 0

    def __call__(self, cells: Cells) -> Verdict:
        """Suppress the classes that fail, and see whether that is allowed and enough."""
        fails_for_good = failing(self._lasting, cells, self._overall)
        if int(cells.rows[fails_for_good].sum()) > self._limit or (
            self._limit == 0 and fails_for_good.any()
        ):
            return Verdict(~fails_for_good, feasible=False, hopeless=True)
        kept = self._kept(cells)
        return Verdict(kept, feasible=self._allowed(cells, kept), hopeless=False)

    def _kept(self, cells: Cells) -> Truths:
        """The classes that meet the requirements; without those removed, the table is another."""
        kept = np.ones(cells.number, dtype=np.bool_)
        overall = self._overall
        while True:
            wrong = kept & (cells.rows > 0) & failing(self._others, cells, overall)
            if not wrong.any():
                return kept
            kept &= ~wrong
            if self._shown or int(cells.rows[~kept].sum()) > self._limit:
                return kept
            overall = tuple(counts[kept].sum(axis=0) for counts in cells.counts)

    def _allowed(self, cells: Cells, kept: Truths) -> bool:
        suppressed = int(cells.rows[~kept].sum())
        if suppressed > self._limit or not cells.rows[kept].any():
            return False
        if self._shown and suppressed:
            return self._shown_together(cells, kept)
        # Who is removed is absent, which presence is about.
        present = Histograms(
            np.where(kept, cells.rows, 0), cells.counts, self._overall, cells.population
        )
        return all(bool(r.met(present).all()) for r in self._presence)

    def _shown_together(self, cells: Cells, kept: Truths) -> bool:
        """Whether the suppressed rows as one class, and all others, meet the requirements."""
        lost = ~kept
        population = cells.population
        together = Histograms(
            cells.rows[lost].sum(keepdims=True),
            tuple(counts[lost].sum(axis=0, keepdims=True) for counts in cells.counts),
            self._overall,
            None if population is None else population[lost].sum(keepdims=True),
        )
        rest = Histograms(
            cells.rows[kept], (), (), None if population is None else population[kept]
        )
        return all(bool(r.met(together).all()) for r in (*self._others, *self._presence)) and all(
            bool(r.met(rest).all()) for r in self._presence
        )


def failing(
    requirements: Sequence[Requirement], cells: Cells, overall: tuple[Counts, ...]
) -> Truths:
    """(classes,): whether each fails any of the requirements; classes without rows only
    those about a population."""
    classes = Histograms(cells.rows, cells.counts, overall, cells.population)
    found = np.zeros(cells.number, dtype=np.bool_)
    for requirement in requirements:
        wrong = ~requirement.met(classes)
        found |= wrong if isinstance(requirement, Presence) else wrong & (cells.rows > 0)
    return found


def closed_part(requirement: Requirement) -> list[Requirement]:
    """What of a requirement a class keeps whatever rows join it.

    Only of that can be said that rows which fail at some levels fail at all finer ones.
    """
    match requirement:
        case K():
            return [requirement]
        case AlphaK(k=k):
            return [K(k)]
        case L(measure="distinct"):
            return [requirement]
    return []
