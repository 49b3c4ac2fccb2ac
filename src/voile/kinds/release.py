"""A release: all that is published, in one folder that describes itself.

NAME.voile/
  manifest.json      what it is, what is promised, the public domain, a hash of every file
  datapackage.json   the same columns for tools that know Frictionless data packages
  README.md          how to read it and to count from it without Voile
  data/part-*.parquet
  history/part-*.parquet   in a series: every tuple that its views have shown, and how often
"""

from __future__ import annotations

import difflib
import glob
import html
import json
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
from pydantic import ValidationError

from voile.engines import counting_engine, open_rows, read_all
from voile.errors import ReleaseError, UsageError, VoileError, spelled
from voile.files import check_utf8
from voile.kinds.kind import Kind
from voile.kinds.manifest import FORMAT, MANIFEST, PARTIAL, REPLACED, VERSION, Manifest
from voile.kinds.opening import (
    MISFITS,
    check_hashes,
    check_json,
    check_listed,
    check_shape,
    read_limited,
)
from voile.kinds.parquet import arrow_schema, read_parquet
from voile.kinds.registry import KindError, kind_of
from voile.progress import Progress
from voile.schema import Keys, Schema
from voile.units import byte_count

if TYPE_CHECKING:
    import numpy.typing as npt

    from voile.answering.explanation import Explanation
    from voile.arrays import Floats
    from voile.engines import CountingEngine
    from voile.engines.rows import ReleaseRows
    from voile.engines.table import Table
    from voile.estimate import Answer
    from voile.kinds.beliefs import BeliefBounds, StatedBeliefs
    from voile.kinds.evaluation import CountedSelections, LossEvidence, Truth
    from voile.kinds.exported import ExportChoice, ExportTable
    from voile.kinds.manifest import File
    from voile.kinds.registration import DepartureUnit
    from voile.kinds.stored import Mirror
    from voile.privacy.guarantees.statements import Statement
    from voile.query import DomainSums
    from voile.query.bind import Tables
    from voile.query.query import Query


# ----------------------------------------------------------------------
# options of a query: all that `query` takes besides the SQL


MEMORY = 2**30
OpenedView = Any
"""What a kind answers from: `ReleaseRows`, or a `PublicDomain` where it has no rows to count."""


@dataclass(frozen=True)
class QueryOptions:
    """The same for every kind of release; each refuses what means nothing to it."""

    confidence: float = 0.95
    tables: Mapping[str, object] = field(default_factory=dict)
    simultaneous: bool = False
    refine: bool | None = None
    """None: as the kind has it; False: without a model."""
    method: str | None = None
    memory: int | str = MEMORY
    exact: bool = False


# ----------------------------------------------------------------------
# the roles of a release's columns


@dataclass(frozen=True)
class Roles:
    """Which columns of a release may be quasi-identifiers, and which sensitive."""

    qi: Sequence[str]
    sensitive: Sequence[str]
    stated: bool = False
    """Whether the release itself says so."""


# ----------------------------------------------------------------------
# a release, opened


SMALLEST_MEMORY = 2**24


class Release(ABC):
    """What was published, with what is promised about it; estimates come from `query`."""

    kind: ClassVar[str] = "a release"
    instead: ClassVar[str] = ""
    """What to do with it where another kind of release is needed."""
    refines: ClassVar[bool] = False
    """Whether `refine` fits a model to it, or it has one."""
    is_refined: ClassVar[bool] = False
    """Whether answers are weighed against a model where nothing else is said."""
    has_losses: ClassVar[bool] = False
    """Whether it has `loss_evidence`."""
    rows_are: ClassVar[str] = ""
    """What a row of `shown_rows` is; empty where rows mean nothing by themselves."""
    ways: ClassVar[tuple[str, ...]] = ()
    """The methods of answering that it has, the usual one first; none where there is one way."""
    manifest: Manifest

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.engine: CountingEngine | None = None
        """Counts the rows, where that is not this machine."""
        self.mirror: Mirror | None = None
        """Where the release lies, if that is elsewhere; `path` has what was brought here of it."""
        self.notes: tuple[str, ...] = ()
        """What opening it did that may not be expected."""
        self._others: dict[CountingEngine, Self] = {}
        self._origin: Self | None = None
        self._beside: tuple[Any, OpenedView, Tables] | None = None

    @classmethod
    def open(cls, path: str | Path, *, check: bool = True, engine: object = None) -> Self:
        """Open a release: reads its manifest and checks that its files are there, whole.

        Reads data only; nothing in a release is ever executed. A file is hashed when it is first
        opened, and again when it was touched since; without `check` only sizes are compared.
        `verify` looks at more.

        `path` may be a URL of an object store, as s3a://bucket/people.voile. `engine` counts the
        rows: the address of a Spark Connect server ("sc://…"; "local" starts one in this process),
        or a session of one. Rows in an object store are fetched, unless there is an engine.
        """
        counting = None if engine is None else counting_engine(engine)
        if lies_elsewhere(path):
            from voile.kinds.stored import open_stored  # it makes releases

            return cls._checked(open_stored(str(path), check=check, engine=counting), path)
        folder = Path(path)
        check_utf8(folder)
        if not folder.is_dir():
            raise UsageError(f"there is no release {str(path)!r}", hint=hint_at(folder))
        if PARTIAL in folder.resolve().name:
            raise ReleaseError(
                f"{str(path)!r} was left by a run that did not finish", hint="delete it"
            )
        while True:  # until no other release took its place meanwhile
            before = identity(folder)
            try:
                found = cls.read(folder, check=check)
            except ReleaseError:
                if identity(folder) == before:
                    raise
                continue
            if identity(folder) == before:
                found.engine = counting
                return found

    @classmethod
    def read(cls, folder: Path, *, check: bool = False) -> Self:
        """Read a folder that may not be in its place yet."""
        kind, manifest = read_manifest(read_limited(folder))
        check_listed(kind, folder, manifest)
        if check:
            check_hashes(folder, manifest)
        return cls._checked(kind.release(folder, manifest), folder)

    @classmethod
    def _checked(cls, release: Release, place: str | Path) -> Self:
        """The release, if it is of this kind."""
        if not isinstance(release, cls):
            raise UsageError(
                f"{str(place)!r} is {release.kind}, and this is for {cls.kind}",
                hint=release.instead,
            )
        return release

    def counted_by(self, engine: object) -> Self:
        """The same release, whose rows an engine counts: see `open`."""
        counting = counting_engine(engine)
        if counting == self.engine:
            return self
        if counting not in self._others:
            other = type(self)(self.path, self.manifest)
            other.lies_at(self.mirror, counting)
            other._origin = self  # a temporary folder goes with the release that was opened
            self._others[counting] = other
        return self._others[counting]

    def lies_at(self, mirror: Mirror | None, engine: CountingEngine | None) -> None:
        """Say where its files are, and who counts its rows; for whoever opens it."""
        self.mirror, self.engine = mirror, engine

    def save(self, path: str | Path, *, overwrite: bool = False) -> Self:
        """Copy to a folder of that name: written beside, verified, then renamed into place.

        A temporary release leaves by this, also one that was opened again: it is written into the
        register before.
        """
        if lies_elsewhere(path):
            raise UsageError(
                "a release is saved to a folder of this machine",
                hint=f"publish it there: {spelled('to', str(path), flag='-o')}",
            )
        from voile.kinds.registration import PENDING
        from voile.kinds.staging import copy  # it opens what it has written

        copy(self, Path(path), overwrite=overwrite, pending=PENDING.of(self))
        return self.open(path, check=False)  # it was verified just now

    @property
    def counted_with(self) -> tuple[str, str]:
        """The group of releases that keep one promise together, and its place among them.

        The register counts the promise of a group once. A release is alone, unless a kind knows
        better; then both are empty.
        """
        return "", ""

    @property
    def protects(self) -> DepartureUnit:
        """Whom its promises are about: one record, or one person with all of their rows."""
        people: object = getattr(self.manifest, "people", None)
        return "record" if people is None else "person"

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """What the table is called in SQL."""
        return self.manifest.name

    @cached_property
    def schema(self) -> Schema:
        """The public domain: the columns and the values that they may have."""
        return self.manifest.schema_

    def describe(self) -> str:
        """In plain words: what is promised, against whom, what not, and how to count from it."""
        try:
            return kind_of(self.manifest.method).describe(self.manifest)
        except MISFITS as error:
            raise ReleaseError(
                f"what the release states does not fit together: {type(error).__name__}: {error}",
                hint="try `voile verify`",
            ) from error

    @abstractmethod
    def check_terms(self) -> None:
        """Recompute, from the parameters as they are written down, all that is promised."""

    def check_contents(self) -> None:  # noqa: B027  (most have nothing more)
        """Check what its files hold, where they hold more than rows of the schema."""

    def check_plausible(self) -> bool:
        """Whether its rows can be looked at, and are what the stated mechanism makes.

        Raises ReleaseError where they are not; False where the kind has no such law.
        """
        return False

    @property
    def unseen(self) -> str:
        """Why `check_plausible` does not look at the rows, where it does not."""
        return (
            "the rows were not looked at because no law of chance says how rows of "
            f"{self.kind} come about"
        )

    @property
    def unprotected(self) -> list[str]:
        """Columns that are shown as they are: what is promised is not about them."""
        return []

    @abstractmethod
    def promised(self) -> list[Statement]:
        """What the release keeps, as statements that can be compared and converted."""

    @abstractmethod
    def not_promised(self) -> list[Statement]:
        """What it must not be taken to keep."""

    @property
    def promise_in_short(self) -> str:
        """What it promises, in a line."""
        explained = (one.explain for one in self.promised())
        return next(explained, "it promises nothing").removesuffix(".")

    def refine(self, progress: Progress | None = None, *, replace_broken: bool = False) -> Any:
        """A model of the table, fitted to this release alone, where `refines` says so."""
        del progress, replace_broken  # for those that are refined
        raise UsageError(f"{self.name!r} is {self.kind}, and is not refined", hint=self.instead)

    def stated_beliefs(self) -> StatedBeliefs | None:
        """What a promise of ε means in beliefs; None where the promise is of another kind."""
        return None

    def belief_bounds(self) -> BeliefBounds | None:
        """What anyone can come to believe of one row, where that is all that can be said.

        None: beliefs of a certain attacker are computed, or nothing is.
        """
        return None

    # ------------------------------------------------------------------ measuring it

    @property
    def roles(self) -> Roles:
        """Which columns may be quasi-identifiers, and which sensitive."""
        return Roles(self.schema.names, self.schema.names)

    @property
    def rows_behind(self) -> int | None:
        """How many rows the table had that it was made of, where that is disclosed."""
        return self.manifest.public_rows

    def domain_behind(self, table: Table) -> Schema:  # noqa: ARG002  (for those that narrow it)
        """The domain of that table, wider than the release's where it leaves out values."""
        return self.schema

    def loss_evidence(self, truth: Truth) -> LossEvidence:  # noqa: ARG002
        """What it shows about people, to be compared with the truth."""
        raise UsageError(
            f"{self.name} is {self.kind}: losses are of rows that are shown", hint=self.instead
        )

    def estimate_selections(
        self,
        count: Callable[[Sequence[npt.NDArray[Any]]], CountedSelections],  # noqa: ARG002
        *,
        refine: bool = False,  # noqa: ARG002
    ) -> Floats:
        """Estimates of all selections at once, from what `count` counts of its rows' codes."""
        raise UsageError(
            f"selections are not estimated at once from {self.kind} of this kind",
            hint="ask them one by one with release.query",
        )

    # ------------------------------------------------------------------ counting from it

    def query(
        self,
        sql: str,
        confidence: float = 0.95,
        *,
        tables: Mapping[str, object] | None = None,
        simultaneous: bool = False,
        refine: bool | None = None,
        method: str | None = None,
        memory: int | str = MEMORY,
        exact: bool = False,
        engine: object = None,
    ) -> Answer:
        """Estimate what the SQL would give on the original table.

        `tables` are tables of your own that the SQL may look things up in, by name: files or
        data frames. `simultaneous` makes the intervals of all groups hold at once. `refine` weighs
        each estimate against a model of the table (see `refine`); noisy marginals have theirs
        inside and use it, unless it is False. `method` chooses how rows that
        were perturbed one by one are reconstructed: inversion or em. `memory` (bytes, or 4GB) is
        what counting the domain may use; what needs more is estimated from a sample of the domain,
        whose error is included, or refused with `exact`. `engine` counts the rows: see `open`.
        """
        from voile.estimate import checked_confidence
        from voile.query import parse

        if engine is not None:
            return self.counted_by(engine).query(
                sql, confidence, tables=tables, simultaneous=simultaneous, refine=refine,
                method=method, memory=memory, exact=exact,
            )  # fmt: skip
        options = QueryOptions(
            checked_confidence(confidence),
            tables or {},
            simultaneous,
            refine,
            method,
            memory,
            exact,
        )
        self._check_options(options)
        view, columns = self._with_tables(options.tables)
        return self._answer(parse(sql, self.schema, columns, self.manifest.name), view, options)

    def explain(
        self,
        sql: str,
        *,
        tables: Mapping[str, object] | None = None,
        memory: int | str = MEMORY,
        exact: bool = False,
        engine: object = None,
    ) -> dict[str, Any]:
        """How the estimate comes about: what was counted, how the domain was, the arithmetic."""
        found = self.explanation(sql, tables=tables, memory=memory, exact=exact, engine=engine)
        return found.to_dict()

    def explanation(
        self,
        sql: str,
        *,
        tables: Mapping[str, object] | None = None,
        memory: int | str = MEMORY,
        exact: bool = False,
        engine: object = None,
    ) -> Explanation:
        """The same as `explain`, as a typed object with sections for reading."""
        from voile.query import parse

        if engine is not None:
            other = self.counted_by(engine)
            return other.explanation(sql, tables=tables, memory=memory, exact=exact)
        options = QueryOptions(tables=tables or {}, memory=memory, exact=exact)
        view, columns = self._with_tables(options.tables)
        return self._explain(parse(sql, self.schema, columns, self.manifest.name), view, options)

    @abstractmethod
    def _check_options(self, options: QueryOptions) -> None:
        """Refuse ways of answering that this kind of release does not have."""

    @abstractmethod
    def _answer(self, query: Query, view: OpenedView, options: QueryOptions) -> Answer: ...

    @abstractmethod
    def _explain(self, query: Query, view: OpenedView, options: QueryOptions) -> Explanation: ...

    @cached_property
    def _view(self) -> OpenedView:
        return self._opened_view()

    def _opened_view(self, which: str = "current") -> OpenedView:  # noqa: ARG002  (for series)
        return self._open_rows()

    @cached_property
    def _rows(self) -> ReleaseRows:
        """The rows as the files have them; opened once, for an engine takes a while to begin."""
        return self._open_rows()

    @cached_property
    def _rows_here(self) -> ReleaseRows:
        """The same on this machine, in the order of the files."""
        return self._rows if self.engine is None else open_rows(self._parts, self.schema)

    def _open_rows(
        self, folder: str = "data/", *, scores: Any = None, beside: Any = None
    ) -> ReleaseRows:
        """Rows of the schema, counted by the engine if there is one; see `engines.open_rows`."""
        if self.engine is None:
            return open_rows(self._parquet(folder), self.schema, scores=scores, beside=beside)
        files = self._parquet_files(folder)
        return self.engine.open_rows(
            [self._place(file) for file in files],
            self.schema,
            scores=scores,
            beside=beside,
            rows=sum(file.rows or 0 for file in files),
        )

    def _place(self, file: File) -> str:
        """Where an engine finds a file."""
        if self.mirror is not None:
            return self.mirror.store.uri(file.path)
        return str((self.path / file.path).resolve())

    def stays(self, path: str) -> bool:  # noqa: ARG002  (for those that have such files)
        """Whether a file is counted by an engine alone, so that it need not be on this machine."""
        return False

    @property
    def left(self) -> frozenset[str]:
        """The files that are not on this machine: an engine counts them where they are."""
        if self.mirror is None or self.engine is None:
            return frozenset()
        return frozenset(f.path for f in self.manifest.files if self.stays(f.path))

    @property
    def _parts(self) -> list[Path]:
        return self._parquet("data/")

    def _parquet(self, folder: str) -> list[Path]:
        """Parquet files on this machine; those that were left elsewhere are fetched."""
        files = self._parquet_files(folder)
        if self.mirror is not None:
            return [self.mirror.bring(file).resolve() for file in files]
        return [(self.path / file.path).resolve() for file in files]

    def _parquet_files(self, folder: str) -> list[File]:
        return [
            f
            for f in self.manifest.files
            if f.path.endswith(".parquet") and f.path.startswith(folder)
        ]

    def _sums(self, view: OpenedView, amount: int | str, *, exact: bool) -> DomainSums:
        """Kept for as long as the view, so that what was computed once is remembered."""
        from voile.query import DomainSums

        memory = byte_count(amount)
        if memory < SMALLEST_MEMORY:
            raise UsageError(f"{memory:,} bytes of memory are too few", hint="give at least 16MB")
        found: dict[tuple[int, bool], DomainSums] = view.__dict__.setdefault("sums_kept", {})
        key = (memory, exact)
        if key not in found:
            found[key] = DomainSums(self.schema, view.domain, memory=memory, exact=exact)
        return found[key]

    def _with_tables(
        self, tables: Mapping[str, object], which: str = "current"
    ) -> tuple[OpenedView, Tables]:
        """The view beside the analyst's tables, and the columns of those."""
        if not isinstance(tables, Mapping) or not all(isinstance(name, str) for name in tables):
            raise UsageError("tables are given by name", hint='tables={"regions": frame}')
        if not tables:
            return (self._view if which == "current" else self._opened_view(which)), {}
        if len({name.lower() for name in tables}) < len(tables):
            raise UsageError(
                f"two tables have one name: {', '.join(tables)}",
                hint="SQL does not tell upper case from lower case",
            )
        files = fingerprint(tables)
        key = files and (which, *files)
        if key is None or self._beside is None or self._beside[0] != key:
            view = self._opened_view(which)
            columns = {name: view.add_table(name, read_all(t)) for name, t in tables.items()}
            self._beside = (key, view, columns)
        return self._beside[1], self._beside[2]

    # ------------------------------------------------------------------ its rows

    def columns_of(self, path: str) -> Any:  # noqa: ARG002  (for those that have others)
        """The Arrow schema that one of its Parquet files must have."""
        return arrow_schema(self.schema)

    def counts_rows(self, path: str) -> bool:
        """Whether the rows of that file are counted as rows of the release."""
        return path.endswith(".parquet")

    def foreign_attribute(self) -> str | None:
        """An attribute with values outside its domain, which no sound release has."""
        return self._rows.outside()

    def keys(self) -> Keys:
        """The rows of the view by their places in the domain, in order."""
        return self._rows.keys()

    def to_arrow(self) -> Any:
        """The rows that were published, noise and all, as an Arrow table."""
        wanted = arrow_schema(self.schema)
        tables = [read_parquet(part).cast(wanted) for part in self._parts]
        return pa.concat_tables(tables) if tables else wanted.empty_table()

    def rows_for_tools(self) -> Any:
        """The rows as an Arrow table, where a tool that knows no noise may count them.

        A kind whose rows mean nothing by themselves refuses, and says what to do.
        """
        return self.to_arrow()

    def shown_rows(self) -> Any:
        """The rows that a person may look at, as an Arrow table; `rows_are` says what they are."""
        return self.rows_for_tools()

    def exported(self, choice: ExportChoice) -> Sequence[ExportTable]:
        """What `voile export` writes of it; one that was not asked for is refused by name."""
        from voile.kinds.exported import ExportTable, attributes_of

        self.refuse_choice(choice)
        columns = self.rows_for_tools().schema
        about = f"Rows of {self.kind}, as the release shows them. {self.counting_hint}"
        return [
            ExportTable(
                self.name, columns, [self.rows_for_tools()], about,
                attributes_of(columns, self.schema),
            )
        ]  # fmt: skip

    @property
    def counting_hint(self) -> str:
        """Where it stands how to count from its rows."""
        return "How to count from them stands below; `release.query` does it, with intervals."

    def refuse_choice(
        self,
        choice: ExportChoice,
        *,
        tables: bool = False,
        noisy_rows: bool = False,
        number: bool = False,
    ) -> None:
        """Refuse what this kind does not have; those that it has are said."""
        asked = {
            "tables": choice.tables and not tables,
            "noisy_rows": choice.noisy_rows and not noisy_rows,
            "number": choice.number is not None and not number,
        }
        for name, wrong in asked.items():
            if wrong:
                value = choice.number if name == "number" else True
                raise UsageError(
                    f"{spelled(name, value)} is for other releases, and {self.name!r} is "
                    f"{self.kind}",
                    hint=f"leave out {spelled(name, value)}",
                )

    def __arrow_c_schema__(self) -> Any:
        """The columns of its rows, for any tool that speaks Arrow's PyCapsule protocol."""
        return self.rows_for_tools().schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Its rows, for any such tool: `polars.DataFrame(release)`."""
        return self.rows_for_tools().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """The published rows as a pandas DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The published rows as a polars DataFrame; needs polars."""
        import polars  # an optional package

        return polars.from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.manifest.rows:,} rows)"

    def __rich__(self) -> Any:
        from rich.markdown import Markdown

        return Markdown(self.describe(), hyperlinks=False)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>{self.schema._repr_html_()}"


def read_manifest(raw: bytes) -> tuple[Kind[Any], Manifest]:
    """Parse and check a manifest, whose every byte counts; and the kind that it is of."""
    check_json(raw)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ReleaseError(f"manifest.json is not JSON that can be read: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReleaseError("manifest.json is not that of a Voile release")
    version = data.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ReleaseError(
            f"the release has format version {version!r}, newer than {VERSION}",
            hint="open it with a newer Voile",
        )
    check_shape(data)
    try:
        kind = kind_of(str(data.get("method")))
        manifest: Manifest = kind.manifest.model_validate(data)
        schema = manifest.schema_
        manifest.check_learnt()
        manifest.check()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ReleaseError(f"manifest.json: {where}: {first['msg']}") from None
    except KindError:
        raise
    except (VoileError, ValueError) as error:
        raise ReleaseError(f"manifest.json: {error}") from None
    except MISFITS as error:
        raise ReleaseError(f"manifest.json: {type(error).__name__}: {error}") from error
    if not manifest.is_whole(raw):
        raise ReleaseError("manifest.json was changed after the release was written")
    if str(schema.size) != manifest.domain_size:
        raise ReleaseError(
            f"manifest.json: domain_size {manifest.domain_size} is not {schema.size}"
        )
    return kind, manifest


def lies_elsewhere(path: str | Path) -> bool:
    """Whether it is a URL."""
    if not isinstance(path, str) or "://" not in path:
        return False
    from voile.storage import is_url  # most releases are folders

    return is_url(path)


def identity(folder: Path) -> tuple[int, int] | None:
    """Which folder has this name now; None where none has."""
    try:
        state = folder.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def hint_at(missing: Path) -> str:
    """What to do about a release that is not there; a killed run may have moved it aside."""
    if re.match(r"[a-z][a-z0-9+]+:/(?=[^/])", str(missing)):
        return "give the URL as text, to what takes one; else copy the release here first"
    name = f".{glob.escape(missing.name)}{REPLACED}*"
    for left in missing.absolute().parent.glob(name):
        return f"a run that was to replace it was killed: rename {left.name!r}, or publish it again"
    if missing.is_file():
        return (
            f"it is a file; `voile publish {shlex.quote(str(missing))}` makes a release of a table"
        )
    folders = [p.name for p in missing.absolute().parent.glob("*") if (p / MANIFEST).is_file()]
    near = difflib.get_close_matches(missing.name, folders, 1)
    return f"did you mean {near[0]!r}?" if near else "a release is a folder"


def fingerprint(tables: Mapping[str, object]) -> Any:
    """By which files are known to be unchanged; None for objects, which may change unseen."""
    found = []
    for name, table in tables.items():
        file = Path(table) if isinstance(table, str | Path) else None
        if file is None or not file.is_file():
            return None
        state = file.stat()
        found.append((name, str(file.resolve()), state.st_mtime_ns, state.st_size))
    return tuple(found)
