"""The collector as an ASGI application on its address: what it answers, and what it refuses.

It keeps no log of payloads, ids or addresses. Whatever a request is, the answer is JSON, and never
a 500: what is wrong with the request has its own status, what is wrong with the collector is 503.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from voile.client import Spec, Submission, WrongSpecError
from voile.collect.openapi import document
from voile.collect.reading import SubmissionReader
from voile.collect.store import Writer, opened
from voile.errors import UsageError, VoileError, spelled
from voile.kinds.perturbed.specs import check_releasable
from voile.web.limits import RateLimiter, RefusalError, unavailable
from voile.web.requests import BodyReader, Guard, fault, refused
from voile.web.server import WebOptions, listening, run_server, url_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HINTS = {
    HTTPStatus.NOT_FOUND: "there is /v1/spec, /v1/rows, /v1/count and /v1/health",
    HTTPStatus.METHOD_NOT_ALLOWED: "POST /v1/rows; everything else is GET",
}
WHAT = "the collector"
OTHER_HINT = "ask as docs/guides/collecting.md says"


@dataclass(frozen=True)
class RequestLimits:
    """What one request may take, and all of them together."""

    rows: int = 10_000
    """Of one submission."""
    bytes: int = 4 * 2**20
    """Of one body."""
    bytes_together: int = 256 * 2**20
    """Of all bodies that are being read at one time."""
    seconds: float = 30.0
    """To send a body."""

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise UsageError(
                f"{spelled('rows', self.rows, flag='--most-rows')} takes nothing", hint="at least 1"
            )
        if self.bytes < 1024:
            raise UsageError(
                f"{spelled('bytes', self.bytes, flag='--most-bytes')} takes nothing",
                hint="at least 1KB",
            )


class Collector:
    """The answers, over a writer and its store."""

    def __init__(self, writer: Writer, limits: RequestLimits) -> None:
        self._writer = writer
        self._spec = writer.store.spec
        self._document = json.dumps(document(self._spec), ensure_ascii=False).encode()
        self._reader = SubmissionReader(self._spec, most_rows=limits.rows)
        self._bodies = BodyReader(
            limits.bytes,
            together=limits.bytes_together,
            seconds=limits.seconds,
            too_large=f"send at most {limits.rows:,} rows at once, and fewer if they are long",
            too_slow="send fewer rows at once",
        )

    async def spec(self) -> Response:
        """The spec, byte for byte: its digest is in every submission."""
        return Response(self._spec.raw, media_type="application/json")

    async def openapi(self) -> Response:
        """What may be sent, with examples, as OpenAPI."""
        return Response(self._document, media_type="application/json")

    async def health(self) -> Response:
        """Whether rows are taken."""
        if self._writer.store.broken:
            raise unavailable(
                "the store does not work", hint="the operator must look after its disk"
            )
        return JSONResponse({"status": "ok"})

    async def count(self) -> Response:
        """How many rows have been taken."""
        return JSONResponse({"rows": self._writer.store.count})

    async def rows(self, request: Request) -> Response:
        """Take a submission; the answer comes when all of it is on disk."""
        submission = self._submission(await self._bodies.read(request))
        done = await asyncio.wrap_future(self._writer.add(submission))
        return JSONResponse({"accepted": done.accepted, "repeated": done.repeated})

    def _submission(self, body: bytes) -> Submission:
        try:
            return self._reader.read(body)
        except WrongSpecError as error:
            status = HTTPStatus.UNPROCESSABLE_ENTITY
            raise RefusalError(status, error.message, hint=error.hint) from None


def make_app(
    writer: Writer,
    buckets: RateLimiter,
    *,
    limits: RequestLimits | None = None,
    origins: tuple[str, ...] = (),
    note: Callable[[str], None] = lambda _: None,
) -> FastAPI:
    """The application; `origins` are the web pages (scheme and host) whose scripts may use it."""
    collector = Collector(writer, limits or RequestLimits())
    app = FastAPI(
        title="Voile collector",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.get("/v1/spec")(collector.spec)
    app.get("/v1/openapi.json")(collector.openapi)
    app.get("/v1/health")(collector.health)
    app.get("/v1/count")(collector.count)
    app.post("/v1/rows")(collector.rows)
    for kind in (RefusalError, UsageError, HTTPException):
        app.add_exception_handler(kind, answer_error)
    app.add_middleware(RowsRoute, collector=collector)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type"],
        )
    app.add_middleware(
        Guard,
        buckets=buckets,
        note=note,
        what=WHAT,
        free=("/v1/health",),
        slower="send several rows in one request, or wait as Retry-After says",
    )
    return app


class RowsRoute:
    """Takes rows past the routing that all other requests go through."""

    def __init__(self, app: ASGIApp, *, collector: Collector) -> None:
        self._app, self._collector = app, collector

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain = scope["type"] == "http" and scope["method"] == "POST"
        if not plain or scope["path"] != "/v1/rows":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._collector.rows(request)
        except (RefusalError, UsageError) as error:
            response = await answer_error(request, error)
        await response(scope, receive, send)


async def answer_error(_: Request, error: Exception) -> Response:
    """The response to a request that raised `error`."""
    return refused(as_refusal(error))


def as_refusal(error: Exception) -> RefusalError:
    """The refusal that stands for an error; an unknown error is the collector's own fault."""
    match error:
        case RefusalError():
            return error
        case UsageError():  # the submission is not what the wire format says
            return RefusalError(HTTPStatus.BAD_REQUEST, error.message, hint=error.hint)
        case HTTPException():  # a path or method that is not there
            status = HTTPStatus(error.status_code)
            return RefusalError(status, status.phrase.lower(), hint=HINTS.get(status, OTHER_HINT))
        case _:
            return fault(WHAT)


# ---------------------------------------------------------------------- serving
# A collector on its address, from the first request to the last commit.


@dataclass(frozen=True)
class CollectorOptions(WebOptions):
    """How a collector serves."""

    limits: RequestLimits = field(default_factory=RequestLimits)
    origins: tuple[str, ...] = ()
    """Web pages (scheme and host) whose scripts may use it."""
    most_stored: int | None = None
    """Bytes that the store may grow to."""

    def __post_init__(self) -> None:
        if self.most_stored is not None and self.most_stored < 2**20:
            raise UsageError(
                f"{spelled('most_stored', self.most_stored)} is too small", hint="at least 1MB"
            )


@dataclass(frozen=True)
class CollectorStatus:
    """A collector that is ready: where it listens, for which survey, and what it has."""

    url: str
    spec: str
    rows: int


def run_collector(
    folder: Path,
    spec: Spec | None,
    how: CollectorOptions,
    *,
    ready: Callable[[CollectorStatus], None],
    note: Callable[[str], None],
) -> int:
    """Collect until a signal comes; returns how many rows the store then has."""
    with (
        listening(how) as listener,
        opened(folder, spec, most_bytes=how.most_stored) as store,
    ):
        check_store(store.spec, folder)
        writer = Writer(store)
        try:
            app = make_app(
                writer, RateLimiter(how.rate), limits=how.limits, origins=how.origins, note=note
            )
            found = CollectorStatus(url_of(listener, how), store.spec.digest, store.count)
            run_server(app, how, listener, lambda: ready(found))
        finally:
            writer.close()
        return store.count


def check_store(spec: Spec, folder: Path) -> None:
    """Refuse a store whose rows could not be released: old versions began such stores."""
    try:
        check_releasable(spec)
    except VoileError as error:
        raise UsageError(
            f"what the store {str(folder)!r} collects could not be released: {error.message}",
            hint=f"begin a new {spelled('folder', flag='--store')} with another spec "
            f"({error.hint})",
        ) from None


def check_origins(given: Sequence[str]) -> tuple[str, ...]:
    """The origins, if each is a scheme, a host and perhaps a port, as browsers write them."""
    for text in given:
        if not re.fullmatch(r"https?://[^/?#@\s*]+", text):
            raise UsageError(
                f"{spelled('origins', text, flag='--origin')} is not a page's origin",
                hint="such as https://survey.example",
            )
    return tuple(given)
