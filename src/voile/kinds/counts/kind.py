"""Noisy tables of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voile.kinds.kind import FolderKind, Parts

if TYPE_CHECKING:
    pass


class CountTables(FolderKind):
    """Noisy tables of counts."""

    name = "counts"
    methods = ("conjuncts",)
    about = "tables of counts"
    file_names = (r"data/table-[0-9]{4,6}\.parquet",)
    parts = Parts(
        options="options:CountOptions",
        manifest="manifest:ConjunctManifest",
        release="release:ConjunctRelease",
        draft="publishing:count_draft",
        describe="describe:describe_conjuncts",
        data_package="describe:count_package",
    )
