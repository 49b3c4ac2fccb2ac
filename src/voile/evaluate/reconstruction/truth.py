"""What the steward gives the attack: the rows' public ids, and for whom the condition holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.engines import connect, open_domain
from voile.engines.rows import PublicDomain
from voile.engines.table import Table
from voile.errors import QueryError, TableError, UsageError
from voile.evaluate.reconstruction.server import Truth
from voile.query import parse
from voile.query.domain.inputs import all_hold, some_hold, truths
from voile.query.predicate import Atom, Predicate, folded
from voile.schema import Schema

Codes = Mapping[str, npt.NDArray[np.int64]]
Mask = npt.NDArray[np.bool_]


def known_truth(
    about: Mapping[str, Any],
    condition: str,
    *,
    table: str | None = None,
    ids: Path | None = None,
    null_text: Sequence[str] = (),
) -> Truth:
    """The ids of the server's rows; with its table also for which of them the condition holds."""
    schema = Schema.from_dict(about["schema"])
    where = condition_on(schema, condition)
    column = about.get("id_column")
    if table is not None:
        if ids is not None:
            raise UsageError("--truth and --ids exclude each other", hint="the table has the ids")
        return truth_of(connect(table, null_text=null_text), schema, where, column)
    if ids is not None:
        return Truth(read_ids(ids))
    if column is None:
        return Truth(tuple(str(number) for number in range(int(about["rows"]))))
    raise UsageError(
        f"the server draws halves by the column {column!r}, and nobody said what is in it",
        hint="give the ids, one a line, with --ids FILE, or the table with --truth TABLE",
    )


def condition_on(schema: Schema, condition: str) -> Predicate:
    query = parse(f"select count(*) from rows where ({condition})", schema)
    if query.predicate is None or query.groups:
        raise QueryError(f"{condition!r} is no condition", hint="--column \"income = '>50K'\"")
    return query.predicate


def truth_of(table: Table, schema: Schema, where: Predicate, column: str | None) -> Truth:
    """Rows as the server took them in: known by a column, or by their number."""
    needed = [*schema.names, *([column] if column is not None else [])]
    table.check_columns(list(dict.fromkeys(needed)))
    view = open_domain(schema)
    holds, ids = list[Mask](), list[str]()
    for codes, keys, _ in table.coded(schema, drop_nulls=False, row_key=column, clamp=True):
        holds.append(held(where, dict(zip(schema.names, codes, strict=True)), view, schema))
        ids += known_by(column, keys, len(ids), len(codes[0]))
    if not ids:
        raise TableError(f"table {table.name!r} has no rows", hint="give the server's table")
    first = {one: place for place, one in reversed(list(enumerate(ids)))}  # the row that was kept
    kept = sorted(first.values())
    return Truth(tuple(ids[place] for place in kept), np.concatenate(holds)[kept])


def known_by(column: str | None, keys: Any, before: int, count: int) -> list[str]:
    if column is None:
        return [str(number) for number in range(before, before + count)]
    return [str(key) for key in keys.to_pylist()]


def held(where: Predicate, codes: Codes, view: PublicDomain, schema: Schema) -> Mask:
    """For which rows a condition holds: each part is looked up in its truth on the domain."""

    def of(atom: Atom) -> Mask:
        (truth,) = view.domain.evaluate([atom])
        known = truths(truth)
        if not atom.attributes:
            return np.full(len(next(iter(codes.values()))), bool(known[0]))
        shape = tuple(schema[name].size for name in atom.attributes)
        found: Mask = known[np.ravel_multi_index([codes[n] for n in atom.attributes], shape)]
        return found

    return np.asarray(folded(where, of, all_hold, some_hold))


def read_ids(file: Path) -> tuple[str, ...]:
    """One id a line."""
    try:
        found = tuple(line for line in file.read_text(encoding="utf-8").splitlines() if line)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"--ids {str(file)!r}: {reason}", hint="one id on each line") from None
    if not found:
        raise UsageError(f"--ids {str(file)!r} is empty", hint="one id on each line")
    if len(set(found)) < len(found):
        raise UsageError(f"--ids {str(file)!r} has an id twice", hint="one id for each row")
    return found
