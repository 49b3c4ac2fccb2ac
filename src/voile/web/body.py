"""A request's body, read no further than it may go."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from http import HTTPStatus

from fastapi import Request
from starlette.requests import ClientDisconnect

from voile.web.refusal import RefusalError, unavailable


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
