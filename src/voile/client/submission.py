"""What a client sends: perturbed rows with ids, and how they reach a collector once."""

from __future__ import annotations

import json
import re
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from voile.client.arguments import a_count, check_limit, check_rows, check_sending, check_spec
from voile.client.domains import Codes
from voile.client.perturbation import Draws, PerturbedRow, encode_rows, perturb_codes
from voile.client.spec import MOST_BYTES, Spec, check_format
from voile.client.strict import AS_THE_FORMAT_SAYS, a_list, an_object, read_json
from voile.errors import UsageError, VoileError

ROWS_FORMAT = "voile-rows"
ROWS_VERSION = 1
MOST_ROWS = 10_000
MOST_ROWS_BYTES = 2**26
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
    while perturbing anew would reveal more about it each time. `at_most` and `public`: see
    `perturb`.
    """
    check_limit(spec, at_most, public)
    check_rows(rows)
    document = {
        "format": ROWS_FORMAT,
        "version": ROWS_VERSION,
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
        read_json(data, where, MOST_ROWS_BYTES),
        where,
        required=("format", "version", "spec", "rows"),
    )
    check_format(document, where, ROWS_FORMAT, ROWS_VERSION)
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
    """Refuse a submission that names another spec."""
    if type(digest) is not str:
        raise UsageError(
            f"{where}: 'spec' is not text", hint="write the SHA-256 of the spec's bytes"
        )
    if digest != spec.digest:
        raise WrongSpecError(
            f"{where} is for another spec than {spec.digest}", hint="read the spec anew"
        )


def check_row(row: Any, columns: int, where: str) -> None:
    """Refuse a row that has not the form of the wire format."""
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


# ---------------------------------------------------------------------- sending
# Sending a submission to a collector, once, however often the network fails.


MOST_ANSWER = 2**16
LONGEST_WAIT = 60.0
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same bytes may be sent again."""


def send(
    url: str,
    rows: Sequence[Mapping[str, Any]] | bytes,
    spec: Spec,
    *,
    at_most: float | None = None,
    public: Collection[str] = (),
    insecure: bool = False,
    timeout: float = 10.0,
    attempts: int = 5,
    _sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Perturb rows and send them to the collector at `url`; returns what it answers.

    `rows` may be the bytes of `submission`, kept from before. Each attempt sends the same bytes,
    and the collector knows rows by their ids, so that a row counts once. A failure that may have
    been half-way is safe to repeat only with the same bytes: make them with `submission` first
    where that matters. `at_most` and `public`: see `perturb`.
    """
    check_sending(url, insecure, timeout, attempts)
    check_address(url, insecure)
    check_spec(spec)
    payload = (
        rows if isinstance(rows, bytes) else submission(rows, spec, at_most=at_most, public=public)
    )
    if at_most is not None:
        check_limit(spec, at_most, public)
    request = urllib.request.Request(  # noqa: S310  (the scheme was checked)
        url.rstrip("/") + "/v1/rows",
        data=payload,
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    answer = exchange(request, timeout, attempts, MOST_ANSWER, _sleep)
    try:
        read = json.loads(answer)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise VoileError(
            f"{url} answered something that is not a JSON object",
            hint="is it the address of a collector?",
        )
    return read


def fetch_spec(
    url: str, *, insecure: bool = False, timeout: float = 10.0, attempts: int = 3
) -> Spec:
    """The spec that the collector at `url` publishes."""
    check_sending(url, insecure, timeout, attempts)
    check_address(url, insecure)
    request = urllib.request.Request(url.rstrip("/") + "/v1/spec")  # noqa: S310
    data = exchange(request, timeout, attempts, MOST_BYTES + 1, time.sleep)
    return Spec.from_bytes(data, where=f"the spec of {url}")


def check_address(url: str, insecure: bool) -> None:
    """Refuse what is no web address, and plain http except to this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise UsageError(
            f"{url!r} is not the address of a collector", hint="such as https://survey.example.org"
        )
    if parts.scheme == "http" and not is_loopback(host) and not insecure:
        raise UsageError(
            f"{url!r} is not encrypted: anyone on the way can read the rows, and change the spec",
            hint="use https, or say insecure=True",
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A collector that sends rows elsewhere may send them where they are not encrypted."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirection."""
        return


def exchange(
    request: urllib.request.Request,
    timeout: float,
    attempts: int,
    most_bytes: int,
    sleep: Callable[[float], None],
) -> bytes:
    """Ask until there is an answer, waiting longer each time; refusals are not repeated."""
    handlers: list[urllib.request.BaseHandler] = [NoRedirect()]
    if is_loopback(urlsplit(request.full_url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    for attempt in range(1, attempts + 1):
        wait = min(LONGEST_WAIT, 0.5 * 2 ** (attempt - 1))
        try:
            with opener.open(request, timeout=timeout) as response:
                data: bytes = response.read(most_bytes)
                return data
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in AGAIN:
                    raise refusal(request, error) from None
                reason = f"it answered {error.code}"
                wait = asked_wait(error.headers.get("Retry-After"), wait)
        except (OSError, HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt < attempts:
            sleep(wait)
    raise VoileError(
        f"{request.full_url}: no answer in {attempts} attempts ({reason})",
        hint="keep the bytes of `submission` and send them later: the ids make it count once",
    )


def asked_wait(header: str | None, otherwise: float) -> float:
    """Seconds that the server asks to wait, within reason."""
    if header is None or not header.isascii() or not header.isdigit():
        return otherwise
    return min(LONGEST_WAIT, float(header[:9]))


def refusal(request: urllib.request.Request, error: urllib.error.HTTPError) -> UsageError:
    """What a collector refused, in its own words where it has some."""
    try:
        answer = json.loads(error.read(MOST_ANSWER))
        words, hint = str(answer["error"])[:500], str(answer.get("hint", ""))[:500]
    except (
        OSError,
        HTTPException,
        ValueError,
        RecursionError,
        KeyError,
        TypeError,
        AttributeError,
    ):
        words, hint = "no reason given", "is it the address of a collector?"
    return UsageError(f"{request.full_url} answered {error.code}: {words}", hint=hint)
