"""Noisy tables of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.kinds.kind import Kind

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.counts.manifest import ConjunctManifest
    from voile.kinds.counts.options import CountOptions
    from voile.kinds.counts.release import ConjunctRelease
    from voile.kinds.publishing import Draft
    from voile.progress import Progress


class CountTables(Kind["ConjunctManifest"]):
    """Noisy tables of counts."""

    name = "counts"
    methods = ("conjuncts",)

    about = "tables of counts"

    @property
    def options(self) -> type[CountOptions]:
        """The model of a steward's options."""

        from voile.kinds.counts.options import CountOptions

        return CountOptions

    @property
    def manifest(self) -> type[ConjunctManifest]:
        """The model of the manifest."""

        from voile.kinds.counts.manifest import ConjunctManifest

        return ConjunctManifest

    @property
    def release(self) -> type[ConjunctRelease]:
        """The class of an opened release."""

        from voile.kinds.counts.release import ConjunctRelease

        return ConjunctRelease

    def draft(
        self,
        table: Table,
        options: Any,
        target: Path,  # noqa: ARG002
        progress: Progress,
    ) -> AbstractContextManager[Draft]:
        """Read the table and choose the noise."""

        from voile.kinds.counts.publishing import CountDraft, prepare

        return CountDraft(prepare(table, options, progress), options)

    def describe(self, manifest: ConjunctManifest) -> str:
        """The release in plain words."""

        from voile.kinds.counts.describe import describe_conjuncts

        return describe_conjuncts(manifest)

    def data_package(self, manifest: ConjunctManifest) -> dict[str, Any]:
        """The release as a data package."""

        from voile.kinds.counts.describe import count_package

        return count_package(manifest)
