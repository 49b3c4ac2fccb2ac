"""Noisy views of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError, spelled
from voile.kinds.kind import PARTS, FolderKind, FrontierMethod, Parts

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.choosing import EpsilonPromise, MethodCandidate, PublicSize
    from voile.kinds.publishing import Draft
    from voile.progress import Progress


class Views(FolderKind):
    """Noisy views of a table."""

    name = "views"
    methods = ("alphabeta",)
    about = "a noisy view"
    file_names = (PARTS, r"history/part-00000\.parquet")
    parts = Parts(
        options="options:ViewOptions",
        manifest="manifest:ViewManifest",
        release="release:ViewRelease",
        draft="publishing:view_draft",
        describe="describe:describe",
        data_package="describe:view_package",
    )

    def check_place(self, options: Any, to: str | Path | None) -> None:
        """Refuse a view of a series that has no folder."""
        if to is None and options.series is not None:
            raise UsageError(
                "a view of a series needs a place: unchanged tables give the same view again",
                hint=f'voile.publish(…, series="{options.series}", to="v1.voile")',
            )

    def draft(
        self, table: Table, options: Any, target: Path, progress: Progress
    ) -> AbstractContextManager[Draft]:
        """Read the table and plan its view, or the next view of its series."""
        if options.series is None:
            return super().draft(table, options, target, progress)
        if not table.at_hand:
            raise UsageError(
                f"a series compares views row by row, and the rows of {table.name!r} stay on the "
                "cluster",
                hint=f"publish one view without {spelled('series')}, or a file of this machine",
            )
        found: AbstractContextManager[Draft] = self.load("series_publishing:series_draft")(
            table, options, target, progress
        )
        return found

    def candidates(self, public: PublicSize, promise: EpsilonPromise) -> Sequence[MethodCandidate]:
        """Ways to publish under (ε, δ), with their errors."""
        found = self.load("candidates:view_candidates")
        made: Sequence[MethodCandidate] = found(public, promise)
        return made

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The ways to publish views that the frontier may try."""
        options = {"method": "alphabeta", "prior_factor": 10.0}
        return {"alphabeta": FrontierMethod("noisy views", options, ("posterior",), named=True)}
