"""Around an application: limits on bodies and rates, security headers, and a reply to faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voile.web.limits import RateLimiter, RefusalError, too_often, unavailable


class BodyReader:
    """Reads bodies of plain JSON: each of at most `most` bytes, and together not many more."""

    def __init__(
        self, most: int, *, together: int, seconds: float, too_large: str, too_slow: str
    ) -> None:
        """`too_large` and `too_slow` are hints: what would work instead."""
        self._most = most
        self._together = together
        self._seconds = seconds
        self._too_large_hint = too_large
        self._too_slow_hint = too_slow
        self._reading = 0
        """Bytes of the bodies that are being read."""

    async def read(self, request: Request) -> bytes:
        """The bytes of a request's body, or a refusal."""
        length = self._length(request)
        if self._reading and self._reading + length > self._together:
            raise unavailable("too many requests at once", hint="try again", retry_after=1)
        self._reading += length
        try:
            async with asyncio.timeout(self._seconds):
                return await self._stream(request)
        except TimeoutError:
            raise RefusalError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body did not arrive within {self._seconds:g} seconds",
                hint=self._too_slow_hint,
            ) from None
        except ClientDisconnect:
            raise RefusalError(
                HTTPStatus.BAD_REQUEST, "the body ends early", hint="send the same bytes again"
            ) from None
        finally:
            self._reading -= length

    def _length(self, request: Request) -> int:
        """The length of the body, if it is one that would be read."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if kind != "application/json" or coding != "identity":
            raise RefusalError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "the body is not plain application/json",
                hint="send Content-Type: application/json, and no Content-Encoding",
            )
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise RefusalError(
                HTTPStatus.LENGTH_REQUIRED,
                "the body's length is not given",
                hint="send a Content-Length; bodies in chunks are not taken",
            )
        if len(length) > 18 or int(length) > self._most:
            raise self._too_large()
        return int(length)

    async def _stream(self, request: Request) -> bytes:
        body = bytearray()
        async with aclosing(request.stream()) as stream:
            async for chunk in stream:
                body += chunk
                if len(body) > self._most:
                    raise self._too_large()
        return bytes(body)

    def _too_large(self) -> RefusalError:
        return RefusalError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the body has more than {self._most:,} bytes",
            hint=self._too_large_hint,
        )


# ---------------------------------------------------------------------- guard
# Around an application: the rate of each address, and a response to every request.


class Guard:
    """Refuses addresses that send too many requests, and turns every fault of ours into a 503.

    `free` are paths without a limit: machines request them, and they cost nothing.
    With `tokens`, requests that bring one are not limited by address but by what becomes of the
    token: else whoever sends many wrong ones would keep valid ones out.
    `what` is the server's name in words, `slower` the hint to addresses that are too fast.
    """

    def __init__(
        self,
        app: ASGIApp,
        buckets: RateLimiter,
        note: Callable[[str], None],
        *,
        what: str,
        free: tuple[str, ...] = (),
        tokens: bool = False,
        slower: str = "wait as Retry-After says",
    ) -> None:
        self._app = app
        self._buckets = buckets
        self._note = note
        self._what = what
        self._free = free
        self._tokens = tokens
        self._slower = slower

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not (scope["path"] in self._free or (self._tokens and brings_token(scope))):
            client = scope.get("client")
            seconds = self._buckets.wait(client[0] if client else "")
            if seconds:
                who = "from this address"
                await refused(too_often(who, seconds, self._slower))(scope, receive, send)
                return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except asyncio.CancelledError:  # the server ends, and waits no longer
            if begun:
                raise
            await refused(ending(self._what))(scope, receive, send)
        except Exception as error:
            # Its type only: the message could quote the request.
            self._note(f"a request failed: {type(error).__name__}")
            if not begun:
                await refused(fault(self._what))(scope, receive, send)


def brings_token(scope: Scope) -> bool:
    """Whether a request has the header Authorization."""
    return any(name == b"authorization" for name, _ in scope["headers"])


def fault(what: str) -> RefusalError:
    """The refusal for a fault of ours: try again later."""
    return unavailable(f"{what} failed", hint="try again later", retry_after=60)


def ending(what: str) -> RefusalError:
    """The refusal of whatever is not done when a server ends."""
    return unavailable(f"{what} is stopping", hint="try again", retry_after=10)


def refused(error: RefusalError) -> Response:
    """A refusal as the answer to a request.

    In ASCII: the message may quote the request, such as half a surrogate, which UTF-8 cannot hold.
    """
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        json.dumps({"error": error.message, "hint": error.hint}),
        status_code=error.status,
        headers=headers,
        media_type="application/json",
    )


# ---------------------------------------------------------------------- headers
# Headers of every response: browsers store nothing, guess no types and load nothing foreign.


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Scripts and styles from our own files only, and no requests to other hosts."""
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
ENCODED = [(name.lower().encode(), value.encode()) for name, value in ALWAYS.items()]


class SecurityHeaders:
    """Adds these headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *ENCODED]
            await send(message)

        await self._app(scope, receive, adding)
