"""The frontier of a table: its points, which are efficient, and which one to publish."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError, spelled
from voile.evaluate.frontier.mixture import CertifiedFrontier
from voile.evaluate.frontier.portfolio import (
    Point,
    candidates,
    check_also,
    check_methods,
    frontier_methods,
    read_grid,
)
from voile.evaluate.frontier.running import KEPT, OTHER, Keeper, RefusedCandidate, check_jobs, run
from voile.evaluate.frontier.subject import subject_of
from voile.evaluate.options import FrontierKeywords, FrontierOptions
from voile.journal import Journal, MemoryJournal
from voile.progress import Progress, Silent

RULE = (
    "Of the efficient points, the one nearest to no loss at all, where P_loss is counted in parts "
    "of what the exact table loses and U_loss in parts of what trivial anonymization loses."
)
RECODED = {"generalize": "generalization", "bucketize": "bucketization"}
SAME = 1e-9
"""Losses that differ by less, as a share, differ by rounding."""
LOOKED = (
    " Its classes were chosen by looking at the sensitive values, so that whoever knows the method "
    "may learn more from them than their shares tell."
)


def shown_by(point: Point) -> str:
    """How people see the rows, in words."""
    return RECODED[point.recode] if point.recode else frontier_methods()[point.method].about


def efficient(losses: Sequence[tuple[float, float]]) -> npt.NDArray[np.bool_]:
    """(points,): those that no other is at least as good as in both losses and better in one."""
    values = np.array(losses, dtype=np.float64).reshape(-1, 2)
    found = np.ones(len(values), dtype=np.bool_)
    for i, point in enumerate(values):
        found[i] = not ((values <= point).all(axis=1) & (values < point).any(axis=1)).any()
    return found


@dataclass(frozen=True)
class Frontier:
    """What was measured of a table. Computed from the private table: not for publishing."""

    name: str
    rows: int
    qi: tuple[str, ...]
    sensitive: str
    min_support: float
    populations: int
    revealed: tuple[float, float]
    """P_loss of someone whose value is known outright: the commonest value, the rarest."""
    raw_p_loss: float
    """P_loss of the table as it is; its U_loss is 0."""
    points: tuple[Point, ...]
    refused: tuple[RefusedCandidate, ...]
    certified: CertifiedFrontier
    most_p_loss: float | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def efficient(self) -> tuple[bool, ...]:
        """Nothing that trivial anonymization is better than is, be that measured or not."""
        losses = [(point.p_loss, point.u_loss) for point in self.points]
        losses.append((0.0, self.certified.trivial * (1 + SAME)))
        return tuple(map(bool, efficient(losses)[:-1]))

    @cached_property
    def recommended(self) -> Point | None:
        """See RULE; None where nothing is within the P_loss that was allowed."""
        most = np.inf if self.most_p_loss is None else self.most_p_loss + 1e-12
        allowed = [
            point
            for point, best in zip(self.points, self.efficient, strict=True)
            if best and point.p_loss <= most
        ]
        return min(allowed, key=self.remoteness, default=None)

    def remoteness(self, point: Point) -> float:
        """How far from no loss at all."""
        trivial = self.certified.trivial or 1.0
        return float(np.hypot(point.p_loss / (self.raw_p_loss or 1.0), point.u_loss / trivial))

    def least(self, point: Point) -> float | None:
        """What no bucketization with its P_loss is below; None for noise, whose P_loss is another.

        Of noise P_loss is what Bayes' rule makes of it, and not a class's distribution.
        """
        return self.certified.lower(point.p_loss) if point.recode else None

    def above(self, point: Point) -> float | None:
        """How far its U_loss is above that; what is off by rounding is not."""
        least = self.least(point)
        if least is None:
            return None
        found = point.u_loss - least
        return 0.0 if abs(found) <= SAME * self.certified.trivial else found

    def in_words(self) -> str:
        """The recommendation."""
        best = self.recommended
        if best is None:
            return f"Nothing that was measured has a P_loss of at most {self.most_p_loss:g}."
        part = best.u_loss / self.certified.trivial if self.certified.trivial else 0.0
        losses = (
            f"P_loss {best.p_loss:.3f} and U_loss {best.u_loss:.2g}, {part:.0%} of trivial "
            f"anonymization's {self.certified.trivial:.2g}"
        )
        how, least = frontier_methods()[best.method], self.least(best)
        about = how.about
        if least is None:
            return f"Publish {about} with {best.requirement}, {best.rows:,} rows: {losses}."
        bound = f"; no bucketization with that P_loss has a U_loss below {least:.2g}"
        return (
            f"Publish {best.requirement} by {shown_by(best)}, {about}, {best.classes:,} classes: "
            f"{losses}{bound if least > SAME * self.certified.trivial else ''}."
            + (LOOKED if how.looks else "")
        )

    @property
    def meaning(self) -> str:
        """What a P_loss means."""
        low, high = self.revealed
        return (
            f"P_loss is how far the release moves a belief about the person it tells most about: 0 "
            f"is what everybody knows of all rows, and knowing the {self.sensitive} outright is "
            f"{low:.3f} for the commonest value and {high:.3f} for the rarest. It measures, and "
            "promises nothing by itself: the promise is the requirement."
        )

    def record(self, point: Point) -> dict[str, Any]:
        """A point with its place on the frontier."""
        least = self.least(point)
        return {
            **point.to_dict(),
            "parameters": dict(point.parameters),
            "recode": point.recode,
            "efficient": self.efficient[self.points.index(point)],
            "certified": least,
            "above": self.above(point),
            "ratio": point.u_loss / least if least else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        best = self.recommended
        return {
            "table": self.name,
            "rows": self.rows,
            "qi": list(self.qi),
            "sensitive": self.sensitive,
            "min_support": self.min_support,
            "populations": self.populations,
            "points": [self.record(point) for point in self.points],
            "certified": [
                {"p_loss": p.p_loss, "u_loss": p.u_loss, "lower": self.certified.lower(p.p_loss),
                 "steps": p.steps, "seconds": p.seconds}
                for p in self.certified.points
            ],
            "trivial": {"p_loss": 0.0, "u_loss": self.certified.trivial},
            "raw": {"p_loss": self.raw_p_loss, "u_loss": 0.0},
            "revealed": list(self.revealed),
            "refused": [
                {"method": r.method, "parameters": r.parameters, "why": r.why}
                for r in self.refused
            ],
            "recommended": None if best is None else {
                **self.record(best), "words": self.in_words(), "rule": RULE,
            },
            "notes": list(self.notes),
        }  # fmt: skip

    def rows_of_table(self) -> list[dict[str, Any]]:
        """One flat record for each point, for CSV and data frames."""
        names = dict.fromkeys(name for point in self.points for name in point.parameters)
        found = []
        for point in self.points:
            record = self.record(point)
            parameters = record.pop("parameters")
            record.pop("recode")
            own = {name: parameters.get(name) for name in names}
            found.append({
                "method": record.pop("method"), **own, **record,
                "recommended": point is self.recommended,
            })  # fmt: skip
        return found

    def csv(self) -> bytes:
        """The points as a CSV file."""
        rows = self.rows_of_table()
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["method"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()


# ----------------------------------------------------------------------
# the frontier of a table, for Python and for the command line


def find_frontier(
    table: Any,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    source: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[FrontierKeywords],
) -> Frontier:
    """Measure a portfolio of releases of the table, and certify what none can be below.

    The options are those of `FrontierOptions`; `also` is what every release must have besides,
    such as {"k": 10}. With a folder, points are kept there as they are found, and a run that was
    interrupted goes on.
    """
    watched, asked = progress or Silent(), FrontierOptions(**options)
    tried = candidates(check_methods(asked.methods), read_grid(asked.grid), check_also(asked.also))
    if not tried:
        raise UsageError(
            "the grid has no value for any of these methods",
            hint=f"add one, such as {spelled('grid', 't=0.1,0.2')}",
        )
    check_jobs(asked.jobs)
    subject = subject_of(table, asked, source, watched)
    place: AbstractContextManager[Keeper] = (
        nullcontext(MemoryJournal())
        if folder is None
        else Journal(Path(folder) / KEPT, subject.digest, overwrite=overwrite, other=OTHER)
    )
    with place as keeper:
        measured = run(subject, tried, keeper, watched, jobs=asked.jobs)
    return Frontier(
        subject.prepared.name, subject.units.rows, tuple(asked.qi), asked.sensitive,
        asked.min_support, subject.populations.number, subject.revealed, subject.raw_p_loss,
        measured.points, measured.refused, measured.certified, asked.most_p_loss,
        subject.prepared.notes,
    )  # fmt: skip


def frontier(
    table: Any,
    *,
    folder: str | Path | None = None,
    overwrite: bool = False,
    source: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[FrontierKeywords],
) -> Any:
    """A tidy pandas DataFrame: one row for each release that was measured, best first.

    `attrs` hold the certified frontier and the recommendation. Options are those of
    `find_frontier`. Computed from the private table: not for publishing.
    """
    try:
        import pandas  # noqa: PLC0415  (not needed by anything else)
    except ImportError as missing:
        raise UsageError(
            "voile.frontier gives a pandas DataFrame, and pandas is not installed",
            hint="pip install pandas, or use `voile frontier … --json`",
        ) from missing
    found = find_frontier(
        table, folder=folder, overwrite=overwrite, source=source, progress=progress, **options
    )
    frame = pandas.DataFrame(found.rows_of_table())
    frame.attrs = {name: value for name, value in found.to_dict().items() if name != "points"}
    return frame
