"""A kind of release: its interface to the rest of Voile, which knows kinds by this class alone.

What is known before there is a release is here: names, options, publishing, descriptions. What
needs a release (answers, statements, verification, losses) are methods of its class: see
release.py. CONTRIBUTING.md explains how to add one.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, final

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from voile.engines.table import Table
    from voile.kinds.choosing import EpsilonPromise, MethodCandidate, PublicSize
    from voile.kinds.manifest import Manifest
    from voile.kinds.publishing import Draft, PublishResult
    from voile.kinds.registration import Registrar
    from voile.kinds.release import Release
    from voile.options import Options
    from voile.progress import Progress
    from voile.signing import KeySource

PARTS = r"data/part-[0-9]{5}\.parquet"
"""The names of the files that hold rows: data/part-00000.parquet, data/part-00001.parquet, …"""

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
    file_names: ClassVar[tuple[str, ...]] = (PARTS,)
    """Patterns of the names that its files may have, besides README.md and datapackage.json.

    A manifest that names another file is refused: tools read folders such as `age=45` as columns.
    """

    def __init_subclass__(cls) -> None:
        """Refuse a kind with a `publish` of its own: no release may skip being verified."""
        super().__init_subclass__()
        if "publish" in vars(cls):
            raise TypeError(f"{cls.__name__}.publish: a kind brings a `draft`, and no `publish`")

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

    def check_place(self, options: Any, to: str | Path | None) -> None:
        """Refuse a place that does not suit the options; None is a temporary one."""

    @final
    def publish(
        self,
        table: Any,
        *,
        to: str | Path | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
        sign: KeySource | None = None,
        register: Registrar | None = None,
        **options: Any,
    ) -> PublishResult:
        """Publish a table, and say what the steward should know. `to` names the folder.

        `sign` is a key that vouches for the release before it leaves.
        `register` is where it is written down before it leaves; nowhere, unless it is given.
        """
        from voile.kinds.publishing import publish  # noqa: PLC0415  (it knows releases)

        checked = self.options(**options)
        return publish(
            self,
            table,
            checked,
            to=to,
            overwrite=overwrite,
            progress=progress,
            register=register,
            sign=sign,
        )

    # ------------------------------------------------------------------ chosen for the steward

    def candidates(self, public: PublicSize, promise: EpsilonPromise) -> Sequence[MethodCandidate]:  # noqa: ARG002
        """Ways to publish under (ε, δ), with their errors; from public numbers alone."""
        return ()

    # ------------------------------------------------------------------ on the frontier

    def frontier(self) -> Mapping[str, FrontierMethod]:
        """The ways to publish that the frontier may try, by name."""
        return {}

    def check_frontier(self, options: Mapping[str, Any]) -> None:
        """Refuse, with a PromiseError, options that promise nothing."""


@dataclass(frozen=True)
class Parts:
    """Where the parts of a kind are: each `"module:name"` of the kind's folder."""

    options: str
    manifest: str
    release: str
    draft: str
    """A function of the table, the options, the place and the progress."""
    describe: str
    data_package: str | None = None
    """None for rows of the schema in data/."""


class FolderKind(Kind[Any]):
    """A kind whose parts are modules of its folder, each loaded when it is first used."""

    parts: ClassVar[Parts]

    def load(self, part: str) -> Any:
        """A part of the kind, `"module:name"`."""
        module, _, name = part.partition(":")
        folder = type(self).__module__.rpartition(".")[0]
        return getattr(importlib.import_module(f"{folder}.{module}"), name)

    @property
    def options(self) -> type[Options]:
        """The model of a steward's options."""
        found: type[Options] = self.load(self.parts.options)
        return found

    @property
    def manifest(self) -> type[Manifest]:
        """The model of such a release's manifest."""
        found: type[Manifest] = self.load(self.parts.manifest)
        return found

    @property
    def release(self) -> type[Release]:
        """The class of such a release, once it is opened."""
        found: type[Release] = self.load(self.parts.release)
        return found

    def draft(
        self, table: Table, options: Any, target: Path, progress: Progress
    ) -> AbstractContextManager[Draft]:
        """Read the table, and plan what to publish of it."""
        found: AbstractContextManager[Draft] = self.load(self.parts.draft)(
            table, options, target, progress
        )
        return found

    def describe(self, manifest: Manifest) -> str:
        """The release in plain words, as Markdown."""
        return str(self.load(self.parts.describe)(manifest))

    def data_package(self, manifest: Manifest) -> dict[str, Any]:
        """The release as a Frictionless data package."""
        if self.parts.data_package is None:
            return super().data_package(manifest)
        found: dict[str, Any] = self.load(self.parts.data_package)(manifest)
        return found
