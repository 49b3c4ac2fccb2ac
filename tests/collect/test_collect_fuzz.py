"""Whatever is sent: nothing crashes, and the store holds exactly what was valid.

What is valid is judged here by plain Python, written from the text of the wire format.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.collecting import SURVEY, application, ask, some_submission, stored, survey
from tests.support.soak import rounds
from voile.client import Spec, Submission, read_submission
from voile.collect import SubmissionReceipt, opened
from voile.errors import UsageError
from voile.web.limits import RefusalError

PARSED = rounds(16_000, 96_000)
ASKED = rounds(1_000, 4_000)
"""Payloads to the parser and the store, and over ASGI: 100,000 in all."""

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 17, 90, 91, 40.0, 40.5, 1e-320, 1e308, 10**25, 10**400, 2**63,
    -0.0, 0.0001, 0.00015, 100.0, "", "Male", "male", "Female ", "\u0000", "\ud800", "é" * 50,
    "0a" * 16, "0A" * 16, [], {}, [[]], [None], {"id": 1}, {"": ""}, "NaN", 1.0, 2, "voile-rows",
]  # fmt: skip
RAW = [
    b"", b"null", b"[]", b"{}", b'"', b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 5000, b'{"a":' * 3000,
    b"[" * 3000 + b"]" * 3000, b"1" * 10_000, b"-", b"NaN", b"Infinity", b'{"rows":NaN}',
    b"\x00" * 50, b'{"format":"voile-rows","format":"voile-rows"}', b'"\\ud800"', b'{"\\ud800":1}',
]  # fmt: skip


# ---------------------------------------------------------------------- what is valid


class NotValid(Exception):  # noqa: N818
    pass


def need(condition: bool) -> None:
    if not condition:
        raise NotValid


def judged(body: bytes, digest: str) -> dict[str, bytes] | None:
    """The rows of a payload as the store keeps them, by id; None if it is not valid."""
    try:
        return rows_of(body, digest)
    except (NotValid, ValueError, RecursionError, OverflowError):
        return None


def rows_of(body: bytes, digest: str) -> dict[str, bytes]:
    def no_constant(_: str) -> Any:
        raise NotValid

    def different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len({key for key, _ in pairs}) == len(pairs))
        return dict(pairs)

    document = json.loads(
        body.decode(), parse_constant=no_constant, object_pairs_hook=different_keys
    )
    need(isinstance(document, dict) and set(document) == {"format", "version", "spec", "rows"})
    need(document["format"] == "voile-rows" and document["spec"] == digest)
    need(is_number(document["version"]) and document["version"] == 1)
    rows = document["rows"]
    need(isinstance(rows, list) and 1 <= len(rows) <= 10_000)
    found = dict(map(one_row, rows))
    need(len(found) == len(rows))
    return found


def one_row(row: Any) -> tuple[str, bytes]:
    need(isinstance(row, dict) and set(row) == {"id", "values"})
    need(isinstance(row["id"], str) and bool(re.fullmatch("[0-9a-f]{32}", row["id"])))
    need(isinstance(row["values"], list) and len(row["values"]) == 3)
    age, hours, sex = row["values"]
    need(is_number(age) and 17 <= age <= 90 and age == int(age))
    need(is_number(hours) and 0 <= hours <= 100)
    place = round(hours * 10_000)
    need(place / 10_000 == hours)
    need(sex is None or (isinstance(sex, str) and sex in ("Female", "Male")))
    code = 2 if sex is None else ("Female", "Male").index(sex)
    return row["id"], bytes([int(age) - 17]) + place.to_bytes(4, "little") + bytes([code])


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Expected:
    """What a store must hold after payloads in turn: whole ones, and of each id the first."""

    def __init__(self, spec: Spec) -> None:
        self._digest = spec.digest
        self.rows: dict[str, bytes] = {}

    def take(self, body: bytes) -> tuple[int, SubmissionReceipt | None]:
        """The HTTP status, and what is answered when it is 200."""
        found = judged(body, self._digest)
        if found is None:
            return 400, None
        if any(self.rows.get(key, codes) != codes for key, codes in found.items()):
            return 409, None
        new = found.keys() - self.rows.keys()
        self.rows |= found
        return 200, SubmissionReceipt(len(new), len(found) - len(new))


# ---------------------------------------------------------------------- what is sent


def payloads(count: int, seed: int) -> Iterator[bytes]:
    """Valid payloads, some sent again, and payloads that were valid before something happened."""
    generator = np.random.default_rng(seed)
    spec = survey()
    pool = [some_submission(spec, 1 + n % 3, generator)[0] for n in range(2000)]
    for kind in generator.integers(0, 10, count):
        body = pool[generator.integers(len(pool))]
        if kind == 0:
            yield body
        elif kind == 1:
            yield RAW[generator.integers(len(RAW))]
        elif kind == 2:
            yield generator.bytes(int(generator.integers(0, 60)))
        elif kind <= 5:
            yield damaged(body, generator)
        else:
            yield replaced(body, generator)


def damaged(body: bytes, generator: np.random.Generator) -> bytes:
    """A few bytes changed, lost, doubled, or cut off."""
    for _ in range(int(generator.integers(1, 4))):
        at, length = (int(n) for n in generator.integers(0, [len(body) + 1, 9]))
        piece = body[at : at + length]
        body = {
            0: body[:at] + generator.bytes(len(piece)) + body[at + length :],
            1: body[:at] + body[at + length :],
            2: body[:at] + piece + body[at:],
            3: body[:at],
            4: body[:at] + b'0123456789abcdef"[]{},:-e.'[at % 26 : at % 26 + 1] + body[at + 1 :],
        }[int(generator.integers(0, 5)) if generator.random() < 0.5 else 4]
    return body


def replaced(body: bytes, generator: np.random.Generator) -> bytes:
    """One thing of the document in the place of another."""
    document = json.loads(body)
    row = document["rows"][generator.integers(len(document["rows"]))]
    odd = ODD[generator.integers(len(ODD))]
    match int(generator.integers(0, 8)):
        case 0:
            document[list(document)[generator.integers(4)]] = odd
        case 1:
            row["id"] = odd
        case 2 | 3 | 4:
            row["values"][generator.integers(3)] = odd
        case 5:
            row["values"] = odd
        case 6:
            document["rows"].append(dict(row))  # the same id twice
        case _:
            row[["more", "id", "values"][generator.integers(3)]] = odd
    return json.dumps(document).encode()


# ---------------------------------------------------------------------- tests


def test_the_judge_knows_right_from_wrong() -> None:
    """Of what is sent, enough is valid, and enough is not."""
    spec = survey()
    verdicts = [judged(body, spec.digest) is not None for body in payloads(3000, 1)]
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.5
    assert spec.to_dict()["columns"] == SURVEY["columns"]


def test_whatever_is_parsed_the_store_holds_what_is_valid(tmp_path: Path) -> None:
    spec = survey()
    expected = Expected(spec)
    answers: list[SubmissionReceipt | None] = []
    taken: list[Submission] = []
    for body in payloads(PARSED, 2):
        try:
            taken.append(read_submission(body, spec))
        except UsageError:
            assert expected.take(body)[0] == 400, body
        else:
            status, answer = expected.take(body)
            assert status in (200, 409), body
            answers.append(answer)
    with opened(tmp_path / "store", spec) as store:
        outcomes = [
            done for n in range(0, len(taken), 500) for done in store.add(taken[n : n + 500])
        ]
        assert store.count == len(expected.rows)
    assert [None if isinstance(done, RefusalError) else done for done in outcomes] == answers
    assert stored(tmp_path / "store") == expected.rows


def test_whatever_is_asked_the_answer_is_json_and_no_500(tmp_path: Path) -> None:
    spec = survey()
    expected = Expected(spec)
    with application(tmp_path / "store") as app:

        async def run() -> None:
            for body in payloads(ASKED, 3):
                answer = await ask(app, "POST", "/v1/rows", body)
                status, added = expected.take(body)
                if status != 400:
                    assert answer.status == status, body
                assert answer.status in (200, 400, 409, 422), body
                if added is None:
                    assert set(answer.data) == {"error", "hint"} and answer.data["hint"]
                    assert answer.status != 200, body
                else:
                    assert answer.data == {"accepted": added.accepted, "repeated": added.repeated}

        asyncio.run(run())
    assert stored(tmp_path / "store") == expected.rows


def test_odd_headers_and_paths_give_no_500(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    words = [
        "", "application/json", "application/json; charset=x", "é\xff", "a" * 5000, "\t", "-1", "²",
        "18446744073709551616", "1e3", "0x10", "gzip", "chunked", "identity", "*/*",
    ]  # fmt: skip
    names = [
        "content-type", "content-length", "content-encoding", "transfer-encoding", "origin",
        "expect", "x-forwarded-for", "cookie",
    ]  # fmt: skip
    paths = [
        "/v1/rows", "/v1/spec", "/", "//", "/v1/rows?x=1", "/v1/�", "/v1/" + "a" * 5000,
        "/v1/rows\x00", "/../../etc/passwd", "*",
    ]  # fmt: skip
    methods = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "TRACE", "get", "", "A" * 100]

    def pick(choices: list[str]) -> str:
        return choices[generator.integers(len(choices))]

    with application(tmp_path / "store", origins=("https://survey.example",)) as app:

        async def run() -> None:
            for _ in range(2000):
                headers = {pick(names): pick(words) for _ in range(3)}
                answer = await ask(app, pick(methods), pick(paths), b"{}", headers)
                assert answer.status in (200, 400, 404, 405, 411, 413, 415), (headers, answer)

        asyncio.run(run())
    assert stored(tmp_path / "store") == {}
