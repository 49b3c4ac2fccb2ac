"""Measuring one candidate of the portfolio: its classes found, both losses of each way to show."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.evaluate.frontier.command import publishing_command
from voile.evaluate.frontier.noisy import measure_noisy
from voile.evaluate.frontier.point import Point
from voile.evaluate.frontier.portfolio import Candidate
from voile.evaluate.frontier.subject import Subject
from voile.evaluate.losses import Told, p_loss, told_by, u_loss
from voile.kinds.classes.finding import find
from voile.privacy.requirements import Histograms
from voile.recoding import Recode, Shown, shown
from voile.recoding.units import Codes


def parameters_of(candidate: Candidate, recode: Recode) -> dict[str, Any]:
    """What tells one point from every other, besides its method."""
    own = {k: v for k, v in candidate.how.options.items() if k != "method"}
    return {**candidate.asked, **own, "recode": recode}


@dataclass(frozen=True, eq=False)
class Showing:
    """Classes of rows as people would see them: what a release of a candidate would show."""

    recode: Recode
    shown: Shown
    orders: tuple[Codes, ...]
    """For each quasi-identifier the code at each position of its order."""
    requirement: str
    """What it promises, in words."""

    @property
    def told(self) -> Told:
        """For `relative_error` and `estimated`."""
        return told_by(self.shown, self.orders)


def showings(subject: Subject, candidate: Candidate) -> list[Showing]:
    """The classes of a candidate, which are found once, in each way that they can be shown.

    Raises PromiseError where no classes meet what is asked.
    """
    recodes = candidate.how.recodes
    options = subject.options_with({**candidate.options, "recode": recodes[0]})
    prepared = subject.prepared_for(options)
    found = find(prepared, options)
    orders = tuple(
        prepared.orders.get(name, np.arange(size, dtype=np.int32))
        for name, size in zip(options.qi, found.units.sizes, strict=True)
    )
    words = " and ".join(r.spelling for r in prepared.requirements) or "nothing is told of anyone"
    return [
        Showing(
            recode, kept(shown(found.units, found.grouping, recode), found.shown), orders, words
        )
        for recode in recodes
    ]


def measure(subject: Subject, candidate: Candidate) -> list[Point]:
    """Both losses of a candidate: a point for each way to show its classes, or one for noise.

    Raises PromiseError where no release of this kind meets what is asked.
    """
    if not candidate.how.recodes:
        return measure_noisy(subject, candidate)
    begun = time.perf_counter()
    points = []
    for showing in showings(subject, candidate):
        seen, recode = showing.shown, showing.recode
        losses = p_loss(seen), u_loss(seen, subject.populations, showing.orders)
        point = Point(
            candidate.method, parameters_of(candidate, recode), showing.requirement, *losses,
            len(seen.histograms.rows), int(seen.histograms.rows.sum()),
            (time.perf_counter() - begun) / len(candidate.how.recodes),
            publishing_command(subject, {**candidate.options, "recode": recode}),
        )  # fmt: skip
        points.append(point)
    return points


def kept(seen: Shown, classes: npt.NDArray[np.bool_] | None) -> Shown:
    """Only these classes are shown; beliefs are still compared with the whole table."""
    if classes is None:
        return seen
    of = seen.histograms
    histograms = Histograms(of.rows[classes], tuple(c[classes] for c in of.counts), of.overall)
    left = replace(seen, low=seen.low[classes], high=seen.high[classes], histograms=histograms)
    if seen.cells is None or seen.cell_class is None or seen.cell_rows is None:
        return left
    here = classes[seen.cell_class]
    numbers = (np.cumsum(classes) - 1).astype(np.int32)
    return replace(
        left, cells=np.ascontiguousarray(seen.cells[:, here]),
        cell_class=numbers[seen.cell_class[here]], cell_rows=seen.cell_rows[here],
    )  # fmt: skip
