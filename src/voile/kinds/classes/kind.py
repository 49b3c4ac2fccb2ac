"""Rows that were grouped into classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from voile.kinds.kind import PARTS, FolderKind, FrontierMethod, Parts

if TYPE_CHECKING:
    pass


class Classes(FolderKind):
    """Rows that were grouped into classes."""

    name = "classes"
    methods = ("mondrian", "anatomy", "fulldomain", "suppress", "freeshape", "trivial")
    about = "classes of rows"
    file_names = (PARTS, r"(classes|sensitive)/part-00000\.parquet")
    parts = Parts(
        options="options:ClassOptions",
        manifest="manifest:ClassManifest",
        release="release:ClassRelease",
        draft="publishing:class_draft",
        describe="describe:describe_classes",
        data_package="describe:class_package",
    )

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The methods that the frontier tries."""
        return FRONTIER


REQUIREMENTS = ("k", "l", "t", "semantic")
BOTH = ("generalize", "bucketize")
FRONTIER = {
    "mondrian": FrontierMethod(
        "Mondrian", {"method": "mondrian", "cuts": "median"}, REQUIREMENTS, recodes=BOTH
    ),
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
