"""Rows that were perturbed one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from voile.kinds.kind import FrontierMethod, Kind

if TYPE_CHECKING:
    from voile.kinds.perturbed.manifest import LocalManifest
    from voile.kinds.perturbed.options import PerturbOptions
    from voile.kinds.perturbed.release import LocalRelease


class PerturbedRows(Kind["LocalManifest"]):
    """Rows that were perturbed one by one."""

    name = "perturbed"
    methods = ("retention", "frapp")
    command = "perturb"
    about = "perturbed rows"

    @property
    def options(self) -> type[PerturbOptions]:
        from voile.kinds.perturbed.options import PerturbOptions

        return PerturbOptions

    @property
    def manifest(self) -> type[LocalManifest]:
        from voile.kinds.perturbed.manifest import LocalManifest

        return LocalManifest

    @property
    def release(self) -> type[LocalRelease]:
        from voile.kinds.perturbed.release import LocalRelease

        return LocalRelease

    def describe(self, manifest: LocalManifest) -> str:
        from voile.kinds.perturbed.describe import describe_local

        return describe_local(manifest)

    def frontier(self) -> Mapping[str, FrontierMethod]:
        return {"retention": FrontierMethod("perturbed rows", {}, ("retention",), named=True)}
