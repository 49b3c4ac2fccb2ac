"""Perturbing: each value kept with its column's retention, else replaced by a public draw."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.client.arguments import as_spec, check_limit, kind
from voile.client.column import Column
from voile.client.domains import Codes
from voile.client.draws import Draws, threshold
from voile.client.spec import Spec
from voile.errors import UsageError, did_you_mean

CHUNK = 2**16
"""Rows perturbed at once, so that their words stay in the processor's cache."""


class PerturbedRow(dict[str, Any]):
    """A row that has been perturbed by the spec with this digest, and so may be sent.

    The type keeps two mistakes out: sending a raw row, and perturbing a row twice.
    """

    def __init__(self, values: Mapping[str, Any], digest: str) -> None:
        super().__init__(values)
        self.digest = digest


def perturb(
    row: Mapping[str, Any],
    spec: Spec | Mapping[str, Any] | str | Path,
    *,
    at_most: float | None = None,
    public: Collection[str] = (),
    _draws: Draws | None = None,
) -> PerturbedRow:
    """Perturb one row, a mapping from every column's name to its value (None for NULL).

    The spec may also be given as its document or its file. `at_most` is the largest local ε of a
    row that you accept. Columns that are sent as they are must be named in `public`. `_draws` is
    for test vectors only.
    """
    spec = as_spec(spec)
    check_limit(spec, at_most, public)
    codes = perturb_codes(encode_rows([row], spec), spec, _draws or Draws.secure())
    values = (
        column.decode(code).tolist()[0] for column, code in zip(spec.columns, codes, strict=True)
    )
    names = (column.name for column in spec.columns)
    return PerturbedRow(dict(zip(names, values, strict=True)), spec.digest)


def perturb_batch(
    columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]],
    spec: Spec | Mapping[str, Any] | str | Path,
    *,
    at_most: float | None = None,
    public: Collection[str] = (),
    _draws: Draws | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Perturb many rows, given column by column; each row has coins of its own.

    `spec`, `at_most` and `public`: see `perturb`.
    """
    spec = as_spec(spec)
    check_limit(spec, at_most, public)
    check_columns(columns, spec, "the batch")
    given = [column.encode(columns[column.name]) for column in spec.columns]
    lengths = {len(codes) for codes in given}
    if len(lengths) > 1:
        longest = {column.name: len(code) for column, code in zip(spec.columns, given, strict=True)}
        raise UsageError(
            f"the columns have different lengths: {longest}", hint="give one value for each row"
        )
    codes = perturb_codes(given, spec, _draws or Draws.secure())
    return {
        column.name: column.decode(code) for column, code in zip(spec.columns, codes, strict=True)
    }


def encode_rows(rows: Sequence[Mapping[str, Any]], spec: Spec) -> list[Codes]:
    """Codes of raw rows, column by column."""
    for number, row in enumerate(rows):
        where = f"row {number}" if len(rows) > 1 else "the row"
        if isinstance(row, PerturbedRow):
            raise UsageError(f"{where} has been perturbed before", hint="send it as it is")
        check_columns(row, spec, where)
    return [column.encode([row[column.name] for row in rows]) for column in spec.columns]


def check_columns(given: Mapping[str, Any], spec: Spec, where: str) -> None:
    """Every column of the spec is there, and no other."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{where} is of type {kind(given)}, not a mapping from columns' names to values",
            hint=f"such as {{{spec.columns[0].name!r}: …}}",
        )
    known = {column.name: column for column in spec.columns}
    for name in given:
        if not isinstance(name, str):
            raise UsageError(
                f"{where} has a column whose name is of type {kind(name)}", hint="names are texts"
            )
        if name not in known:
            raise UsageError(
                f"{where} has an unknown column {name!r}", hint=did_you_mean(name, list(known))
            )
    for name, column in known.items():
        if name not in given:
            hint = "give None for NULL" if column.null else f"it is {column.describe()}"
            raise UsageError(f"{where} has no column {name!r}", hint=hint)


# ---------------------------------------------------------------------- codes


def perturb_codes(codes: Sequence[Codes], spec: Spec, draws: Draws) -> list[Codes]:
    """Perturb rows given as codes, one array for each column.

    For a single row the draws are taken in the order of the wire format.
    """
    count = len(codes[0])
    made = [np.empty(count, dtype=np.int64) for _ in codes]
    for start in range(0, count, CHUNK):
        rows = slice(start, min(start + CHUNK, count))
        part = [code[rows] for code in codes]
        done = (
            perturb_columns(part, spec, draws)
            if spec.joint is None
            else perturb_tuples(part, spec, spec.joint, draws)
        )
        for target, values in zip(made, done, strict=True):
            target[rows] = values
    return made


def perturb_columns(codes: Sequence[Codes], spec: Spec, draws: Draws) -> list[Codes]:
    """A coin for each value of each column. A column with retention 1 draws nothing."""
    made: list[Codes] = []
    for column, code in zip(spec.columns, codes, strict=True):
        if column.retention == 1:
            made.append(code)
            continue
        kept = draws.words(len(code)) < threshold(column.retention)
        made.append(np.where(kept, code, replacement(column, len(code), draws)))
    return made


def perturb_tuples(
    codes: Sequence[Codes], spec: Spec, retention: float, draws: Draws
) -> list[Codes]:
    """One coin for a whole row; one that is not kept is replaced in all its columns."""
    if retention == 1:
        return list(codes)
    kept = draws.words(len(codes[0])) < threshold(retention)
    return [
        np.where(kept, code, replacement(column, len(code), draws))
        for column, code in zip(spec.columns, codes, strict=True)
    ]


def replacement(column: Column, count: int, draws: Draws) -> Codes:
    """Codes drawn from the column's replacing distribution.

    They are drawn for every row, kept or not, so that neither time nor the number of bytes
    tells which were kept.
    """
    tickets = draws.below(column.total, count)
    if column.cumulative is None:
        return tickets
    return np.searchsorted(column.cumulative, tickets, side="right").astype(np.int64)
