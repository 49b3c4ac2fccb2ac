"""Noisy views of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError
from voile.kinds.kind import FrontierMethod, Kind

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.publishing import Draft, PublishResult
    from voile.kinds.registration import Registrar
    from voile.kinds.views.manifest import ViewManifest
    from voile.kinds.views.options import ViewOptions
    from voile.kinds.views.release import ViewRelease
    from voile.progress import Progress


class Views(Kind["ViewManifest"]):
    """Noisy views of a table."""

    name = "views"
    methods = ("alphabeta",)

    about = "a noisy view"

    @property
    def options(self) -> type[ViewOptions]:
        """The model of a view's options."""
        from voile.kinds.views.options import ViewOptions

        return ViewOptions

    @property
    def manifest(self) -> type[ViewManifest]:
        """What a view says about itself."""
        from voile.kinds.views.manifest import ViewManifest

        return ViewManifest

    @property
    def release(self) -> type[ViewRelease]:
        """The class of a view that was opened."""
        from voile.kinds.views.release import ViewRelease

        return ViewRelease

    def publish(
        self,
        table: Any,
        *,
        to: str | Path | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
        register: Registrar | None = None,
        **options: Any,
    ) -> PublishResult:
        """Publish a table as a view; a view of a series needs a folder."""
        series = options.get("series")
        if to is None and series is not None:
            raise UsageError(
                "a view of a series needs a place: unchanged tables give the same view again",
                hint=f'voile.publish(…, series="{series}", to="v1.voile")',
            )
        return super().publish(
            table, to=to, overwrite=overwrite, progress=progress, register=register, **options
        )

    def draft(
        self, table: Table, options: Any, target: Path, progress: Progress
    ) -> AbstractContextManager[Draft]:
        """Read the table and plan its view, or the next view of its series."""
        if options.series is not None:
            from voile.kinds.views.series_publishing import series_draft

            return series_draft(table, options, target, progress)
        from voile.kinds.views.publishing import view_draft

        return view_draft(table, options, progress)

    def describe(self, manifest: ViewManifest) -> str:
        """The view in plain words, as Markdown."""
        from voile.kinds.views.describe import describe

        return describe(manifest)

    def data_package(self, manifest: ViewManifest) -> dict[str, Any]:
        """The view as a Frictionless data package."""
        from voile.kinds.views.describe import view_package

        return view_package(manifest)

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The ways to publish views that the frontier may try."""
        options = {"method": "alphabeta", "prior_factor": 10.0}
        return {"alphabeta": FrontierMethod("noisy views", options, ("posterior",), named=True)}
