"""A server of noisy counts as an ASGI application: its addresses, its pages, its refusals.

Whatever a request is, the answer is JSON (but for the pages), and never a 500: what is wrong with
the request has its own status, what is wrong with the server is 503.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from http import HTTPStatus
from importlib.resources import files
from operator import or_
from typing import TYPE_CHECKING, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from voile.errors import UsageError, VoileError
from voile.serve import wire
from voile.serve.api import Api, Caller, refusal_of, unauthorized
from voile.serve.ledger.base import LedgerError, RolledBackError
from voile.web.limits import Rate, RateLimiter, RefusalError, WorkPool
from voile.web.requests import BodyReader, Guard, SecurityHeaders, fault, refused

if TYPE_CHECKING:
    from voile.serve.query_service import QueryService
    from voile.serve.setting import Setting

SCHEMAS = "#/components/schemas/"
NUMBERS = {"most": (1, 1000), "before": (0, 2**53)}
"""What may stand behind ? in an address, and between which ends."""
ANY = (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
WITH_TOKEN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
WITH_BODY = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.LENGTH_REQUIRED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
WHY = {
    HTTPStatus.BAD_REQUEST: "The request is not what this document says.",
    HTTPStatus.UNAUTHORIZED: "No valid token came with the request.",
    HTTPStatus.FORBIDDEN: "Refused: the question cannot be answered, or the token is not for this.",
    HTTPStatus.REQUEST_TIMEOUT: "The body did not arrive in time.",
    HTTPStatus.LENGTH_REQUIRED: "The body's length was not given.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not plain application/json.",
    HTTPStatus.TOO_MANY_REQUESTS: "A budget is exhausted; or requests come too fast "
    "(then there is a Retry-After).",
    HTTPStatus.SERVICE_UNAVAILABLE: "The server cannot answer now; nothing was charged "
    "for this request, or a repetition of it is free.",
}


@dataclass(frozen=True)
class Operation:
    """One address and what it does; `name` is that of the method that does it."""

    method: str
    path: str
    name: str
    summary: str
    answers: tuple[type[BaseModel], ...]
    body: type[BaseModel] | None = None
    token: bool = True
    numbers: tuple[str, ...] = ()
    """Which of NUMBERS may stand in the address."""

    @property
    def responses(self) -> dict[int | str, dict[str, Any]]:
        statuses = (*ANY, *WITH_TOKEN * self.token, *WITH_BODY * bool(self.body))
        refusals: dict[int | str, dict[str, Any]] = {
            int(status): {"model": wire.RefusalResponse, "description": WHY[status]}
            for status in sorted(statuses)
        }
        return {200: {"model": reduce(or_, self.answers), "description": "Done."}} | refusals

    @property
    def extra(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.token:
            found["security"] = [{"token": []}]
        if self.body:
            schema = {"$ref": f"{SCHEMAS}{self.body.__name__}"}
            content = {"application/json": {"schema": schema}}
            found["requestBody"] = {"required": True, "content": content}
        if self.numbers:
            found["parameters"] = [
                {
                    "name": name,
                    "in": "query",
                    "required": False,
                    "schema": {
                        "type": "integer",
                        "minimum": NUMBERS[name][0],
                        "maximum": NUMBERS[name][1],
                    },
                }
                for name in self.numbers
            ]
        return found


OPERATIONS = (
    Operation(
        "POST",
        "/query",
        "query",
        "Ask a question, or what it would cost.",
        (wire.AnswerResponse, wire.CostResponse),
        body=wire.QuestionBody,
    ),
    Operation("GET", "/budget", "budget", "What may still be asked.", (wire.BudgetResponse,)),
    Operation("GET", "/schema", "schema", "The columns and the promise.", (wire.SchemaResponse,)),
    Operation(
        "GET",
        "/history",
        "history",
        "One's own questions.",
        (wire.HistoryResponse,),
        numbers=("most",),
    ),
    Operation("GET", "/health", "health", "Whether it runs.", (wire.HealthResponse,), token=False),
    Operation("GET", "/admin/people", "people", "Analysts and tokens.", (wire.PeopleResponse,)),
    Operation("GET", "/admin/groups", "groups", "Groups and budgets.", (wire.GroupsResponse,)),
    Operation(
        "GET",
        "/admin/log",
        "log",
        "The audit log, newest first.",
        (wire.LogResponse,),
        numbers=("most", "before"),
    ),
    Operation("GET", "/admin/audit", "audit", "What answers can have told.", (wire.AuditResponse,)),
    Operation(
        "POST",
        "/admin/tokens",
        "issue",
        "Make a token.",
        (wire.TokenResponse,),
        body=wire.TokenBody,
    ),
    Operation(
        "POST",
        "/admin/revoke",
        "revoke",
        "Revoke tokens.",
        (wire.RevocationResponse,),
        body=wire.RevocationBody,
    ),
    Operation(
        "POST",
        "/admin/groups",
        "set_group",
        "Set a group's budget.",
        (wire.GroupBody,),
        body=wire.GroupBody,
    ),
)


def describe(app: FastAPI, setting: Setting) -> dict[str, Any]:
    """The document: what FastAPI finds of the answers, and the bodies, which we read ourselves."""
    found = app.openapi()
    found["info"] = {
        "title": f"Voile: noisy counts of {setting.name}",
        "version": "1",
        "description": "At most so many answers about the table ever exist. POST /query asks; "
        "questions that were answered before are free.",
    }
    bodies: list[tuple[type[BaseModel], Literal["validation"]]] = [
        (operation.body, "validation") for operation in OPERATIONS if operation.body
    ]
    _, definitions = models_json_schema(bodies, ref_template=f"{SCHEMAS}{{model}}")
    components = found.setdefault("components", {})
    components.setdefault("schemas", {}).update(definitions["$defs"])
    found = named_by_title(found)
    found["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "voile serve token makes one"}
    }
    return found


def named_by_title(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its schemas under their titles: names of classes are our own matter."""
    schemas = document["components"]["schemas"]
    titles = {f"{SCHEMAS}{name}": f"{SCHEMAS}{one['title']}" for name, one in schemas.items()}

    def renamed(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: renamed(value) for key, value in part.items()}
        if isinstance(part, list):
            return [renamed(value) for value in part]
        return titles.get(part, part) if isinstance(part, str) else part

    found: dict[str, Any] = renamed(document)
    own = found["components"]["schemas"]
    found["components"]["schemas"] = {one["title"]: one for one in own.values()}
    return found


# ---------------------------------------------------------------------- app


WHAT = "the server"
HINTS = {
    HTTPStatus.NOT_FOUND: "there is POST /query, GET /budget, and what /docs lists",
    HTTPStatus.METHOD_NOT_ALLOWED: "POST /query; /docs lists what there is",
}
KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
PAGES = {"/": "pages/index.html", "/docs": "reference/docs.html"}
"""Pages whose address is not their file's name."""
THREADS, WAITING = 4, 508
"""Questions at work, and in line for it."""
TOGETHER = 64
"""Bodies that are read at one time."""
SECONDS = 10.0
"""To send a body."""


@dataclass(frozen=True)
class Number:
    """A whole number that may stand in the address."""

    least: int
    greatest: int
    default: int | None

    def read(self, name: str, text: str | None) -> int | None:
        if text is None:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) <= 16):
            raise UsageError(f"{name}={text[:20]!r} is no whole number", hint=f"as in {name}=10")
        if not self.least <= int(text) <= self.greatest:
            raise UsageError(
                f"{name}={text} is out of range", hint=f"{self.least} to {self.greatest}"
            )
        return int(text)


MOST, BEFORE = Number(*NUMBERS["most"], default=100), Number(*NUMBERS["before"], default=None)


class Endpoints:
    """From requests to the desk and back."""

    def __init__(self, desk: Api, pool: WorkPool) -> None:
        self._pool = pool
        self._bodies = BodyReader(
            wire.BODY_BYTES,
            together=TOGETHER * wire.BODY_BYTES,
            seconds=SECONDS,
            too_large="send one question, in fewer words",
            too_slow="send one question",
        )
        self._desk = desk

    async def health(self) -> Response:
        """Whether a question could be answered now."""
        health = self._desk.health
        if health.is_due():
            await self._pool.run(health.look)
        health.check()
        return answer({"status": "ok"})

    async def query(self, request: Request) -> Response:
        return await self._posted(self._desk.query, request)

    async def budget(self, request: Request) -> Response:
        return await self._got(self._desk.budget, request)

    async def schema(self, request: Request) -> Response:
        return await self._got(self._desk.about, request)

    async def history(self, request: Request) -> Response:
        return await self._got(self._desk.history, request, most=MOST)

    async def people(self, request: Request) -> Response:
        return await self._got(self._desk.people, request)

    async def groups(self, request: Request) -> Response:
        return await self._got(self._desk.groups, request)

    async def log(self, request: Request) -> Response:
        return await self._got(self._desk.log, request, most=MOST, before=BEFORE)

    async def audit(self, request: Request) -> Response:
        return await self._got(self._desk.audit, request)

    async def issue(self, request: Request) -> Response:
        return await self._posted(self._desk.issue, request)

    async def revoke(self, request: Request) -> Response:
        return await self._posted(self._desk.revoke, request)

    async def set_group(self, request: Request) -> Response:
        return await self._posted(self._desk.set_group, request)

    async def _got(
        self, work: Callable[..., Mapping[str, Any]], request: Request, **known: Number
    ) -> Response:
        caller = caller_of(request)
        numbers = numbers_of(request, known)
        return answer(await self._pool.run(partial(work, caller, **numbers)))

    async def _posted(
        self, work: Callable[[Caller, bytes], Mapping[str, Any]], request: Request
    ) -> Response:
        caller = caller_of(request)
        numbers_of(request, {})
        body = await self._bodies.read(request)
        return answer(await self._pool.run(partial(work, caller, body)))


def caller_of(request: Request) -> Caller:
    """Who sends it: the token is taken from the header Authorization, and from nowhere else."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized()
    return Caller(token.strip(), request.client.host if request.client else "")


def numbers_of(request: Request, known: Mapping[str, Number]) -> dict[str, int | None]:
    """Whole numbers from the address, such as ?most=10; refuses what it does not know."""
    given = request.query_params.multi_items()
    if wrong := [name for name, _ in given if name not in known]:
        raise UsageError(f"there is no parameter {wrong[0][:20]!r}", hint="see /docs")
    if len(given) > len({name for name, _ in given}):
        raise UsageError("a parameter stands twice in the address", hint="write it once")
    texts = dict(given)
    return {name: number.read(name, texts.get(name)) for name, number in known.items()}


def answer(data: Mapping[str, Any]) -> Response:
    return Response(json.dumps(data, allow_nan=False), media_type="application/json")


def make_app(
    service: QueryService,
    rate: Rate,
    pool: WorkPool,
    *,
    note: Callable[[str], None] = lambda _: None,
) -> FastAPI:
    """The application; `rate` is that of one address, and of one token."""
    endpoints = Endpoints(Api(service, rate), pool)
    app = FastAPI(
        title="Voile", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    for operation in OPERATIONS:
        add(app, operation, getattr(endpoints, operation.name))
    document = json.dumps(describe(app, service.setting)).encode()
    serve_bytes(app, "/openapi.json", document, "application/json")
    for path, content, kind in pages():
        serve_bytes(app, path, content, kind)
    app.add_api_route("/health", endpoints.health, methods=["HEAD"], include_in_schema=False)
    tell = ErrorAnswers(note)
    for error in (VoileError, HTTPException):
        app.add_exception_handler(error, tell.answer_error)
    app.add_middleware(Guard, buckets=RateLimiter(rate), note=note, what=WHAT, free=("/health",))
    app.add_middleware(SecurityHeaders)
    return app


def add(app: FastAPI, operation: Operation, endpoint: Callable[..., Any]) -> None:
    app.add_api_route(
        operation.path,
        endpoint,
        methods=[operation.method],
        name=operation.name,
        operation_id=operation.name,
        summary=operation.summary,
        responses=dict(operation.responses),
        response_class=JSONResponse,
        openapi_extra=operation.extra,
    )


def serve_bytes(app: FastAPI, path: str, content: bytes, kind: str) -> None:
    async def page() -> Response:
        return Response(content, media_type=kind)

    app.add_api_route(path, page, methods=["GET"], include_in_schema=False)


def pages() -> list[tuple[str, bytes, str]]:
    """The pages and what they load, from this package: address, bytes, kind."""
    named = {file: path for path, file in PAGES.items()}
    found = []
    for folder in ("pages", "reference"):
        for file in (files("voile.serve") / folder).iterdir():
            suffix = file.name[file.name.rfind(".") :]
            if suffix in KINDS:
                path = named.get(f"{folder}/{file.name}", f"/{file.name}")
                found.append((path, file.read_bytes(), KINDS[suffix]))
    return found


class ErrorAnswers:
    """Answers errors; the steward alone hears what is wrong with the ledger, but not too often."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._rate = RateLimiter(Rate(1 / 60, 1))

    async def answer_error(self, request: Request, error: Exception) -> Response:
        if isinstance(error, LedgerError | RolledBackError) and not self._rate.wait("ledger"):
            self._note(error.message)
        response = refused(as_refusal(error))
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response.headers["Allow"] = ", ".join(methods_at(request))
        return response


def methods_at(request: Request) -> list[str]:
    """What may be done at an address."""
    routes = [r for r in request.app.routes if r.path == request.url.path]
    return sorted({method for route in routes for method in route.methods})


def as_refusal(error: Exception) -> RefusalError:
    match error:
        case VoileError():
            return refusal_of(error, usage=HTTPStatus.BAD_REQUEST)
        case HTTPException():  # a path or method that is not there
            status = HTTPStatus(error.status_code)
            hint = HINTS.get(status, "ask as /docs says")
            return RefusalError(status, status.phrase.lower(), hint=hint)
        case _:
            return fault(WHAT)
