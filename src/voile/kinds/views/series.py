"""One more view of a series: what its ledger allows, drawn after what its views have shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from voile.engines import open_rows
from voile.engines.table import Table
from voile.errors import PromiseError, UsageError, VoileError, spelled
from voile.kinds.manifest import MANIFEST, PARTIAL, File, file_entry
from voile.kinds.publishing import write_descriptions
from voile.kinds.release import Release
from voile.kinds.staging import Staging, enclosing_release
from voile.kinds.views.history_files import write_history
from voile.kinds.views.ledger import Entry, Ledger, Terms, opened
from voile.kinds.views.manifest import HISTORY_FILES, SeriesPart, ViewManifest
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import check_size
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.series_terms import begin, resume
from voile.kinds.views.steps import Prepared, Publication, key_of, manifest_of, told
from voile.kinds.views.terms import parameters_of, series_part
from voile.kinds.views.view import ViewWriter
from voile.mechanisms import Series
from voile.mechanisms.alphabeta import distinct, merged
from voile.mechanisms.series import SeriesHistory
from voile.progress import Progress, Silent
from voile.schema import Keys, Schema, TupleIndex
from voile.units import counted


def publish_view(
    table: Table,
    options: ViewOptions,
    target: Path,
    *,
    overwrite: bool,
    progress: Progress | None,
) -> Publication:
    """Publish the next view of a series, or the last one again if the table has not changed."""
    path = ledger_path(options, target)
    quiet = progress or Silent()
    # All that can be refused is refused before there is a ledger.
    begun = None if path.exists() else begin_unless_lost(table, options, target, path, quiet)
    with opened(path) as ledger:
        settle(ledger)
        known = ledger.terms
        if known is None:
            prepared, terms = begun or begin_unless_lost(table, options, target, path, quiet)
        else:
            prepared, terms = resume(table, options, known, quiet), known
        last = ledger.last
        changes = None if last is None else since(ledger, last, prepared)
        if last is not None and changes == 0 and not options.always_fresh:
            release = again(last, target, overwrite=overwrite)
            return told(prepared, release, account(terms, last.number, identical=True))
        number = 1 if last is None else last.number + 1
        check_allowed(terms, number, changes)
        release = next_view(prepared, options, target, ledger, terms, number, overwrite=overwrite)
    if number == 1:
        prepared = replace(prepared, notes=(*prepared.notes, *of_no_use(terms), begun_at(path)))
    return told(prepared, release, account(terms, number, identical=False))


def of_no_use(terms: Terms) -> list[str]:
    """A declaration that estimates of multisets cannot use."""
    if not terms.changes_at_most or terms.noise.form == "set":
        return []
    return [
        f"{spelled('changes_at_most', terms.changes_at_most)} makes no answer better here: views "
        "of a table "
        f"that changes are combined only with {spelled('rows', 'set')}"
    ]


def begun_at(path: Path) -> str:
    return (
        f"a series was begun, with its ledger in {str(path)!r}: keep that secret; later views "
        f"find it beside the release, or by {spelled('ledger')}"
    )


def account(terms: Terms, number: int, *, identical: bool) -> dict[str, Any]:
    return {
        "name": terms.name,
        "view": number,
        "views": terms.noise.views,
        "spent": number,
        "identical": identical,
    }


def ledger_path(options: ViewOptions, target: Path) -> Path:
    """Where the ledger is: never in a release, which is passed on as it stands."""
    if options.ledger is None:
        return target.absolute().parent / f"{options.series}.series"
    path = Path(options.ledger)
    outer = enclosing_release(path)
    if outer is not None or target.resolve() in path.resolve().parents:
        raise UsageError(
            f"the ledger {str(path)!r} would be inside the release {str(outer or target)!r}: it "
            "is secret, and whoever is given the release would be given the table",
            hint=f"name a place with {spelled('ledger')} that nobody else can read",
        )
    return path


# ---------------------------------------------------------------------- what is allowed


def begin_unless_lost(
    table: Table, options: ViewOptions, target: Path, ledger: Path, progress: Progress
) -> tuple[Prepared, Terms]:
    """Begin a series, unless it has begun and its ledger is lost."""
    left = None if options.simulate_seed is not None else left_view(options, target, ledger)
    if left is not None:
        raise PromiseError(
            f"{str(left)!r} is a view of the series {options.series!r}, and {str(ledger)!r} knows "
            "nothing of it: begun anew, the series would tell more than it "
            "promises",
            hint=f"name the ledger of the series with {spelled('ledger')}, or restore it; if it "
            "is lost, the "
            "series is over: begin another one under another name, which promises separately",
        )
    return begin(table, options, progress)


def left_view(options: ViewOptions, target: Path, ledger: Path) -> Path | None:
    """A release beside the ledger, or beside the target or in its place, that is of this series."""
    homes = dict.fromkeys((ledger.absolute().parent, target.absolute().parent))
    for manifest in (found for home in homes for found in sorted(home.glob(f"*/{MANIFEST}"))):
        try:
            written = json.loads(manifest.read_bytes())
            name = written["parameters"]["series"]["name"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not a release, or not one of a series
        unfinished = PARTIAL in manifest.parent.name  # nobody has seen it
        if name == options.series and not written.get("simulated") and not unfinished:
            return manifest.parent
    return None


def settle(ledger: Ledger) -> None:
    """A planned view whose release is in its place has been released; any other stays spent."""
    last = ledger.last
    if last is not None and last.state == "planned" and in_place(last) is not None:
        ledger.released(last.number)


def in_place(entry: Entry) -> ViewRelease | None:
    """The release of a view, if it is where the ledger says and is the one."""
    try:
        release = ViewRelease.open(entry.path)
    except VoileError:
        return None
    return release if release.manifest.digest == entry.digest else None


def since(ledger: Ledger, last: Entry, prepared: Prepared) -> int:
    """How many rows came or went since the last view."""
    before = ledger.table(last.number, TupleIndex(prepared.schema.sizes))
    return differences(before, prepared.members)


def differences(before: Keys, now: Keys) -> int:
    """Rows to add and to remove to get from one table to the other; both sorted."""
    tuples = distinct(merged(before, now))
    old, new = (
        np.searchsorted(keys, tuples, "right") - np.searchsorted(keys, tuples)
        for keys in (before, now)
    )
    return int(np.abs(old - new).sum())


def check_allowed(terms: Terms, number: int, changes: int | None) -> None:
    """Nothing may be published beyond what the promise covers."""
    views, most = terms.noise.views, terms.changes_at_most
    if number > views:
        raise PromiseError(
            f"all {views} views of the series {terms.name!r} are spent: one more would break what "
            "was promised for them together",
            hint="begin another series under another name; the two promise separately, and "
            "someone who has both may learn more than each promises",
        )
    if most is not None and changes is not None and changes > most:
        declared = f"at most {most:,} between two views" if most else "never"
        raise PromiseError(
            f"{counted(changes, 'row')} came or went since view {number - 1}, and the table of the "
            f"series {terms.name!r} was declared to change {declared}",
            hint="publish a table that changed less, or begin another series; a row that was "
            "edited counts twice",
        )
    if not terms.promise.kept_by(terms.noise.likelihood_ratio(number)):
        raise PromiseError(
            f"view {number} of the series {terms.name!r} would break its promise: the ledger's "
            "parameters do not keep it",
            hint="restore the ledger as it was written; nothing was released",
        )


def again(last: Entry, target: Path, *, overwrite: bool) -> ViewRelease:
    """The identical view, byte for byte."""
    release = in_place(last)
    if release is None:
        raise UsageError(
            f"the table has not changed since view {last.number}, whose release "
            f"{str(last.path)!r} is not there, or is not the one that was written",
            hint=f"put it back; or pass {spelled('always_fresh', True)}, which spends a view",
        )
    return release.save(target, overwrite=overwrite)


# ---------------------------------------------------------------------- writing


def next_view(
    prepared: Prepared,
    options: ViewOptions,
    target: Path,
    ledger: Ledger,
    terms: Terms,
    number: int,
    *,
    overwrite: bool,
) -> ViewRelease:
    """Draw, write beside, verify, enter into the ledger, and only then put in place."""
    index = TupleIndex(prepared.schema.sizes)
    history = SeriesHistory.empty(index) if number == 1 else ledger.history(number - 1, index)
    mechanism = Series(terms.noise, number, len(history.keys), history.keys)
    check_size(mechanism, len(prepared.members), prepared.schema.size)
    with Staging(target, overwrite=overwrite) as staging:
        writer = ViewWriter(
            staging.folder, mechanism, prepared.schema, key_of(options, number), prepared.progress
        )
        parts = writer.write(prepared.members)
        shown = open_rows([staging.folder / part.path for part in parts], prepared.schema).keys()
        history = history.with_view(shown)
        parts.append(written_history(staging.folder, prepared.schema, history))
        write_descriptions(staging.folder, described(prepared, options, terms, mechanism, parts))
        planned = False

        def plan(written: Release) -> None:
            nonlocal planned
            digest = written.manifest.digest
            ledger.plan(terms, number, target, digest, prepared.members, history)
            planned = True

        try:
            staging.commit(plan)
        except BaseException:
            if planned and staging.unseen:  # nobody has seen it, and nobody will
                ledger.withdraw(number)
            raise
    ledger.released(number)
    return ViewRelease.open(target)


def written_history(folder: Path, schema: Schema, history: SeriesHistory) -> File:
    path = folder / HISTORY_FILES / "part-00000.parquet"
    path.parent.mkdir()
    rows = write_history(path, schema, history.keys, *history.texts())
    return file_entry(folder, path, rows)


def described(
    prepared: Prepared, options: ViewOptions, terms: Terms, mechanism: Series, parts: list[File]
) -> ViewManifest:
    """The manifest of a view. The rows of later tables are not told by the prior."""
    first = mechanism.view_number == 1
    part = SeriesPart(
        name=terms.name,
        view=mechanism.view_number,
        views=terms.noise.views,
        unseen=list(terms.noise.unseen),
        seen=terms.noise.seen,
        seen_tuples=mechanism.seen_count,
        changes_at_most=terms.changes_at_most,
        always_fresh=options.always_fresh,
        rows_told=terms.rows_told,
        posterior=0.0,
    )
    parameters = parameters_of(
        mechanism,
        prepared.schema,
        distinct=options.distinct,
        learnt=False,
        series=series_part(part, mechanism, terms.promise),
    )
    public = terms.rows_told and (first or terms.changes_at_most == 0)
    return manifest_of(prepared, options, mechanism, parameters, parts, rows_are_public=public)
