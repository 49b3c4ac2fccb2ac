"""The fast reader of submissions takes and refuses what the strict reader does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.collecting import payload, some_submission, survey
from tests.support.soak import rounds
from voile.client import Spec, read_submission
from voile.collect import reading
from voile.collect.reading import SubmissionReader
from voile.errors import UsageError

SPEC = survey()
READER = SubmissionReader(SPEC, most_rows=5)


def outcome(read: Any) -> Any:
    """What was read, or why not."""
    try:
        found = read()
    except UsageError as error:
        return type(error), error.message, error.hint
    return found.ids, found.codes.tolist(), str(found.codes.dtype)


def check_same(body: bytes, spec: Spec = SPEC, reader: SubmissionReader = READER) -> Any:
    strict = outcome(lambda: read_submission(body, spec, most_rows=5))
    assert outcome(lambda: reader.read(body)) == strict
    return strict


def body_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


ID = "0" * 31
THREE = [[17, 0, "Male"], [90, 99.5, None], [40, 1.25, "Female"]]
GOOD = payload(SPEC, [f"{ID}{n}" for n in range(3)], THREE)
ROW = f'{{"id":"{ID}0","values":[17,0,"Male"]}}'


def around(rows: str, head: str | None = None) -> bytes:
    spec = SPEC.digest
    first = head or f'"format":"voile-rows","version":1,"spec":"{spec}"'
    return body_of(f'{{{first},"rows":[{rows}]}}')


ODD = [
    GOOD,
    GOOD.replace(b'"id"', b'"id":"%s","id"' % (b"1" * 32), 1),
    GOOD.replace(b'"values"', b'"values":[1],"values"', 1),
    GOOD.replace(b'"rows"', b'"rows":[],"rows"', 1),
    GOOD.replace(b'"version": 1', b'"version": 1, "version": 1'),
    GOOD.replace(b'"version": 1', b'"version": 1.0'),
    GOOD.replace(b'"version": 1', b'"version": true'),
    GOOD.replace(b'"version": 1', b'"version": "1"'),
    GOOD.replace(b'"version": 1', b'"version": 2'),
    GOOD.replace(b"voile-rows", b"voile-\\u0072ows"),
    GOOD.replace(b"Male", b"M\\u0061le"),
    GOOD.replace(b"Male", b"male"),
    GOOD.replace(b"Male", b'M\\"ale'),
    GOOD.replace(b"Male", b"\xff"),
    GOOD.replace(b"17", b"17.0", 1),
    GOOD.replace(b"17", b"-0", 1),
    GOOD.replace(b"17", b"1.7e1", 1),
    GOOD.replace(b"17", b"1e400", 1),
    GOOD.replace(b"17", b"9" * 400, 1),
    GOOD.replace(b"17", b"9" * 5000, 1),
    GOOD.replace(b"17", b"017", 1),
    GOOD.replace(b"17", b"NaN", 1),
    GOOD.replace(b"17", b"true", 1),
    GOOD.replace(b"17", b"null", 1),
    GOOD.replace(b"17", b'"17"', 1),
    GOOD.replace(b"17", b"[17]", 1),
    GOOD.replace(b"17", b"{}", 1),
    GOOD.replace(b"99.5", b"99.50000000000000000000000000001"),
    GOOD.replace(b"99.5", b"99.49999999999999999999"),
    GOOD.replace(b", 99.5", b", -0.0"),
    GOOD.replace(b"[17, 0,", b"[17,"),
    GOOD.replace(ID.encode() + b"1", ID.encode() + b"0"),
    GOOD.replace(ID.encode() + b"1", ID.encode() + b"A"),
    GOOD.replace(ID.encode() + b"1", ID.encode()),
    GOOD.replace(ID.encode() + b"1", ID.encode() + b" "),
    GOOD.replace(ID.encode() + b"1", ID.encode() + "１".encode()),
    GOOD + b" ",
    GOOD + b"x",
    b"\xef\xbb\xbf" + GOOD,
    GOOD[:-1],
    b"",
    b"[]",
    b"null",
    b'"',
    b"[" * 100_000,
    around(""),
    around(",".join([ROW] * 6)),
    around(ROW),
    around(ROW + ","),
    around(ROW.replace("}", ',"more":1}')),
    around(ROW.replace('"id"', '"ID"')),
    around("1"),
    around(ROW, '"format":"voile-rows","version":1,"spec":"other"'),
    around(ROW, '"format":"voile-rows","version":1,"spec":1'),
    around(ROW, '"format":"other","version":1,"spec":"other"'),
    around(ROW.replace("Male", "\ud800")),
    around(ROW.replace("Male", "\\ud800")),
]


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_odd_submissions(body: bytes) -> None:
    check_same(body)


@settings(max_examples=rounds(150, 20_000), deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 3)), max_size=3),
    parts=st.lists(
        st.sampled_from([b'"', b",", b"0", b"1e1", b"[", b"]", b"{", b"}", b":", b"null", b" ",
                         b'"id"', b"\\", b"\x00", b"\xc3", b"-", b".5", b'"a":1,'])
        | st.binary(max_size=3),
        min_size=3, max_size=3,
    ),
)  # fmt: skip
def test_mutated_submissions(places: list[tuple[int, int]], parts: list[bytes]) -> None:
    body = GOOD
    for (at, drop), part in zip(places, parts, strict=False):
        body = body[:at] + part + body[at + drop :]
    check_same(body)


VALUES = st.one_of(
    st.integers(-5, 120), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 1_000_001).map(lambda n: n / 10_000), st.booleans(), st.none(),
    st.sampled_from(["Male", "Female", "", "male"]), st.text(max_size=3),
)  # fmt: skip


@settings(max_examples=rounds(150, 20_000), deadline=None)
@given(rows=st.lists(st.lists(VALUES, min_size=2, max_size=4), min_size=1, max_size=4))
def test_any_values(rows: list[list[Any]]) -> None:
    ids = [f"{ID}{n}" for n in range(len(rows))]
    check_same(payload(SPEC, ids, rows))


def test_good_ones_do_not_reach_the_strict_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    bodies = [some_submission(SPEC, rows, generator)[0] for rows in (1, 3, 200)]
    expected = [read_submission(body, SPEC) for body in bodies]
    monkeypatch.setattr(reading, "read_submission", None)
    reader = SubmissionReader(SPEC)
    for body, strict in [*zip(bodies, expected, strict=True)] * 2:
        found = reader.read(json.dumps(json.loads(body), separators=(",", ":")).encode())
        assert found.ids == strict.ids
        assert found.codes.tolist() == strict.codes.tolist()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "KNOWN", 3)
    reader = SubmissionReader(SPEC)
    generator = np.random.default_rng(2)
    for _ in range(20):
        body, _ids = some_submission(SPEC, 2, generator)
        assert reader.read(body).codes.tolist() == read_submission(body, SPEC).codes.tolist()
    assert all(sum(map(len, column._known.values())) <= 5 for column in reader._columns)
