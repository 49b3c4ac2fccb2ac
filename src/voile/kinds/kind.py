"""A kind of release: its interface to the rest of Voile, which knows kinds by this class alone.

What is known before there is a release is here: names, options, publishing, descriptions. What
needs a release (answers, statements, verification, losses) are methods of its class: see
release.py. CONTRIBUTING.md explains how to add one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.manifest import Manifest
    from voile.kinds.publishing import Draft, PublishResult
    from voile.kinds.registration import Registrar
    from voile.kinds.release import Release
    from voile.options import Options
    from voile.progress import Progress

M = TypeVar("M", bound="Manifest")


@dataclass(frozen=True)
class FrontierMethod:
    """A way to publish that the frontier tries: its options, and which of them it varies."""

    about: str
    """Its name in words, as the legend of a plot has it."""
    options: Mapping[str, Any]
    varied: Sequence[str]
    """The options that a grid has values of."""
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """For options that no grid has values of: those that are tried."""
    recodes: tuple[Any, ...] = ()
    """How its classes are shown; none where it makes no classes."""
    whole: bool = False
    """Whether its requirements take whole numbers only."""
    named: bool = False
    """Whether it is measured only where it is named: it is slow, or promises something else."""
    looks: bool = False
    """Whether sensitive values decide which rows share a class."""


class Kind(ABC, Generic[M]):
    """A kind of release, as the rest of Voile knows it."""

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]
    """The methods that make such releases, as manifests name them."""
    command: ClassVar[str] = "publish"
    """The command that makes them."""
    about: ClassVar[str]
    """What such a release is, for the list of methods: 'a noisy view'."""

    @property
    @abstractmethod
    def options(self) -> type[Options]:
        """The model of a steward's options."""

    @property
    @abstractmethod
    def manifest(self) -> type[M]:
        """The model of such a release's manifest."""

    @property
    @abstractmethod
    def release(self) -> type[Release]:
        """The class of such a release, once it is opened."""

    @abstractmethod
    def describe(self, manifest: M) -> str:
        """The release in plain words, as Markdown: README.md, and `voile describe`."""

    def data_package(self, manifest: M) -> dict[str, Any]:
        """The release as a Frictionless data package."""
        from voile.kinds.describe import row_package  # noqa: PLC0415  (kinds are listed often)

        return row_package(manifest, self.about)

    @abstractmethod
    def draft(
        self, table: Table, options: Any, target: Path, progress: Progress
    ) -> AbstractContextManager[Draft]:
        """Read the table, and plan what to publish of it; nothing is written yet."""

    def publish(
        self,
        table: Any,
        *,
        to: str | Path | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
        register: Registrar | None = None,
        **options: Any,
    ) -> PublishResult:
        """Publish a table, and say what the steward should know. `to` names the folder.

        `register` is where it is written down before it leaves; nowhere, unless it is given.
        """
        from voile.kinds.publishing import publish  # noqa: PLC0415  (it knows releases)

        checked = self.options(**options)
        return publish(
            self, table, checked, to=to, overwrite=overwrite, progress=progress, register=register
        )

    # ------------------------------------------------------------------ on the frontier

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The ways to publish that the frontier may try, by name."""
        return {}

    def check_frontier(self, options: Mapping[str, Any]) -> None:
        """Refuse, with a PromiseError, options that promise nothing."""
