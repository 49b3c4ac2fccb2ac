"""Connections to one server: kept open, shared by threads, and encrypted on the way."""

from __future__ import annotations

import json
import ssl
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from voile.client.submission import asked_wait, is_loopback
from voile.errors import PromiseError, QueryError, UsageError, VoileError, spelled

MOST_BYTES = 2**26
"""Of one answer: no list of groups that a server answers about is that long."""
MOST_WORDS = 2000
HOST = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")
NOT_VALID = "the token is wrong, expired or revoked: ask the server's steward for another"


class ServerError(VoileError):
    """The server cannot be reached, cannot answer now, or is no server of ours."""


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is."""

    url: str
    secure: bool
    host: str
    port: int | None
    prefix: str

    @classmethod
    def read(cls, url: str, *, insecure: bool = False) -> ServerAddress:
        """Refuse what is no web address, and plain http except to this machine.

        The token goes with every question: anyone who reads it on the way can ask in its owner's
        name.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or parts.scheme not in ("http", "https") or not url.isascii():
            raise UsageError(f"{url!r} is not the address of a server", hint=right_address(url))
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError(
                f"the address of {host!r} holds more than a host, a port and a path",
                hint=f"give the token with {spelled('token', flag='--token-file')} or "
                "VOILE_TOKEN, not in the address",
            )
        if parts.scheme == "http" and not is_loopback(host) and not insecure:
            raise UsageError(
                f"{url!r} is not encrypted: anyone on the way can read the token and the answers",
                hint=f"use https, or pass {spelled('insecure', True)} if you trust the way",
            )
        return cls(url.rstrip("/"), parts.scheme == "https", host, port, parts.path.rstrip("/"))


def right_address(url: str) -> str:
    """A hint for what is not a web address."""
    host = url.partition("/")[0].rpartition(":")[0] or url.partition("/")[0]
    if "://" not in url and host.isascii() and host and not set(host) - HOST:
        return f"did you mean {'http' if is_loopback(host) else 'https'}://{url} ?"
    return "such as http://127.0.0.1:8420 or https://counts.example.org"


@dataclass(frozen=True)
class HttpReply:
    """What a server answered: the status, the object, and how long it asks to wait."""

    status: int
    found: Mapping[str, Any]
    retry_after: str | None


class Connections:
    """Asks one server with one token. Any number of threads may ask at once."""

    def __init__(
        self, address: ServerAddress, token: str, *, ca: Path | None, timeout: float
    ) -> None:
        self.address = address
        self.timeout = timeout
        self._headers = {"Authorization": f"Bearer {checked_token(token)}"}
        if ca is not None and not address.secure:
            raise UsageError(
                f"{address.url!r} has no certificate for {spelled('ca', str(ca))}", hint="use https"
            )
        self._context = trust(ca) if address.secure else None
        self._idle: deque[HTTPConnection] = deque()
        self._closed = False

    def get(self, path: str) -> Mapping[str, Any]:
        """The JSON object at an address of the server."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON object that the server replies to a body."""
        return self._ask("POST", path, json.dumps(body).encode())

    def close(self) -> None:
        """Close all connections; nothing can be asked after this."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):  # an address or a token may have been refused
            self._drop()

    def _ask(self, method: str, path: str, body: bytes | None) -> Mapping[str, Any]:
        """The server's answer; after too many requests, wait as it says, up to the timeout."""
        if self._closed:
            raise UsageError(
                f"the connection to {self.address.url} was closed", hint="connect anew"
            )
        patience = self.timeout
        while True:
            said = self._exchange(method, path, body)
            if said.status == 200:
                return said.found
            wait = max(0.1, asked_wait(said.retry_after, 1.0))
            if said.status != 429 or said.retry_after is None or wait > patience:
                raise refusal(self.address, said)
            patience -= wait
            time.sleep(wait)

    def _exchange(self, method: str, path: str, body: bytes | None) -> HttpReply:
        """One request; once more if the connection was lost, since answers are kept and free."""
        try:
            return self._once(self._kept(), method, path, body)
        except (ConnectionError, HTTPException) as error:
            if isinstance(error, ConnectionRefusedError):
                raise unreachable(self.address, error) from None
            self._drop()
        except OSError as error:
            raise unreachable(self.address, error) from None
        try:
            return self._once(self._fresh(), method, path, body)
        except (OSError, HTTPException) as error:
            raise unreachable(self.address, error) from None

    def _kept(self) -> HTTPConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._fresh()

    def _fresh(self) -> HTTPConnection:
        host, port = self.address.host, self.address.port
        if self._context is None:
            return HTTPConnection(host, port, timeout=self.timeout)
        return HTTPSConnection(host, port, timeout=self.timeout, context=self._context)

    def _once(self, line: HTTPConnection, method: str, path: str, body: bytes | None) -> HttpReply:
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            line.request(method, self.address.prefix + path, body, self._headers | kind)
            response = line.getresponse()
            data = response.read(MOST_BYTES)
        except BaseException:
            line.close()
            raise
        if response.will_close or not response.isclosed():
            line.close()
        else:
            self._idle.append(line)
        found = read_object(self.address, response.status, data)
        return HttpReply(response.status, found, response.headers.get("Retry-After"))


def read_object(address: ServerAddress, status: int, data: bytes) -> Mapping[str, Any]:
    """The JSON object of a reply."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ServerError(
            f"{address.url} answered {status} with something that is not a JSON object",
            hint="is it the address of a server begun with voile serve run?",
        )
    return found


def refusal(address: ServerAddress, said: HttpReply) -> VoileError:
    """What the server refused, in its own words."""
    words = lines(said.found.get("error") or f"{address.url} answered {said.status}")
    hint = lines(said.found.get("hint") or "")
    match said.status:
        case 401:
            return UsageError(words, hint=NOT_VALID)
        case 403:
            return QueryError(words, hint=hint)
        case 429 if said.retry_after is None:
            return PromiseError(words, hint=hint)
        case 429:
            return ServerError(words, hint=hint)
        case status if 400 <= status < 500:
            hint = hint or "is it the address of a server begun with voile serve run?"
            return UsageError(f"{address.url} answered {status}: {words}", hint=hint)
        case status:
            hint = hint or "ask again later: nothing that was answered is lost"
            return ServerError(f"{address.url} answered {status}: {words}", hint=hint)


def unreachable(address: ServerAddress, error: Exception) -> ServerError:
    """The error for a server that gave no reply, with the likely reason."""
    hint = "is the server running, and is the address right?"
    reason = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        reason = "no answer in time"
        hint = "ask again: what was answered meanwhile is kept, and free"
    elif isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message
        hint = f"name the authority that signed it with {spelled('ca')}"
    elif isinstance(error, ssl.SSLError):
        hint = "does the server speak TLS? without it the address begins with http://"
    elif not address.secure and isinstance(error, HTTPException | ConnectionResetError):
        hint = "does the server speak TLS? then the address begins with https://"
    return ServerError(f"{address.url} cannot be reached: {plain(reason)}", hint=hint)


def trust(ca: Path | None) -> ssl.SSLContext:
    """Which certificates are believed: the system's authorities, or one's own."""
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(ca)!r}", hint="a certificate in PEM") from None
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            f"{str(ca)!r} holds no certificate: {error}", hint="a certificate in PEM"
        ) from None


def checked_token(token: str) -> str:
    """The token, if it fits into a header; the error never shows it."""
    if not isinstance(token, str) or not token:
        raise UsageError(
            "no token was given",
            hint=f"pass {spelled('token', flag='--token-file')}, or set the variable "
            "VOILE_TOKEN; the server's steward makes one with voile serve token",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            "the token holds characters that tokens do not have",
            hint="copy it again, without quotes, spaces or line ends",
        )
    return token


def plain(words: Any) -> str:
    """A server's words on one line, cut, and unable to steer a terminal."""
    return printable(" ".join(str(words).split())[:MOST_WORDS])


def lines(words: Any) -> str:
    """The same on as many lines as there were: some refusals point at where in the SQL."""
    return "\n".join(printable(line) for line in str(words)[:MOST_WORDS].splitlines())


def printable(text: str) -> str:
    """The text with a mark for each character that a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
