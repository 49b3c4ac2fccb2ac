"""Measuring one candidate of the portfolio: its classes found, both losses of each way to show."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import PromiseError, UsageError, spelled
from voile.evaluate.frontier.portfolio import (
    KINDS,
    Candidate,
    Point,
    kind_for,
    noisy_command,
    publishing_command,
)
from voile.evaluate.frontier.subject import Subject
from voile.evaluate.losses import p_loss, told_by, u_loss
from voile.evaluate.losses.queries import estimated, mean_divergence
from voile.files import temporary_folder
from voile.kinds.blocks import RowBlocks
from voile.kinds.classes.finding import find
from voile.kinds.domain import choose_schema
from voile.privacy.requirements import Histograms
from voile.recoding import Recode, Shown, shown
from voile.recoding.units import Codes
from voile.schema import Attribute, Schema

# ----------------------------------------------------------------------
# measuring noisy views and perturbed rows: a release is made, measured, and thrown away
# The release that is measured has simulated coins, since its own are nobody's business; the one
# that the command publishes has fresh ones, and losses that differ by chance.


SEED = 0
MOST_COMPARED = 100_000
"""Values of a column that are compared one by one."""
READING = threading.Lock()
"""A table is read by one thread at a time."""


def measure_noisy(subject: Subject, candidate: Candidate) -> list[Point]:
    """Raises PromiseError where what is asked cannot be promised."""
    begun = time.perf_counter()
    refuse_classes(candidate)
    kind = kind_for(candidate.method)
    kind.check_frontier(candidate.asked)
    with temporary_folder() as folder:
        with READING:
            release = kind.publish(
                subject.table,
                to=folder / "release",
                simulate_seed=SEED,
                **candidate.options,
                **shared(subject),
            ).release
        found = release.loss_evidence(subject.truth)
        u_loss = mean_divergence(subject.populations, estimated(found.blocks, subject.populations))
    point = Point(
        candidate.method, dict(candidate.asked), release.promise_in_short,
        found.posterior.measured, u_loss, None, release.manifest.rows,
        time.perf_counter() - begun, noisy_command(subject, kind.command, candidate.options),
        found.posterior.permitted,
    )  # fmt: skip
    return [point]


def refuse_classes(candidate: Candidate) -> None:
    """A requirement on classes that is asked of every release is one that these cannot keep."""
    if lacking := [kind for kind in KINDS if kind in candidate.asked]:
        raise PromiseError(
            f"{candidate.how.about} have no classes, and so no {', '.join(lacking)}",
            hint="leave the method out",
        )


def shared(subject: Subject) -> dict[str, Any]:
    """The columns and the domain, which must be the one that populations are counted in."""
    options = subject.options
    columns = [*options.qi, *options.sensitive]
    usual, _ = choose_schema(subject.table, columns, options.schema_, options.nulls)
    check_domain(usual, subject.prepared.schema)
    return {"columns": columns, "schema": usual, "nulls": options.nulls}


def check_domain(usual: Schema, grouped: Schema) -> None:
    """Without a codebook, numbers that classes cut finely may be put in bins for noise."""
    for attribute in usual:
        if not alike(attribute, grouped[attribute.name]):
            raise UsageError(
                f"column {attribute.name!r} would have another domain than it has in classes: "
                f"declare it with {spelled('schema')}",
                hint="`voile schema` writes a codebook",
            )


def alike(one: Attribute, other: Attribute) -> bool:
    """Whether both have the same values in the same order."""
    if one.size != other.size or one.null != other.null:
        return False
    if one.domain == other.domain:
        return True
    return one.size <= MOST_COMPARED and list(one) == list(other)


# ----------------------------------------------------------------------
# measuring one candidate of the portfolio: its classes found, both losses of each way to show


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
    def told(self) -> RowBlocks:
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
    words = " and ".join(r.spelling for r in prepared.requirements) or "nothing is disclosed"
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
