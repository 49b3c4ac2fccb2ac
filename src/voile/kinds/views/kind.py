"""Noisy views of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voile.kinds.kind import FrontierMethod, Kind

if TYPE_CHECKING:
    from voile.kinds.views.manifest import ViewManifest
    from voile.kinds.views.options import ViewOptions
    from voile.kinds.views.release import ViewRelease


class Views(Kind["ViewManifest"]):
    """Noisy views of a table."""

    name = "views"
    methods = ("alphabeta",)

    about = "a noisy view"

    @property
    def options(self) -> type[ViewOptions]:
        from voile.kinds.views.options import ViewOptions

        return ViewOptions

    @property
    def manifest(self) -> type[ViewManifest]:
        from voile.kinds.views.manifest import ViewManifest

        return ViewManifest

    @property
    def release(self) -> type[ViewRelease]:
        from voile.kinds.views.release import ViewRelease

        return ViewRelease

    def describe(self, manifest: ViewManifest) -> str:
        from voile.kinds.views.describe import describe

        return describe(manifest)

    def data_package(self, manifest: ViewManifest) -> dict[str, Any]:
        from voile.kinds.views.describe import view_package

        return view_package(manifest)

    def frontier(self) -> Mapping[str, FrontierMethod]:
        options = {"method": "alphabeta", "prior_factor": 10.0}
        return {"alphabeta": FrontierMethod("noisy views", options, ("posterior",), named=True)}
