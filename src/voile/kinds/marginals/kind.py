"""Noisy marginals with a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from voile.kinds.kind import PARTS, FolderKind, FrontierMethod, Parts

if TYPE_CHECKING:
    from voile.kinds.choosing import EpsilonPromise, MethodCandidate, PublicSize


class Marginals(FolderKind):
    """Noisy marginals with a model."""

    name = "marginals"
    methods = ("marginals", "full-table")
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

    def candidates(self, public: PublicSize, promise: EpsilonPromise) -> Sequence[MethodCandidate]:
        """Ways to publish under (ε, δ), with their errors."""
        found = self.load("candidates:marginal_candidates")
        made: Sequence[MethodCandidate] = found(public, promise)
        return made

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """Noisy marginals at several ε, where they are named."""
        return {
            "marginals": FrontierMethod(
                "noisy marginals", {"method": "marginals"}, ("epsilon",),
                values={"epsilon": (0.3, 1.0, 3.0, 6.0)}, named=True,
            )
        }  # fmt: skip
