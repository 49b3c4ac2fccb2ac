"""Noisy marginals with a model."""

from __future__ import annotations

from voile.kinds.kind import PARTS, FolderKind, Parts


class Marginals(FolderKind):
    """Noisy marginals with a model."""

    name = "marginals"
    methods = ("marginals",)
    about = "noisy marginals with a model"
    file_names = (PARTS, r"model/mixture\.parquet")
    parts = Parts(
        options="options:MarginalOptions",
        manifest="manifest:MarginalManifest",
        release="release:MarginalRelease",
        draft="publishing:marginal_draft",
        describe="describe:describe_marginals",
        data_package="describe:marginal_package",
    )
