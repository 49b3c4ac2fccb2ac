"""Rows that were perturbed one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voile.errors import PromiseError
from voile.kinds.kind import FrontierMethod, Kind

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.perturbed.manifest import LocalManifest
    from voile.kinds.perturbed.options import PerturbOptions
    from voile.kinds.perturbed.release import LocalRelease
    from voile.kinds.publishing import Draft
    from voile.progress import Progress


class PerturbedRows(Kind["LocalManifest"]):
    """Rows that were perturbed one by one."""

    name = "perturbed"
    methods = ("retention", "frapp")
    command = "perturb"
    about = "perturbed rows"

    @property
    def options(self) -> type[PerturbOptions]:
        """The model of the options of perturbing."""
        from voile.kinds.perturbed.options import PerturbOptions

        return PerturbOptions

    @property
    def manifest(self) -> type[LocalManifest]:
        """What perturbed rows say about themselves."""
        from voile.kinds.perturbed.manifest import LocalManifest

        return LocalManifest

    @property
    def release(self) -> type[LocalRelease]:
        """The class of such a release that was opened."""
        from voile.kinds.perturbed.release import LocalRelease

        return LocalRelease

    def draft(
        self,
        table: Table,
        options: Any,
        target: Path,  # noqa: ARG002
        progress: Progress,
    ) -> AbstractContextManager[Draft]:
        """Read the table and plan how its rows are perturbed."""
        from voile.kinds.perturbed.publishing import perturbed

        return perturbed(table, options, progress)

    def describe(self, manifest: LocalManifest) -> str:
        """The release in plain words, as Markdown."""
        from voile.kinds.perturbed.describe import describe_local

        return describe_local(manifest)

    def check_frontier(self, asked: Mapping[str, Any]) -> None:
        """Refuse retention 1, which promises nothing."""
        if asked["retention"] == 1:
            raise PromiseError(
                "retention 1 keeps every value, and promises nothing", hint="choose one below 1"
            )

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The ways to perturb rows that the frontier may try."""
        return {"retention": FrontierMethod("perturbed rows", {}, ("retention",), named=True)}
