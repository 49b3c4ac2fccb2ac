"""Parts of a table, each perturbed by its owner, put together at the server.

Parts with the same columns are stacked. Parts with different columns of the same people are joined
by the key of their rows, which the combined release does not have any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from voile.engines.table import Nulls
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.domain import check_name
from voile.kinds.parquet import read_parquet
from voile.kinds.perturbed.publishing import Codes, write
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.perturbed.retention import Local, Retention, WholeRows
from voile.kinds.publishing import key_of
from voile.kinds.registration import Registrar
from voile.kinds.signatures import lost_signatures
from voile.kinds.staging import check_target
from voile.schema import Schema
from voile.signing import KeySource

FEWEST = 2


@dataclass(frozen=True)
class Combination:
    """A combined release, and what became of the parts' rows."""

    release: LocalRelease
    joined_by: str | None
    rows_in: list[int]
    notes: tuple[str, ...]
    account: Mapping[str, Any] | None = None
    """What the register says of the data sets of the parts; None where it has nothing."""

    def to_dict(self) -> dict[str, Any]:
        """The combination as JSON shows it."""
        manifest = self.release.manifest
        return {
            "release": str(self.release.path),
            "joined_by": self.joined_by,
            "rows_in": self.rows_in,
            "rows_out": manifest.rows,
            "columns": self.release.schema.names,
            "guarantee": manifest.guarantee.model_dump(),
            "simulated": manifest.simulated,
            "notes": list(self.notes),
            "registered": manifest.registered,
            "register": self.account,
        }


def combine(
    parts: Sequence[str | Path | LocalRelease],
    to: str | Path,
    *,
    name: str | None = None,
    overwrite: bool = False,
    sign: KeySource | None = None,
    register: Registrar | None = None,
) -> Combination:
    """Stack parts that have the same columns, or join those that have the same row key.

    Signatures of the parts are about the parts: what is made of them is signed anew, by `sign`.
    `register` lists it with the data sets of its parts, and counts it where it lacks one of them.
    """
    signing = key_of(sign)
    if len(parts) < FEWEST:
        raise UsageError("there is nothing to combine", hint="name two releases or more")
    check_target(Path(to), overwrite=overwrite)
    opened = [p if isinstance(p, LocalRelease) else LocalRelease.open(p) for p in parts]
    check_apart(opened)
    check_rows(opened)
    called = name or opened[0].name
    check_name(called)
    keys = {part.manifest.parameters.row_key for part in opened}
    if len(keys) > 1:
        shown = ", ".join("none" if key is None else key for key in sorted(keys, key=str))
        raise UsageError(
            f"the parts have different row keys: {shown}",
            hint=f"perturb all of them with the same {spelled('row_key')}, or all without",
        )
    (key,) = keys
    found = stacked(opened) if key is None else joined(opened, key)
    simulated = any(part.manifest.simulated for part in opened)
    digests = sorted(part.manifest.digest for part in opened)
    entry = None
    if register is not None and not simulated:
        entry = register.begin_from(called, digests, f"combined {' '.join(digests)}")
    notes = (*found.notes, *lost_signatures(Path(to), signing))
    release = write(
        found.codes,
        found.schema,
        found.mechanism,
        Path(to),
        name=called,
        nulls=nulls_of(opened),
        simulated=simulated,
        collected=all(part.manifest.parameters.collected for part in opened),
        suppressed_below=suppressed_in(opened),
        overwrite=overwrite,
        sign=signing,
        entry=entry,
    )
    rows = [part.rows for part in opened]
    if entry is None:
        return Combination(release, key, rows, notes)
    return Combination(release, key, rows, (*notes, *entry.notes), entry.account)


def nulls_of(parts: Sequence[LocalRelease]) -> Nulls:
    """What was done with NULLs in any part."""
    done = {part.manifest.nulls for part in parts}
    return next(word for word in ("drop", "as-value", "error") if word in done)


def suppressed_in(parts: Sequence[LocalRelease]) -> int | None:
    """The least of the limits, where some part has one."""
    limits = [part.manifest.parameters.suppressed_below for part in parts]
    return min((limit for limit in limits if limit is not None), default=None)


@dataclass(frozen=True)
class CombinedRows:
    """The combined rows, as codes, with their domain and their mechanism."""

    schema: Schema
    mechanism: Local
    codes: list[Codes]
    notes: tuple[str, ...] = ()


def check_apart(parts: Sequence[LocalRelease]) -> None:
    """Refuse a part that is named twice."""
    digests = [part.manifest.digest for part in parts]
    if len(set(digests)) < len(digests):
        raise UsageError("one part is named twice", hint="name each release once")


def check_rows(parts: Sequence[LocalRelease]) -> None:
    """Refuse parts of people with several rows: nothing says how many of them the parts share."""
    for part in parts:
        if part.manifest.people is not None:
            raise UsageError(
                f"{str(part.path)!r} has up to {part.manifest.rows_per_person:,} rows of each "
                "person, and another part may have more of the same people",
                hint=f"put the tables together, and perturb them once with {spelled('person')}",
            )


def stacked(parts: Sequence[LocalRelease]) -> CombinedRows:
    """Horizontally partitioned: more people, the same columns."""
    first = parts[0]
    for part in parts[1:]:
        if part.manifest.attributes != first.manifest.attributes:
            raise UsageError(
                f"{str(part.path)!r} and {str(first.path)!r} have different columns or domains",
                hint="perturb all parts with the same codebook; parts with other columns of the "
                f"same people need {spelled('row_key')}",
            )
        if part.manifest.parameters.columns != first.manifest.parameters.columns or (
            part.manifest.parameters.joint != first.manifest.parameters.joint
        ):
            raise UsageError(
                f"{str(part.path)!r} and {str(first.path)!r} were perturbed differently",
                hint="perturb all parts with the same retention and replacement",
            )
    if not first.mechanism.local:
        raise UsageError(
            "parts whose replacements are their own values cannot be stacked: each part has its "
            "own distribution",
            hint=f"use {spelled('replace', 'uniform')}, or a declared distribution, in all of them",
        )
    pieces = [part.codes() for part in parts]
    columns = [np.concatenate([piece[j] for piece in pieces]) for j in range(len(pieces[0]))]
    return CombinedRows(first.schema, first.mechanism, columns)


def joined(parts: Sequence[LocalRelease], key: str) -> CombinedRows:
    """Vertically partitioned: the same people, more columns."""
    names = [name for part in parts for name in part.schema.names]
    if len({n.casefold() for n in names}) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise UsageError(f"column {twice!r} is in two parts", hint="leave it out of one of them")
    schema = Schema(tuple(a for part in parts for a in part.schema))
    noise = []
    for part in parts:
        if isinstance(part.mechanism, WholeRows):
            raise UsageError(
                f"{part.name!r} was perturbed by whole rows, and cannot be joined",
                hint="perturb its columns one by one",
            )
        noise += list(part.mechanism.columns)
    keyed = [keys_of(part, key) for part in parts]
    table = pa.table({"key": keyed[0], "row0": np.arange(len(keyed[0]))})
    for i, keys in enumerate(keyed[1:], start=1):
        other = pa.table({"key": keys, f"row{i}": np.arange(len(keys))})
        table = table.join(other, "key", join_type="inner")
    if not len(table):
        raise UsageError(
            f"no value of {key!r} is in all parts", hint="the parts must use the same keys"
        )
    columns: list[Codes] = []
    for i, part in enumerate(parts):
        rows = table[f"row{i}"].to_numpy()
        columns += [column[rows] for column in part.codes()]
    for part, keys in zip(parts, keyed, strict=True):
        if len(keys) > len(table) and not part.mechanism.local:
            raise UsageError(
                f"{len(keys) - len(table):,} rows of {str(part.path)!r} have no partner, and its "
                "replacements are its own values: the distribution of those is not known any more",
                hint=f"use {spelled('replace', 'uniform')} there, or parts with the same people",
            )
    lost = len(pa.chunked_array(keyed).unique()) - len(table)
    notes = (f"{lost:,} keys are not in all parts: their rows were left out",) if lost else ()
    return CombinedRows(schema, Retention(tuple(noise)), columns, notes)


def keys_of(part: LocalRelease, key: str) -> pa.Array:
    """The keys of a part's rows; refused where one repeats."""
    keys = pa.chunked_array(
        [c for file in part.files for c in read_parquet(file, [key])[key].chunks],
        pa.string(),
    ).combine_chunks()
    if len(keys.unique()) < len(keys):
        raise ReleaseError(f"{part.name!r}: {key!r} repeats itself", hint="try `voile verify`")
    return keys
