"""What a client sends: perturbed rows, each with an id of its own, for one spec."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voile.client.arguments import a_count, check_limit, check_rows, check_spec
from voile.client.domains import Codes
from voile.client.draws import Draws
from voile.client.perturbing import PerturbedRow, encode_rows, perturb_codes
from voile.client.spec import Spec, check_format
from voile.client.strict import AS_THE_FORMAT_SAYS, a_list, an_object, read_json
from voile.errors import UsageError

FORMAT = "voile-rows"
VERSION = 1
MOST_ROWS = 10_000
MOST_BYTES = 2**26
ID = re.compile(r"[0-9a-f]{32}")
ROW_KEYS = {"id", "values"}


class WrongSpecError(UsageError):
    """The submission is for another survey than the one that reads it."""


@dataclass(frozen=True)
class Submission:
    """Rows that a server has read: an id of 16 bytes and the codes of each, in the order sent."""

    ids: list[bytes]
    codes: Codes


def submission(
    rows: Sequence[Mapping[str, Any]],
    spec: Spec,
    *,
    at_most: float | None = None,
    public: Collection[str] = (),
) -> bytes:
    """The bytes to send. Rows that `perturb` has not made are perturbed here.

    Keep these bytes and send them again if need be: the ids make the server count a row once,
    while perturbing anew would tell more about it each time. `at_most` and `public`: see
    `perturb`.
    """
    check_limit(spec, at_most, public)
    check_rows(rows)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "spec": spec.digest,
        "rows": [
            {"id": secrets.token_hex(16), "values": values} for values in sendable(rows, spec)
        ],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def sendable(rows: Sequence[Mapping[str, Any]], spec: Spec) -> list[tuple[Any, ...]]:
    """The perturbed values of each row, in the order of the columns."""
    raw = [place for place, row in enumerate(rows) if not isinstance(row, PerturbedRow)]
    made: list[tuple[Any, ...]] = [()] * len(rows)
    for place, row in enumerate(rows):
        if isinstance(row, PerturbedRow):
            if row.digest != spec.digest:
                raise UsageError(
                    f"row {place} was perturbed for another spec", hint="send it to that survey"
                )
            made[place] = tuple(row[column.name] for column in spec.columns)
    for place, values in zip(raw, perturbed([rows[place] for place in raw], spec), strict=True):
        made[place] = values
    return made


def perturbed(rows: Sequence[Mapping[str, Any]], spec: Spec) -> Iterator[tuple[Any, ...]]:
    """Raw rows, perturbed."""
    codes = perturb_codes(encode_rows(rows, spec), spec, Draws.secure())
    values = (
        column.decode(code).tolist() for column, code in zip(spec.columns, codes, strict=True)
    )
    return zip(*values, strict=True)


def read_submission(data: bytes, spec: Spec, *, most_rows: int = MOST_ROWS) -> Submission:
    """Read what a client sent, strictly; whatever is wrong with it is a `UsageError`."""
    check_spec(spec)
    a_count(most_rows, "most_rows")
    where = "the submission"
    document = an_object(
        read_json(data, where, MOST_BYTES), where, required=("format", "version", "spec", "rows")
    )
    check_format(document, where, FORMAT, VERSION)
    check_digest(document["spec"], spec, where)
    rows = a_list(document["rows"], f"{where}: 'rows'", most_rows)
    for number, row in enumerate(rows):
        check_row(row, len(spec.columns), f"{where}, row {number}")
    ids = [bytes.fromhex(row["id"]) for row in rows]
    if len(set(ids)) < len(ids):
        raise UsageError(f"{where} has the same id twice", hint="draw 16 random bytes for each row")
    codes = np.empty((len(rows), len(spec.columns)), dtype=np.int64)
    for place, column in enumerate(spec.columns):
        codes[:, place] = column.encode([row["values"][place] for row in rows], exact=True)
    return Submission(ids, codes)


def check_digest(digest: Any, spec: Spec, where: str) -> None:
    if type(digest) is not str:
        raise UsageError(
            f"{where}: 'spec' is not text", hint="write the SHA-256 of the spec's bytes"
        )
    if digest != spec.digest:
        raise WrongSpecError(
            f"{where} is for another spec than {spec.digest}", hint="read the spec anew"
        )


def check_row(row: Any, columns: int, where: str) -> None:
    if type(row) is not dict or row.keys() != ROW_KEYS:
        raise UsageError(
            f"{where} is not an object with 'id' and 'values' alone", hint=AS_THE_FORMAT_SAYS
        )
    if type(row["id"]) is not str or not ID.fullmatch(row["id"]):
        raise UsageError(
            f"{where}: the id is not 32 digits of 0–9 and a–f",
            hint="draw 16 random bytes for each row, and write them in hexadecimal",
        )
    if type(row["values"]) is not list or len(row["values"]) != columns:
        raise UsageError(
            f"{where}: 'values' is not a list of {columns}, one for each column",
            hint="in the order of the spec's columns",
        )
