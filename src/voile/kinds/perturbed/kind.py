"""Rows that were perturbed one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from voile.errors import PromiseError
from voile.kinds.kind import FolderKind, FrontierMethod, Parts

if TYPE_CHECKING:
    pass


class PerturbedRows(FolderKind):
    """Rows that were perturbed one by one."""

    name = "perturbed"
    methods = ("retention", "frapp")
    command = "perturb"
    about = "perturbed rows"
    parts = Parts(
        options="options:PerturbOptions",
        manifest="manifest:LocalManifest",
        release="release:LocalRelease",
        draft="publishing:perturbed",
        describe="describe:describe_local",
    )

    def check_frontier(self, options: Mapping[str, Any]) -> None:
        """Refuse retention 1, which promises nothing."""
        if options["retention"] == 1:
            raise PromiseError(
                "retention 1 keeps every value, and promises nothing", hint="choose one below 1"
            )

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The ways to perturb rows that the frontier may try."""
        return {"retention": FrontierMethod("perturbed rows", {}, ("retention",), named=True)}
