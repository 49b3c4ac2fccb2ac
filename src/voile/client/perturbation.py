"""Perturbing: each value kept with its column's retention, else replaced by a public draw."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.client.arguments import a_real, as_spec, check_limit, kind
from voile.client.column import Column
from voile.client.domains import Codes
from voile.client.spec import Spec
from voile.errors import UsageError, did_you_mean

Words = npt.NDArray[np.uint64]
WORDS = 2**64
"""How many words there are."""


class Draws:
    """Draws from a source of bytes: a function that gives as many as its argument says.

    Clients use `Draws.secure()`, and nothing else protects anybody.
    """

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source

    @classmethod
    def secure(cls) -> Draws:
        """From the operating system."""
        return cls(os.urandom)

    @classmethod
    def fixed(cls, data: bytes) -> Draws:
        """From the given bytes, in order: for test vectors only."""
        left = bytearray(data)

        def take(count: int) -> bytes:
            if count > len(left):
                raise UsageError(
                    f"the draws need {count} bytes, and {len(left)} are left",
                    hint="fixed bytes are for test vectors; Draws.secure() never ends",
                )
            taken = bytes(left[:count])
            del left[:count]
            return taken

        return cls(take)

    def words(self, count: int) -> Words:
        """Uniform 64-bit words, eight bytes each, the most significant first."""
        return np.frombuffer(self._source(8 * count), dtype=">u8").astype(np.uint64)

    def below(self, bound: int, count: int) -> Codes:
        """Uniform whole numbers in [0, bound): a word modulo the bound.

        Words above the largest multiple of the bound are drawn again; they would make small
        numbers more likely.
        """
        last = np.uint64(WORDS // bound * bound - 1)
        words = self.words(count)
        again = np.flatnonzero(words > last)
        while len(again):
            words[again] = self.words(len(again))
            again = again[words[again] > last]
        return (words % np.uint64(bound)).astype(np.int64)


def threshold(retention: float) -> np.uint64:
    """⌊p·2⁶⁴⌋ of a retention below 1: a word below it says that the value is kept.

    Rounded down, so that no value is kept with a larger chance than p. Doubles are scaled by a
    power of two without rounding.
    """
    return np.uint64(int(retention * float(WORDS)))


# ---------------------------------------------------------------------- perturbing


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
    shows which were kept.
    """
    tickets = draws.below(column.total, count)
    if column.cumulative is None:
        return tickets
    return np.searchsorted(column.cumulative, tickets, side="right").astype(np.int64)


# ---------------------------------------------------------------------- beliefs
# What ε means for somebody's belief.


def prior_posterior(prior: float, epsilon: float) -> float:
    """The largest belief after a row with local ε was seen, of one that was `prior` before.

    ρ₂ = ρ₁·e^ε / (1 − ρ₁ + ρ₁·e^ε), for any statement about the row (amplification).
    """
    believed, loss = a_real(prior, "the prior belief"), a_real(epsilon, "ε")
    if not 0 <= believed <= 1:
        raise UsageError(f"a prior belief of {believed}", hint="give a number from 0 to 1")
    if not loss >= 0:
        raise UsageError(f"ε is {loss}", hint="give a number that is not negative")
    if believed == 0:
        return 0.0
    return 1 / (1 + (1 - believed) / believed * math.exp(-loss))
