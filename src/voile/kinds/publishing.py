"""From a private table to a release, the same for every kind.

The table is read and what to publish is planned (a kind's `draft`); the release is written beside
its place, described and sealed, verified as a stranger would, and only then renamed into place.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.engines.table import Table
from voile.errors import PromiseError, VoileError, spelled
from voile.kinds.choosing import MethodChoice, rounded
from voile.kinds.describe import with_fields
from voile.kinds.kind import Kind
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, README, Manifest, file_entry
from voile.kinds.people import BoundedRows, PeopleCount, kept_rows
from voile.kinds.registration import (
    PENDING,
    NoRegistration,
    PendingEntry,
    Registrar,
    Registration,
)
from voile.kinds.registry import kind_of
from voile.kinds.release import Release
from voile.kinds.signatures import lost_signatures
from voile.kinds.staging import Staging, entered, place_for, removed_with, reseal
from voile.kinds.stored import check_place as check_stored_place
from voile.kinds.stored import put_remote
from voile.progress import Progress, Silent
from voile.signing import KeySource, SigningKey
from voile.signing.keys import signing_key
from voile.storage import StoredFolder, is_url

# ----------------------------------------------------------------------
# what the steward is shown once a release is published


@dataclass(frozen=True)
class PublishResult:
    """A release that was published, with notes for its steward; it may hold true counts."""

    release: Release
    rows_in: int
    rows_dropped: int
    notes: tuple[str, ...]
    account: Mapping[str, Any] | None = field(default=None, kw_only=True)
    """What the register says of the data set, this release included; None where it has none."""
    choice: MethodChoice | None = field(default=None, kw_only=True)
    """How the method was chosen, where that was left to Voile."""
    people: PeopleCount | None = field(default=None, kw_only=True)
    """How many people there are, where the options name them."""
    url: str = field(default="", kw_only=True)
    """Where it was put in an object store; the release here is a copy."""

    @property
    def place(self) -> str:
        """Where it was put: a folder, or a URL."""
        return self.url or str(self.release.path)

    def facts(self) -> list[tuple[str, str]]:
        """What the steward is shown of it, by name, besides what every release has."""
        rows = f"{self.rows_in:,} in, {self.release.manifest.rows:,} out"
        return [("rows", rows), ("promise", self.release.promise_in_short)]

    def people_facts(self) -> list[tuple[str, str]]:
        """How many people there are, by name; a true count, for the steward alone."""
        return [] if self.people is None else [("people", self.people.words)]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for `--json`."""
        manifest = self.release.manifest
        return {
            "release": self.place,
            "method": manifest.method,
            "rows_in": self.rows_in,
            "rows_dropped": self.rows_dropped,
            "rows_out": manifest.rows,
            "domain_size": manifest.domain_size,
            "parameters": manifest.parameters.model_dump(),
            "guarantee": manifest.guarantee.model_dump(),
            "simulated": manifest.simulated,
            "nulls": manifest.nulls,
            "disclosed": [d.model_dump() for d in manifest.disclosed],
            "notes": list(self.notes),
            "registered": manifest.registered,
            "register": self.account,
            "people": None if self.people is None else self.people.to_dict(),
            **self._choice(),
        }

    def _choice(self) -> dict[str, Any]:
        """Why this method, and what is promised: for `--json`."""
        choice = self.choice
        if choice is None:
            return {"why": None, "considered": [], "expected_error": None, "promise": None}
        return {
            "why": choice.why,
            "considered": [one.to_dict() for one in choice.considered],
            "expected_error": rounded(choice.chosen.expected_error),
            "promise": choice.promise.to_dict(),
        }


# ----------------------------------------------------------------------
# from a private table to a release, the same for every kind


class Draft(AbstractContextManager["Draft"], ABC):
    """A release that has been planned: what will be written, and what the steward is shown.

    A draft fills a folder; `put` verifies the folder and renames it, which no draft can skip.
    """

    def __exit__(self, *_: object) -> None:
        """Nothing is held open, unless a kind says otherwise."""

    @abstractmethod
    def fill(self, folder: Path) -> None:
        """Write the release into this folder: the data, the descriptions and the manifest."""

    def placing(self, written: Release) -> AbstractContextManager[None]:  # noqa: ARG002
        """What goes on while the verified folder is renamed, such as an entry into a ledger."""
        return nullcontext()

    @abstractmethod
    def done(self, release: Any) -> PublishResult:
        """What the steward is shown of the release, once it is in place."""


class WrittenDraft(Draft):
    """A draft that writes its data, which is described and sealed for it."""

    @abstractmethod
    def write(self, folder: Path) -> Manifest:
        """Write the data into this folder; the manifest lists these files and no others."""

    def fill(self, folder: Path) -> None:
        """Write the data, and its descriptions beside it."""
        write_descriptions(folder, self.write(folder))


def key_of(sign: KeySource | None) -> SigningKey | None:
    """The key that signs, read before any work is done."""
    return None if sign is None else signing_key(sign)


def put(
    draft: Draft,
    target: Path,
    *,
    overwrite: bool,
    entry: Registration | None = None,
    sign: SigningKey | None = None,
    weak: bool = True,
    url: str = "",
) -> Release:
    """Fill a folder beside the place, verify it as a stranger would, sign it, and rename it.

    The register's entry, if there is one, is on disk before the folder has its name. A promise
    that says nothing is refused unless it may be `weak`. With a `url` it is uploaded there before
    the folder, a copy then, has its name.
    """
    with Staging(target, overwrite=overwrite, sign=sign) as staging:
        draft.fill(staging.folder)
        mark_registered(staging.folder, registered=entry is not None)

        @contextmanager
        def placing(written: Release) -> Iterator[None]:
            if not weak:
                refuse_weak(written.manifest)
            with draft.placing(written), entered(entry, written, url or str(target)):
                if url:
                    put_remote(staging.folder, url, overwrite=overwrite)
                yield

        staging.commit(placing)
    # It was verified just now. Whoever stood in the folder that was replaced stands nowhere.
    return Release.open(target if target.exists() else staging.target, check=False)


def publish(
    kind: Kind[Any],
    table: Any,
    options: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    register: Registrar | None = None,
    sign: KeySource | None = None,
) -> PublishResult:
    """Publish a table as a release of this kind. `to` names its folder, else it is temporary.

    `register` writes down what is put in a place by name, before it is there. A temporary release
    has not left: it is registered when it is saved. One made from a chosen seed never is.
    """
    key = key_of(sign)
    url = str(to) if is_url(to) else ""
    if url:
        check_stored_place(StoredFolder.of(url), overwrite=overwrite)  # before any work is done
    kind.check_place(options, None if url else to)
    given = table if isinstance(table, BoundedRows) else connect(table)
    kept = kept_rows(given, options)
    source = given.source if isinstance(given, BoundedRows) else given
    simulated = getattr(options, "simulate_seed", None) is not None
    weak = simulated or getattr(options, "weak", True)
    with (
        place_for(None if url else to, overwrite=overwrite) as target,
        kind.draft(rows_of(source, kept), options, target, progress or Silent()) as draft,
    ):
        entry = None
        if register is not None and not simulated:
            name = getattr(options, "name", None) or source.name
            entry = begun(register, source, name, temporary=to is None)
        if to is not None:
            notes = lost_signatures(target, key)
            release = put(
                draft, target, overwrite=overwrite, entry=entry, sign=key, weak=weak, url=url
            )
            done = with_people(with_account(draft.done(release), entry), kept)
            if url:
                removed_with(release)
            return replace(done, notes=(*done.notes, *notes), url=url)
        placed = put(draft, target, overwrite=overwrite, sign=key, weak=weak)
        done = with_people(draft.done(placed), kept)
    removed_with(done.release)
    PENDING.add(done.release, PendingEntry(entry, key))
    return done


def refuse_weak(manifest: Manifest) -> None:
    """Refuse a promise that says nothing."""
    refuse_weakness(manifest.weakness(), manifest.stronger())


def refuse_weakness(weakness: str, stronger: str = "") -> None:
    """Refuse a promise for this reason, if there is one; `stronger` is what to ask for instead."""
    if weakness:
        stronger = stronger or f"ask for ε: {spelled('epsilon', 1)}"
        raise PromiseError(
            f"the promise says next to nothing: {weakness}",
            hint=f"{stronger}; or publish it knowingly with "
            f"{spelled('weak', True)}, and the release is marked",
        )


def rows_of(source: Table, kept: BoundedRows | None) -> Table:
    """What is published of a table: all rows, or those that were kept of each person."""
    return source if kept is None else kept.table


def with_people(done: PublishResult, kept: BoundedRows | None) -> PublishResult:
    """The result with what was left out of the rows of people."""
    if kept is None:
        return done
    left_out = kept.count.rows_left_out
    return replace(
        done,
        rows_in=done.rows_in + left_out,
        rows_dropped=done.rows_dropped + left_out,
        people=kept.count,
    )


def begun(register: Registrar, source: Table, name: str, *, temporary: bool) -> Registration:
    """The entry of a release; that of a temporary one fails only where it is saved."""
    try:
        return register.begin(source, name)
    except VoileError as error:
        if not temporary:
            raise
        error.__context__ = None  # it is kept for long, and must not keep the table
        return NoRegistration(error.with_traceback(None))


def with_account(done: PublishResult, entry: Registration | None) -> PublishResult:
    """The result with what the register says."""
    if entry is None:
        return done
    return replace(done, notes=(*done.notes, *entry.notes), account=entry.account)


def mark_registered(folder: Path, *, registered: bool) -> None:
    """Say in a manifest whether the register has it, unless it says so already."""
    manifest = Release.read(folder).manifest
    if manifest.registered is None:
        reseal(folder, manifest, registered=registered)


def write_descriptions(folder: Path, manifest: Manifest) -> None:
    """README.md and datapackage.json beside the data, then the manifest that seals them all."""
    kind = kind_of(manifest.method)
    described = with_fields(folder, kind.data_package(manifest), manifest)
    package = json.dumps(described, ensure_ascii=False, indent=1)
    texts = {README: kind.describe(manifest) + "\n", DATA_PACKAGE: package + "\n"}
    files = list(manifest.files)
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
        files.append(file_entry(folder, folder / name))
    sealed = manifest.model_copy(update={"files": files}).sealed()
    (folder / MANIFEST).write_bytes(sealed.text().encode())
