"""What clients send: written, read strictly, fuzzed, and sent over a network that fails."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from tests.support.make_vectors import AGES, GRADES, PERSON, SURVEY, TUPLE, VISITS, spec_of
from tests.support.soak import rounds
from voile.client import (
    Spec,
    Submission,
    WrongSpecError,
    fetch_spec,
    perturb,
    read_submission,
    send,
    submission,
)
from voile.errors import PromiseError, UsageError, VoileError

SPEC = Spec.from_dict(SURVEY)
OTHER = Spec.from_dict(spec_of(AGES))
BORN = ["born"]
"""The column of the survey that is sent as it is."""


VALUES = [33, 12.34, "Male", None, "1970-01-01", 1500.25]


def document(rows: int = 3) -> dict[str, Any]:
    """A valid submission, the same each time."""
    made = [{"id": f"{row:032x}", "values": list(VALUES)} for row in range(rows)]
    return {"format": "voile-rows", "version": 1, "spec": SPEC.digest, "rows": made}


def read(made: Any) -> Submission:
    return read_submission(json.dumps(made).encode(), SPEC)


# ---------------------------------------------------------------------- written and read


def test_what_is_written_is_read() -> None:
    rows = [perturb(PERSON, SPEC, public=BORN) for _ in range(50)]
    found = read_submission(submission(rows, SPEC, public=BORN), SPEC)
    assert found.codes.shape == (50, 6) and found.codes.dtype == np.int64
    assert {len(id_) for id_ in found.ids} == {16} and len(set(found.ids)) == 50
    for place, column in enumerate(SPEC.columns):
        sent = [row[column.name] for row in rows]
        assert column.decode(found.codes[:, place]).tolist() == sent


@pytest.mark.parametrize("spec", [SURVEY, TUPLE, spec_of(GRADES, VISITS)])
def test_every_value_of_every_column_can_be_sent(spec: dict[str, Any]) -> None:
    made = Spec.from_dict(spec)
    rng = np.random.default_rng(5)
    codes = [rng.integers(column.size, size=500) for column in made.columns]
    values = [
        column.decode(code).tolist() for column, code in zip(made.columns, codes, strict=True)
    ]
    names = [column.name for column in made.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    found = read_submission(submission(rows, made, public=made.public), made)
    public = [place for place, column in enumerate(made.columns) if column.name in made.public]
    for place in public:
        assert (found.codes[:, place] == codes[place]).all()
    payload = {"format": "voile-rows", "version": 1, "spec": made.digest} | {
        "rows": [{"id": f"{i:032x}", "values": v} for i, v in enumerate(zip(*values, strict=True))]
    }
    again = read_submission(json.dumps(payload).encode(), made)
    assert (again.codes == np.array(codes).T).all()


def test_raw_rows_are_perturbed_and_perturbed_ones_are_not() -> None:
    """By chance, a raw row comes through 200 times with a chance far below 10⁻¹⁰⁰."""
    once = perturb(PERSON, SPEC, public=BORN)
    payload = submission([once] * 100 + [PERSON] * 200, SPEC, public=BORN)
    found = read_submission(payload, SPEC)
    assert (found.codes[:100] == found.codes[0]).all()
    assert len(np.unique(found.codes[100:], axis=0)) > 20
    with pytest.raises(UsageError, match="row 1 was perturbed for another spec"):
        submission([PERSON, perturb({"age": 33}, OTHER)], SPEC, public=BORN)
    with pytest.raises(UsageError, match="row 1 has no column 'age'"):
        submission([PERSON, {}], SPEC, public=BORN)
    with pytest.raises(UsageError, match="no rows"):
        submission([], SPEC, public=BORN)
    for limits in ({}, {"at_most": 99}, {"at_most": 3, "public": BORN}):
        with pytest.raises(PromiseError):
            submission([once], SPEC, **limits)


def changed(edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    made = document()
    edit(made)
    return made


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda d: d.update(format="voile"), "not of the format 'voile-rows'"),
        (lambda d: d.update(version=2), "of version 2; this Voile reads up to 1"),
        (lambda d: d.update(version="1"), "'version' is '1', not a number"),
        (lambda d: d.update(spec="0" * 64), "for another spec"),
        (lambda d: d.update(spec=None), "'spec' is not text"),
        (lambda d: d.pop("rows"), "has no 'rows'"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d.update(rows=[]), "'rows' is empty"),
        (lambda d: d.update(rows={}), "'rows' is not a list"),
        (lambda d: d["rows"].append(1), "row 3 is not an object"),
        (lambda d: d["rows"][1].update(time=1), "row 1 is not an object with"),
        (lambda d: d["rows"][1].update(id="A" * 32), "row 1: the id is not 32 digits"),
        (lambda d: d["rows"][1].update(id="0" * 31 + "\n"), "row 1: the id is not 32 digits"),
        (lambda d: d["rows"][1].update(id=7), "row 1: the id is not 32 digits"),
        (lambda d: d["rows"][1].update(id="٣" * 32), "row 1: the id is not 32 digits"),
        (lambda d: d["rows"][1].update(id=d["rows"][2]["id"]), "the same id twice"),
        (lambda d: d["rows"][1].update(values=[1]), "row 1: 'values' is not a list of 6"),
        (lambda d: d["rows"][1].update(values={}), "row 1: 'values' is not a list of 6"),
        (lambda d: d["rows"][1]["values"].__setitem__(0, True), "'age', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(0, 16), "'age', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(0, 33.5), "'age', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(0, 10**400), "'age', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(0, None), "'age', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(1, 12.34567), "'hours', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(2, "\ud800"), "'sex', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(3, 1), "'smokes', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(4, "1970-1-1"), "'born', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(5, 1200), "'pay', row 1: the value"),
        (lambda d: d["rows"][1]["values"].__setitem__(5, [[]]), "'pay', row 1: the value"),
    ],
)
def test_wrong_submissions_are_refused(
    edit: Callable[[dict[str, Any]], object], words: str
) -> None:
    read(document())
    with pytest.raises(UsageError, match=words) as refused:
        read(changed(edit))
    assert refused.value.hint
    assert isinstance(refused.value, WrongSpecError) == ("for another spec" in words)


def test_a_number_may_be_spelt_in_any_way() -> None:
    text = json.dumps(changed(lambda d: d["rows"][0]["values"].__setitem__(0, 33)))
    for spelling in ("33", "33.0", "3.3e1", "330e-1"):
        spelt = text.replace("[33,", f"[{spelling},", 1)
        assert read_submission(spelt.encode(), SPEC).codes[0, 0] == 16


def test_limits_on_rows() -> None:
    payload = submission([PERSON] * 3, SPEC, public=BORN)
    assert len(read_submission(payload, SPEC, most_rows=3).ids) == 3
    with pytest.raises(UsageError, match="has 3 entries; at most 2"):
        read_submission(payload, SPEC, most_rows=2)


# ---------------------------------------------------------------------- fuzzed

ODD = [
    "NaN", "-Infinity", "1e999", "9" * 400, "-0", "-0.0", "1.0", "true", "false", "null",
    '"\\ud800"', '"\\u0000"', "[]", "{}", '""', '{"id":1,"id":2}', "3.0000000000000004", "1e-400",
    "[" * 2000, '"2000-02-30"', '"+1970-01-01"', "5e-324", "-9223372036854775809",
    '"\ufeff"', "17", '"Male"',
]  # fmt: skip


class Payloads:
    """Mutations of valid payloads, and random bytes, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  (inputs of a test)
        self.valid = [json.dumps(document(rows)).encode() for rows in (1, 2, 3)]
        self.tokens = b'{}[]",:0123456789abcdefnulltrue.eE+-\\ \xc3\xff'

    def one(self) -> bytes:
        r = self.random
        data = bytearray(r.choice(self.valid))
        match r.randrange(8):
            case 0:
                return bytes(r.choices(self.tokens, k=r.randrange(60)))
            case 1:
                return r.randbytes(r.randrange(40))
            case 2:
                return bytes(data[: r.randrange(len(data))])
            case 3:
                return self.odd_value(bytes(data))
            case 4:
                return self.odd_document(bytes(data))
        for _ in range(r.randint(1, 3)):
            place = r.randrange(len(data))
            match r.randrange(4):
                case 0:
                    data[place] = r.choice(self.tokens)
                case 1:
                    data[place] ^= 1 << r.randrange(8)
                case 2:
                    del data[place : place + r.randint(1, 8)]
                case 3:
                    data[place:place] = data[place : place + r.randint(1, 20)]
            if not data:
                break
        return bytes(data)

    def odd_value(self, data: bytes) -> bytes:
        """An odd token in the place of one value."""
        made = json.loads(data)
        row = self.random.choice(made["rows"])
        row["values"][self.random.randrange(len(row["values"]))] = "HERE"
        text = json.dumps(made, ensure_ascii=False)
        return text.replace('"HERE"', self.random.choice(ODD)).encode("utf-8", "surrogatepass")

    def odd_document(self, data: bytes) -> bytes:
        """Keys dropped, repeated, exchanged; a row twice."""
        made = json.loads(data)
        holder = self.random.choice([made, self.random.choice(made["rows"])])
        key = self.random.choice(list(holder))
        match self.random.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = holder[self.random.choice(list(holder))]
            case 2:
                holder[key + "2"] = holder[key]
            case 3:
                made["rows"].append(made["rows"][0])
        return json.dumps(made).encode()


def test_a_hundred_thousand_payloads_are_read_or_refused() -> None:
    """No other error whatever the bytes; what is read is in the domain and reads the same again.

    A soak reads all of them; otherwise a seeded sample is read.
    """
    payloads, outcomes = Payloads(7), Counter[str]()
    sizes = np.array([column.size for column in SPEC.columns])
    count = rounds(20_000, 100_000)
    for _ in range(count):
        data = payloads.one()
        try:
            found = read_submission(data, SPEC, most_rows=5)
        except UsageError as error:
            assert error.hint, error.message
            outcomes[error.message.split(":")[0][:30]] += 1
            continue
        outcomes["read"] += 1
        assert ((found.codes >= 0) & (found.codes < sizes)).all()
        assert len(found.ids) == len(found.codes) == len(set(found.ids)) <= 5
        values = [row["values"] for row in json.loads(data)["rows"]]
        for place, column in enumerate(SPEC.columns):
            assert column.decode(found.codes[:, place]).tolist() == [row[place] for row in values]
    assert outcomes["read"] > count / 100
    assert len(outcomes) > 30


def test_deep_nesting_and_long_numbers_are_refused() -> None:
    for data in (b"[" * 10**6, b'{"a":' * 10**5, b"9" * 10**6, b"\x00" * 100, b""):
        with pytest.raises(UsageError):
            read_submission(data, SPEC)
    with pytest.raises(UsageError, match="from bytes, not str"):
        read_submission("{}", SPEC)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- sent


class Collector(BaseHTTPRequestHandler):
    """A server that follows a script: a status for each request, and whether it hangs up."""

    script: list[tuple[int, dict[str, str], bytes]]
    seen: list[bytes]

    def do_POST(self) -> None:
        self.seen.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        status, headers, body = self.script.pop(0)
        if status == 0:
            self.connection.close()
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass

    def finish(self) -> None:
        if not self.wfile.closed:
            try:
                self.wfile.flush()
            except OSError:
                return


@pytest.fixture
def collector() -> Iterator[tuple[str, type[Collector]]]:
    handler = type("Scripted", (Collector,), {"script": [], "seen": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()
        thread.join()


DONE: tuple[int, dict[str, str], bytes] = (200, {}, b'{"accepted": 1, "repeated": 0}')


def test_sending_again_sends_the_same_bytes(collector: tuple[str, type[Collector]]) -> None:
    url, handler = collector
    handler.script[:] = [(503, {}, b""), (429, {"Retry-After": "7"}, b""), DONE]
    waits: list[float] = []
    answer = send(url, [PERSON], SPEC, public=BORN, _sleep=waits.append)
    assert answer == {"accepted": 1, "repeated": 0}
    assert len(handler.seen) == 3 and len(set(handler.seen)) == 1
    assert waits == [0.5, 7.0]
    assert read_submission(handler.seen[0], SPEC).codes.shape == (1, 6)
    kept = submission([PERSON], SPEC, public=BORN)
    handler.script[:] = [DONE]
    send(url + "/", kept, SPEC)
    assert handler.seen[-1] == kept
    with pytest.raises(PromiseError, match="more than the 3 you allow"):
        send(url, kept, SPEC, at_most=3, public=BORN)
    assert len(handler.seen) == 4


def test_a_connection_that_breaks_is_tried_again_and_at_last_given_up(
    collector: tuple[str, type[Collector]],
) -> None:
    url, handler = collector
    handler.script[:] = [(0, {}, b""), DONE]
    send(url, [PERSON], SPEC, public=BORN, _sleep=lambda _: None)
    assert len(set(handler.seen)) == 1 and len(handler.seen) == 2
    handler.script[:] = [(500, {}, b"")] * 2
    with pytest.raises(VoileError, match="no answer in 2 attempts") as refused:
        send(url, [PERSON], SPEC, public=BORN, attempts=2, _sleep=lambda _: None)
    assert "keep the bytes" in refused.value.hint


def test_refusals_are_told_and_not_repeated(collector: tuple[str, type[Collector]]) -> None:
    url, handler = collector
    for body, words in (
        (b'{"error": "too many rows", "hint": "send less"}', "answered 400: too many rows"),
        (b"<html>", "answered 400: no reason given"),
        (b"[]", "answered 400: no reason given"),
    ):
        handler.script[:] = [(400, {}, body)]
        with pytest.raises(UsageError, match=words):
            send(url, [PERSON], SPEC, public=BORN)
    handler.script[:] = [(307, {"Location": "http://example.org/"}, b"")]
    with pytest.raises(UsageError, match="answered 307"):
        send(url, [PERSON], SPEC, public=BORN)
    handler.script[:] = [(200, {}, b"[1]")]
    with pytest.raises(VoileError, match="not a JSON object"):
        send(url, [PERSON], SPEC, public=BORN)


def test_the_spec_is_fetched_with_its_bytes(collector: tuple[str, type[Collector]]) -> None:
    url, handler = collector
    handler.script[:] = [(200, {}, SPEC.raw)]
    assert fetch_spec(url) == SPEC
    handler.script[:] = [(200, {}, b"<html>")]
    with pytest.raises(UsageError, match="is not JSON"):
        fetch_spec(url)


@pytest.mark.parametrize(
    "url",
    ["http://survey.example.org", "http://127.0.0.1.example.org", "http://[2001:db8::1]/"],
)
def test_plain_http_to_another_machine_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="not encrypted"):
        send(url, [PERSON], SPEC)
    with pytest.raises(UsageError, match="not encrypted"):
        fetch_spec(url)


@pytest.mark.parametrize(
    "url", ["file:///etc/hosts", "survey.example.org", "https://", "http://[::1", "https://a?b", ""]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="not the address of a collector"):
        send(url, [PERSON], SPEC)
