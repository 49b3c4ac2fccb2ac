"""One more view of a series: what its ledger allows, drawn after what its views have shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from voile.engines import open_rows
from voile.engines.table import Table
from voile.errors import PromiseError, SchemaError, UsageError, VoileError, spelled
from voile.kinds.domain import read_schema
from voile.kinds.manifest import MANIFEST, PARTIAL, File, file_entry
from voile.kinds.publishing import Draft, WrittenDraft
from voile.kinds.release import Release
from voile.kinds.staging import enclosing_release, unseen
from voile.kinds.views.alphabeta import distinct, merged
from voile.kinds.views.histories import write_history
from voile.kinds.views.manifest import (
    HISTORY_FILES,
    SeriesPart,
    ViewManifest,
    parameters_of,
    series_part,
)
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import check_size
from voile.kinds.views.publishing import (
    Publication,
    ViewInput,
    key_of,
    manifest_of,
    prepare,
    publication,
    write_view,
)
from voile.kinds.views.release import ViewRelease
from voile.kinds.views.series import Series, SeriesHistory
from voile.kinds.views.series_ledger import (
    SeriesCounter,
    SeriesEntry,
    SeriesLedger,
    SeriesTerms,
    opened,
)
from voile.kinds.views.writing import ViewWriter
from voile.privacy.series import plan_series
from voile.progress import Progress
from voile.query.rows import HISTORY, SCORE, SPREAD
from voile.schema import Keys, Schema, TupleIndex
from voile.units import counted

# ----------------------------------------------------------------------
# the terms of a series: made by its first view, and the same for all that follow


VIEWS = 4
REPEATED = (
    "prior_factor", "prior", "posterior", "adversary", "retention", "form", "distinct", "nulls",
)  # fmt: skip
"""Options that are the same for all views."""


def begin(table: Table, options: ViewOptions, progress: Progress) -> tuple[ViewInput, SeriesTerms]:
    """The terms of a new series, for this table and all that follow it."""
    prepared = prepare(table, options, progress)
    check_columns(prepared.schema)
    noise = plan_series(
        prepared.promise,
        options.form,
        options.views or VIEWS,
        changing=options.changes_at_most != 0,
        retention=options.retention,
    )
    assert options.series is not None  # noqa: S101
    terms = SeriesTerms(
        name=options.series,
        noise=noise,
        promise=prepared.promise,
        changes_at_most=options.changes_at_most,
        schema=prepared.schema,
        rows_told=options.tells_rows,
        simulated=options.simulate_seed is not None,
        options={option: getattr(options, option) for option in REPEATED},
    )
    return prepared, terms


def check_columns(schema: Schema) -> None:
    """Refuse names that a series needs for columns of its own."""
    taken = {HISTORY, SCORE, SPREAD} & {name.lower() for name in schema.names}
    if taken:
        raise SchemaError(
            f"a series keeps its own column {taken.pop()!r}", hint="rename that of the table"
        )


def resume(table: Table, options: ViewOptions, terms: SeriesTerms, progress: Progress) -> ViewInput:
    """Read the table as the series' terms have it; refuse what contradicts them."""
    check_terms(options, terms)
    same = options.but(
        prior=terms.promise.prior, prior_factor=None, schema=terms.schema, columns=None
    )
    return prepare(table, same, progress)


def check_terms(options: ViewOptions, terms: SeriesTerms) -> None:
    """Refuse options that differ from those of the first view."""
    given: dict[str, Any] = {option: getattr(options, option) for option in REPEATED}
    given |= {"series": options.series, "simulated": options.simulate_seed is not None}
    kept: dict[str, Any] = terms.options | {"series": terms.name, "simulated": terms.simulated}
    for option, now, first in (
        ("views", options.views, terms.noise.views),
        ("changes_at_most", options.changes_at_most, terms.changes_at_most),
    ):
        if now is not None:  # what is not said stays as it is
            given[option], kept[option] = now, first
    for option, first in kept.items():
        if given[option] != first:
            raise different(terms, spelt(option, first), spelt(option, given[option]))
    check_schema(options, terms)


def check_schema(options: ViewOptions, terms: SeriesTerms) -> None:
    """Refuse columns and domains that differ from those of the first view."""
    names = list(terms.schema.names)
    columns = options.columns
    if options.schema_ is not None:
        declared = read_schema(options.schema_)
        declared = declared if columns is None else declared.select(columns)
        for name in (*names, *declared.names):
            if name not in declared.names or name not in names:
                raise different(terms, f"the columns {', '.join(names)}",
                                f"{', '.join(declared.names)}")  # fmt: skip
            if declared[name] != terms.schema[name]:
                raise different(terms, f"another domain of {name!r}", "this one")
    elif columns is not None and list(columns) != names:
        raise different(terms, spelled("columns", names), spelled("columns", list(columns)))


def different(terms: SeriesTerms, first: str, now: str) -> PromiseError:
    """The error for an option that differs from the first view's."""
    return PromiseError(
        f"the series {terms.name!r} was begun with {first}, not {now}",
        hint="give the same options for every view, or begin another series under another name",
    )


def spelt(option: str, value: Any) -> str:
    """An option as the caller would give it."""
    if option == "simulated":
        return spelled("simulate_seed") if value else "secret noise"
    name = {"form": "rows"}.get(option, option)
    return f"no {spelled(name)}" if value is None or value is False else spelled(name, value)


# ----------------------------------------------------------------------
# one more view of a series: what its ledger allows, drawn after what its views have shown


@contextmanager
def series_draft(
    table: Table, options: ViewOptions, target: Path, progress: Progress
) -> Iterator[Draft]:
    """The next view of a series, or the last one again if the table has not changed.

    The ledger is held until the view is in its place.
    """
    path = ledger_path(options, target)
    # All that can be refused is refused before there is a ledger.
    begun = None if path.exists() else begin_unless_lost(table, options, target, path, progress)
    with opened(path) as ledger:
        settle(ledger)
        known = ledger.terms
        if known is None:
            prepared, terms = begun or begin_unless_lost(table, options, target, path, progress)
        else:
            prepared, terms = resume(table, options, known, progress), known
        if not terms.simulated:
            check_beside(ledger, terms, options, target)
        counter, terms = checked_counter(ledger, terms, options, target)
        last = ledger.last
        changes = None if last is None else since(ledger, last, prepared)
        if last is not None and changes == 0 and not options.always_fresh:
            yield SameView(prepared, terms, last)
            return
        number = 1 if last is None else last.number + 1
        check_allowed(terms, number, changes)
        if number == 1:
            prepared = replace(prepared, notes=(*prepared.notes, *of_no_use(terms), begun_at(path)))
        yield NextView(prepared, options, target, ledger, terms, number, counter)


def of_no_use(terms: SeriesTerms) -> list[str]:
    """A declaration that estimates of multisets cannot use."""
    if not terms.changes_at_most or terms.noise.form == "set":
        return []
    return [
        f"{spelled('changes_at_most', terms.changes_at_most)} makes no answer better here: views "
        "of a table "
        f"that changes are combined only with {spelled('rows', 'set')}"
    ]


def begun_at(path: Path) -> str:
    """The note that a series was begun, and where its ledger is."""
    return (
        f"a series was begun, with its ledger in {str(path)!r}: keep that secret; later views "
        f"find it beside the release, or by {spelled('ledger')}"
    )


def account(terms: SeriesTerms, number: int, *, identical: bool) -> dict[str, Any]:
    """Which view of the series it is, and how many are spent."""
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
) -> tuple[ViewInput, SeriesTerms]:
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
    homes = (ledger.absolute().parent, target.absolute().parent)
    return next((path for path, _, _ in views_in(homes, options.series)), None)


def views_in(homes: Iterable[Path], series: str | None) -> Iterator[tuple[Path, int, str]]:
    """Releases of a series in some folders, with the number and the digest that they state."""
    places = (
        found for home in dict.fromkeys(homes) for found in sorted(home.glob(f"*/{MANIFEST}"))
    )
    for manifest in places:
        try:
            written = json.loads(manifest.read_bytes())
            part = written["parameters"]["series"]
            found = manifest.parent, int(part["view"]), str(written["digest"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not a release, or not one of a series
        unfinished = PARTIAL in manifest.parent.name  # nobody has seen it
        if part.get("name") == series and not written.get("simulated") and not unfinished:
            yield found


def check_beside(
    ledger: SeriesLedger, terms: SeriesTerms, options: ViewOptions, target: Path
) -> None:
    """Refuse a ledger that does not know of a view beside it, the target, or the views before."""
    before = (entry.path.parent for entry in ledger.entries)
    homes = (ledger.path.absolute().parent, target.absolute().parent, *before)
    for path, number, digest in views_in(homes, options.series):
        if not ledger.knows(number, digest):
            raise older(
                terms, f"{str(path)!r} is view {number}, which {str(ledger.path)!r} does not know"
            )


def older(terms: SeriesTerms, why: str) -> PromiseError:
    """The error for a ledger that is an older copy, or that of another series."""
    return PromiseError(
        f"the ledger of the series {terms.name!r} is an older copy, or another series' of that "
        f"name: {why}. One more view would tell more than the series promises",
        hint=f"put the newest copy back, or name it with {spelled('ledger')}; if it is lost, the "
        "series is over: begin another one under another name, which promises separately",
    )


def checked_counter(
    ledger: SeriesLedger, terms: SeriesTerms, options: ViewOptions, target: Path
) -> tuple[SeriesCounter | None, SeriesTerms]:
    """The counter of the series, if it has one, and the terms that say where it is.

    A place that is named now is the counter's from now on. Who names a new place vouches for the
    ledger.
    """
    named = None if options.counter is None else str(Path(options.counter).absolute())
    if named is None and terms.counter is None:
        return None, terms
    counter = SeriesCounter(Path(named or terms.counter or ""), terms.name)
    check_place(counter.path, ledger, target)
    said, last = counter.read(), ledger.last
    if said is None and named in (None, terms.counter) and last is not None:
        raise PromiseError(
            f"the counter {str(counter.path)!r} of the series {terms.name!r} is not there: nobody "
            "can tell whether the ledger is the newest",
            hint=f"put it back, or name its place with {spelled('counter')}; if it is lost and the "
            "ledger is certainly the newest, name a new place",
        )
    if said is not None and not ledger.knows(*said):
        raise older(terms, f"{str(counter.path)!r} counts {counted(said[0], 'view')}")
    if str(counter.path) != terms.counter:
        terms = replace(terms, counter=str(counter.path))
        if last is not None:
            counter.write(last.number, last.digest)
            ledger.keep_counter(terms)
    return counter, terms


def check_place(counter: Path, ledger: SeriesLedger, target: Path) -> None:
    """A counter beside its ledger would be restored with it; in a release, passed on."""
    if not counter.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(counter.parent)!r} for the counter", hint="make it first"
        )
    outer = enclosing_release(counter)
    if outer is not None or target.resolve() in counter.resolve().parents:
        raise UsageError(
            f"the counter {str(counter)!r} would be inside the release {str(outer or target)!r}",
            hint="choose a place on another disk",
        )
    if counter.resolve().parent == ledger.path.resolve().parent:
        raise UsageError(
            f"the counter {str(counter)!r} would lie beside the ledger {str(ledger.path)!r}: a "
            "backup that is restored would bring both back",
            hint="choose a place on another disk, or at least in another folder",
        )


def settle(ledger: SeriesLedger) -> None:
    """A planned view whose release is in its place has been released; any other stays spent."""
    last = ledger.last
    if last is not None and last.state == "planned" and in_place(last) is not None:
        ledger.released(last.number)


def in_place(entry: SeriesEntry) -> ViewRelease | None:
    """The release of a view, if it is where the ledger says and is the one."""
    try:
        release = ViewRelease.open(entry.path)
    except VoileError:
        return None
    return release if release.manifest.digest == entry.digest else None


def since(ledger: SeriesLedger, last: SeriesEntry, prepared: ViewInput) -> int:
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


def check_allowed(terms: SeriesTerms, number: int, changes: int | None) -> None:
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


@dataclass(frozen=True, eq=False)
class SameView(Draft):
    """The last view again, byte for byte, of a table that has not changed."""

    prepared: ViewInput
    terms: SeriesTerms
    last: SeriesEntry

    def fill(self, folder: Path) -> None:
        """Copy the identical view once more."""
        release = in_place(self.last)
        if release is None:
            raise UsageError(
                f"the table has not changed since view {self.last.number}, whose release "
                f"{str(self.last.path)!r} is not there, or is not the one that was written",
                hint=f"put it back; or pass {spelled('always_fresh', True)}, which spends a view",
            )
        shutil.copytree(release.path, folder, dirs_exist_ok=True)

    def done(self, release: ViewRelease) -> Publication:
        """What the steward is shown of the identical view."""
        series = account(self.terms, self.last.number, identical=True)
        return publication(self.prepared, release, series)


# ---------------------------------------------------------------------- writing


class NextView(WrittenDraft):
    """One more view: drawn, verified, entered into the ledger, and only then put in place."""

    def __init__(
        self,
        prepared: ViewInput,
        options: ViewOptions,
        target: Path,
        ledger: SeriesLedger,
        terms: SeriesTerms,
        number: int,
        counter: SeriesCounter | None,
    ) -> None:
        self.prepared, self.options, self.target = prepared, options, target
        self.ledger, self.terms, self.number = ledger, terms, number
        self.counter, self.before = counter, ledger.last
        index = TupleIndex(prepared.schema.sizes)
        self.history = (
            SeriesHistory.empty(index) if number == 1 else ledger.history(number - 1, index)
        )
        self.mechanism = Series(terms.noise, number, len(self.history.keys), self.history.keys)
        check_size(self.mechanism, len(prepared.records), prepared.schema.size)

    def write(self, folder: Path) -> ViewManifest:
        """Write the rows and the histories of the next view."""
        schema, key = self.prepared.schema, key_of(self.options, self.number)
        prepared, writer = self.prepared, ViewWriter(self.mechanism, schema)
        parts = write_view(folder, writer, prepared.records, key, prepared.progress)
        shown = open_rows([folder / part.path for part in parts], schema).keys()
        self.history = self.history.with_view(shown)
        parts.append(written_history(folder, schema, self.history))
        return described(self.prepared, self.options, self.terms, self.mechanism, parts)

    @contextmanager
    def placing(self, written: Release) -> Iterator[None]:
        """Enter the view into the ledger before it is renamed into place."""
        digest, members = written.manifest.digest, self.prepared.members
        self.ledger.plan(self.terms, self.number, self.target, digest, members, self.history)
        try:
            if self.counter is not None:
                self.counter.write(self.number, digest)
            yield
        except BaseException:
            if unseen(written):  # nobody has seen it, and nobody will
                self._withdraw()
            raise
        self.ledger.released(self.number)

    def _withdraw(self) -> None:
        """The counter first: a ledger that is ahead of it is whole, one that is behind is not."""
        if self.counter is not None and self.before is not None:
            self.counter.write(self.before.number, self.before.digest)
        elif self.counter is not None:
            self.counter.path.unlink(missing_ok=True)
        self.ledger.withdraw(self.number)

    def done(self, release: ViewRelease) -> Publication:
        """What the steward is shown of the new view."""
        series = account(self.terms, self.number, identical=False)
        return publication(self.prepared, release, series)


def written_history(folder: Path, schema: Schema, history: SeriesHistory) -> File:
    """Write the histories of all tuples that were shown; the file's entry."""
    path = folder / HISTORY_FILES / "part-00000.parquet"
    path.parent.mkdir()
    rows = write_history(path, schema, history.keys, *history.texts())
    return file_entry(folder, path, rows)


def described(
    prepared: ViewInput,
    options: ViewOptions,
    terms: SeriesTerms,
    mechanism: Series,
    parts: list[File],
) -> ViewManifest:
    """The manifest of a view. The prior does not disclose the rows of later tables."""
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
