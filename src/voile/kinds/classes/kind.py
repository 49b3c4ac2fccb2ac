"""Rows that were grouped into classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voile.kinds.kind import FrontierMethod, Kind

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.classes.manifest import ClassManifest
    from voile.kinds.classes.options import ClassOptions
    from voile.kinds.classes.release import ClassRelease
    from voile.kinds.publishing import Draft
    from voile.progress import Progress


class Classes(Kind["ClassManifest"]):
    """Rows that were grouped into classes."""

    name = "classes"
    methods = ("mondrian", "anatomy", "fulldomain", "suppress", "freeshape", "trivial")

    about = "classes of rows"

    @property
    def options(self) -> type[ClassOptions]:
        """The model of a steward's options."""

        from voile.kinds.classes.options import ClassOptions

        return ClassOptions

    @property
    def manifest(self) -> type[ClassManifest]:
        """The model of the manifest."""

        from voile.kinds.classes.manifest import ClassManifest

        return ClassManifest

    @property
    def release(self) -> type[ClassRelease]:
        """The class of an opened release."""

        from voile.kinds.classes.release import ClassRelease

        return ClassRelease

    def draft(
        self,
        table: Table,
        options: Any,
        target: Path,  # noqa: ARG002
        progress: Progress,
    ) -> AbstractContextManager[Draft]:
        """Read the table and find its classes."""

        from voile.kinds.classes.finding import find
        from voile.kinds.classes.publishing import ClassDraft
        from voile.kinds.classes.reading import prepare

        prepared = prepare(table, options, progress)
        return ClassDraft(prepared, find(prepared, options), options)

    def describe(self, manifest: ClassManifest) -> str:
        """The release in plain words."""

        from voile.kinds.classes.describe import describe_classes

        return describe_classes(manifest)

    def data_package(self, manifest: ClassManifest) -> dict[str, Any]:
        """The release as a data package."""

        from voile.kinds.classes.describe import class_package

        return class_package(manifest)

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The methods that the frontier tries."""
        return FRONTIER


REQUIREMENTS = ("k", "l", "t", "semantic")
BOTH = ("generalize", "bucketize")
FRONTIER = {
    "mondrian": FrontierMethod("Mondrian", {"method": "mondrian"}, REQUIREMENTS, recodes=BOTH),
    "information": FrontierMethod(
        "Mondrian with information cuts", {"method": "mondrian", "cuts": "information"},
        ("l", "t"), recodes=BOTH, looks=True,
    ),
    "freeshape": FrontierMethod(
        "free-shape buckets", {"method": "freeshape"}, ("t",), recodes=("bucketize",),
        named=True, looks=True,
    ),
    "anatomy": FrontierMethod(
        "Anatomy", {"method": "anatomy"}, ("l",), recodes=("bucketize",), whole=True
    ),
    "fulldomain": FrontierMethod(
        "full-domain generalization", {"method": "fulldomain", "suppression": 0.02},
        ("k", "l", "t"), recodes=("generalize",),
    ),
    "trivial": FrontierMethod(
        "trivial anonymization", {"method": "trivial"}, (), recodes=("generalize",)
    ),
}  # fmt: skip
"""The first is tried in each way to show classes."""
