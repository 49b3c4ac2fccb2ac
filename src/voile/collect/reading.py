"""Submissions read fast, where they are as clients write them; all others by the strict reader.

msgspec reads JSON into rows of one form, several times as fast as the standard library. It takes
the last of two equal keys, which the wire format forbids: so the quotation marks are counted. A
submission whose strings (keys and texts that are kept) account for every one of them has no key
twice, and no escape. Whatever is not read here is read by `read_submission`, which alone refuses:
so what is taken, and every refusal, is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from voile.client import Spec, Submission, read_submission
from voile.client.domains import Codes
from voile.client.submission import MOST_ROWS, ROWS_FORMAT, ROWS_VERSION
from voile.errors import UsageError

IDS = re.compile(r"[0-9a-f]*")
DIGITS = 32
"""Of an id."""
QUOTES_OUTSIDE, QUOTES_OF_A_ROW = 12, 6
"""Quotation marks of a submission without rows, and of a row without texts."""
KNOWN = 2**16
"""Values of a column whose codes are remembered."""


class WireRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row as it is sent."""

    id: str
    values: list[str | int | float | bool | None]


class WireSubmission(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A submission as it is sent."""

    format: str
    version: str | int | float | bool | None
    spec: str
    rows: list[WireRow]


class ColumnReader:
    """The codes of one column's values, remembered by their types and values."""

    def __init__(self, spec: Spec, place: int) -> None:
        self._column = spec.columns[place]
        self._known: dict[type, dict[Any, int]] = {}
        self._count = 0

    def codes(self, values: Sequence[Any]) -> Codes:
        """The code of each value; raises UsageError where the column refuses one."""
        kinds = set(map(type, values))
        if len(kinds) == 1:
            known = self._known.setdefault(kinds.pop(), {})
            found = list(map(known.get, values))
            if None not in found:
                return np.array(found, dtype=np.int64)
            codes = self._column.encode(list(values), exact=True)
            if self._count < KNOWN:
                before = len(known)
                known.update(zip(values, codes.tolist(), strict=True))
                self._count += len(known) - before
            return codes
        return self._column.encode(list(values), exact=True)


class SubmissionReader:
    """Reads the submissions of one survey; for one thread."""

    def __init__(self, spec: Spec, *, most_rows: int = MOST_ROWS) -> None:
        self._spec, self._most_rows = spec, most_rows
        self._decoder = msgspec.json.Decoder(WireSubmission)
        self._columns = [ColumnReader(spec, place) for place in range(len(spec.columns))]

    def read(self, data: bytes) -> Submission:
        """The rows of a submission; whatever is wrong with it is a `UsageError`."""
        try:
            found = self._plain(data)
        except (msgspec.MsgspecError, UsageError, ValueError, RecursionError):
            found = None
        if found is None:
            return read_submission(data, self._spec, most_rows=self._most_rows)
        return found

    def _plain(self, data: bytes) -> Submission | None:
        """The rows, or None where the strict reader must look."""
        read = self._decoder.decode(data)
        head = (read.format, type(read.version), read.version, read.spec)
        if head != (ROWS_FORMAT, int, ROWS_VERSION, self._spec.digest):
            return None
        rows = read.rows
        if not 0 < len(rows) <= self._most_rows:
            return None
        listed = [row.values for row in rows]
        if set(map(len, listed)) != {len(self._columns)}:
            return None
        columns = list(zip(*listed, strict=True))
        texts = sum(
            sum(type(value) is str for value in column) if str in set(map(type, column)) else 0
            for column in columns
        )
        quotes = QUOTES_OUTSIDE + QUOTES_OF_A_ROW * len(rows) + 2 * texts
        if data.count(b'"') != quotes:
            return None
        ids = ids_of([row.id for row in rows])
        if ids is None or len(set(ids)) < len(ids):
            return None
        codes = np.empty((len(rows), len(self._columns)), dtype=np.int64)
        for place, values in enumerate(columns):
            codes[:, place] = self._columns[place].codes(values)
        return Submission(ids, codes)


def ids_of(texts: Sequence[str]) -> list[bytes] | None:
    """Ids in bytes, if all are 32 digits of 0–9 and a–f."""
    together = "".join(texts)
    if set(map(len, texts)) != {DIGITS} or not IDS.fullmatch(together):
        return None
    found = bytes.fromhex(together)
    return [found[at : at + DIGITS // 2] for at in range(0, len(found), DIGITS // 2)]
