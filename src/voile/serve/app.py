"""A server of noisy counts as an ASGI application: its addresses, its pages, its refusals.

Every reply is JSON (except the pages), and never a 500: an error of the request has its own status,
a fault of the server is 503.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from http import HTTPStatus
from importlib.resources import files
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, BeforeValidator, Field
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from voile.errors import UsageError, VoileError
from voile.serve import formats, wire
from voile.serve.answerers import AnswerMaker, LocalAnswerer
from voile.serve.api import Api, Caller, refusal_of, unauthorized
from voile.serve.examples import put_examples
from voile.serve.ledger.base import LedgerError, RolledBackError, WouldWaitError
from voile.web.limits import Rate, RateLimiter, RefusalError, WorkPool
from voile.web.requests import BodyReader, Guard, SecurityHeaders, fault, refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from voile.serve.query_service import QueryService
    from voile.serve.question import Question
    from voile.serve.setting import Setting
    from voile.serve.workers import QuestionTrial

SCHEMAS = "#/components/schemas/"
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

    @property
    def responses(self) -> dict[int | str, dict[str, Any]]:
        """The replies that the OpenAPI document lists: the answer, and every refusal."""
        statuses = (*ANY, *WITH_TOKEN * self.token, *WITH_BODY * bool(self.body))
        refusals: dict[int | str, dict[str, Any]] = {
            int(status): {
                "model": wire.RefusalResponse,
                "description": WHY[status],
            }
            for status in sorted(statuses)
        }
        done = {"model": reduce(or_, self.answers), "description": "Done."}
        tables = {"content": formats.TABLES} if wire.AnswerResponse in self.answers else {}
        return {200: done | tables} | refusals

    @property
    def extra(self) -> dict[str, Any]:
        """The body, which FastAPI does not read: it would take any size, and a key twice."""
        if self.body is None:
            return {}
        content = {
            formats.JSON: {
                "schema": {"$ref": f"{SCHEMAS}{self.body.__name__}"},
            }
        }
        return {"requestBody": {"required": True, "content": content}}


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
    Operation("GET", "/history", "history", "One's own questions.", (wire.HistoryResponse,)),
    Operation("GET", "/health", "health", "Whether it runs.", (wire.HealthResponse,), token=False),
    Operation("GET", "/admin/people", "people", "Analysts and tokens.", (wire.PeopleResponse,)),
    Operation("GET", "/admin/groups", "groups", "Groups and budgets.", (wire.GroupsResponse,)),
    Operation("GET", "/admin/log", "log", "The audit log, newest first.", (wire.LogResponse,)),
    Operation("GET", "/admin/audit", "audit", "What the answers disclosed.", (wire.AuditResponse,)),
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
    found = named_by_title(without_422(found))
    for operation in OPERATIONS:
        put_examples(found["paths"][operation.path][operation.method.lower()], operation.name)
    return found


def without_422(document: dict[str, Any]) -> dict[str, Any]:
    """The document without the refusal that FastAPI has for parameters: ours is 400."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
    return document


def named_by_title(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its schemas under their titles, not under the names of our classes."""
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
TOGETHER = 64
"""Bodies that are read at one time."""
SECONDS = 10.0
"""To send a body."""
LAST = 2**53
"""No line of the log has a number as large."""


BEARER = HTTPBearer(
    scheme_name="token", description="voile serve token makes one", auto_error=False
)


def caller_of(
    request: Request, found: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
) -> Caller:
    """Who sends the request: the token comes from the header Authorization only."""
    if found is None or not found.credentials.strip():
        raise unauthorized()
    check_parameters(request)
    return Caller(found.credentials.strip(), request.client.host if request.client else "")


def check_parameters(request: Request) -> None:
    """Refuse parameters that an address does not have, and those that stand there twice."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    given = [name for name, _ in request.query_params.multi_items()]
    if wrong := [name for name in given if name not in known]:
        raise UsageError(f"there is no parameter {wrong[0][:20]!r}", hint="see /docs")
    if len(given) > len(set(given)):
        raise UsageError("a parameter stands twice in the address", hint="write it once")


async def read_body(request: Request) -> bytes:
    """The body's bytes, within the limits; what they say is read by `wire.read`."""
    bodies: BodyReader = request.app.state.bodies
    return await bodies.read(request)


def digits(text: Any) -> Any:
    """Whole numbers as everybody writes them: no sign, no point, no spaces."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise ValueError("this is no whole number")
    return text


Token = Annotated[Caller, Depends(caller_of)]
Body = Annotated[bytes, Depends(read_body)]
Most = Annotated[int, Field(ge=1, le=1000), BeforeValidator(digits), Query()]
Before = Annotated[int, Field(ge=0, le=LAST), BeforeValidator(digits), Query()]


class OwnReader:
    """Reads questions in this process, where nobody but its owner asks: in tests, above all."""

    def __init__(self, service: QueryService, pool: WorkPool) -> None:
        self._service, self._pool = service, pool

    async def read(self, who: str, sql: str, subset: Any) -> Question:
        """The question, or a refusal that does not depend on the rows."""
        return await self._pool.run(partial(self._service.read, sql, subset), who)

    def known(self, sql: str, subset: Any) -> Question | None:  # noqa: ARG002
        """None: every question is read anew."""
        return None


class Endpoints:
    """From requests to the API and back."""

    def __init__(
        self,
        api: Api,
        pool: WorkPool,
        questions: QuestionTrial,
        answerer: AnswerMaker | None = None,
    ) -> None:
        self._api, self._pool, self._questions = api, pool, questions
        self._answerer = answerer or LocalAnswerer(api, pool, questions.known)
        self._health = WorkPool(1, 1)
        """Of its own: whatever the others do, it does not wait for them."""

    async def health(self) -> Response:
        """Whether a question could be answered now."""
        health = self._api.health
        if health.is_due():
            await self._health.run(health.look)
        health.check()
        return answer({"status": "ok"})

    async def query(self, caller: Token, body: Body, request: Request) -> Response:
        """Answers a question, or says what it would cost; as JSON or a table, by Accept."""
        form = formats.wanted(request.headers.get("accept"))
        who, asked = await self._admitted(caller, body)
        made = await self._answerer.answer(who, asked)
        if made is None:
            subset = asked.rows()
            try:
                question = await self._questions.read(who, asked.sql, subset)
            except VoileError as error:
                self._api.refuse(who, error, asked)
            made = await self._answerer.answer(who, asked, question)
        if form == formats.JSON:
            return formats.in_json(made)
        return await self._pool.run(partial(formats.rendered, made, form), who)

    async def _admitted(self, caller: Caller, body: bytes) -> tuple[str, wire.QuestionBody]:
        """Who asks what; looked up on this thread, unless the ledger makes it wait."""
        with suppress(WouldWaitError), self._api.at_once():
            return self._api.admit_question(caller, body)
        admit = partial(self._api.admit_question, caller, body)
        return await self._pool.run(admit, caller.address)

    async def budget(self, caller: Token) -> Response:
        """What the token's owner may still ask."""
        return await self._run(self._api.budget, caller)

    async def schema(self, caller: Token) -> Response:
        """The columns that may be asked about, and the promise."""
        return await self._run(self._api.about, caller)

    async def history(self, caller: Token, most: Most = 100) -> Response:
        """The owner's own questions with their answers, newest first."""
        return await self._run(self._api.history, caller, most)

    async def people(self, caller: Token) -> Response:
        """Analysts with their tokens and budgets."""
        return await self._run(self._api.people, caller)

    async def groups(self, caller: Token) -> Response:
        """Groups with their budgets."""
        return await self._run(self._api.groups, caller)

    async def log(self, caller: Token, most: Most = 100, before: Before = LAST) -> Response:
        """The audit log, newest first."""
        return await self._run(self._api.log, caller, before, most)

    async def audit(self, caller: Token) -> Response:
        """What the answers so far can have disclosed."""
        return await self._run(self._api.audit, caller)

    async def issue(self, caller: Token, body: Body) -> Response:
        """Makes a token, which is shown once."""
        return await self._run(self._api.issue, caller, body)

    async def revoke(self, caller: Token, body: Body) -> Response:
        """Revokes one token, or all tokens of an analyst."""
        return await self._run(self._api.revoke, caller, body)

    async def set_group(self, caller: Token, body: Body) -> Response:
        """Makes a group, or changes its budget."""
        return await self._run(self._api.set_group, caller, body)

    async def _run(
        self, work: Callable[..., Mapping[str, Any]], caller: Caller, *given: Any
    ) -> Response:
        # Not by address: an audit that takes long keeps nobody else from there waiting.
        who = f"token {caller.token.partition('.')[0][:16]}"
        return await self._answered(partial(work, caller, *given), who)

    async def _answered(self, work: Callable[[], Mapping[str, Any]], who: str) -> Response:
        return await self._pool.run(lambda: answer(work()), who)


def answer(data: Mapping[str, Any]) -> Response:
    """The data as a JSON response."""
    return Response(json.dumps(data, allow_nan=False), media_type="application/json")


def make_app(
    service: QueryService,
    rate: Rate,
    pool: WorkPool,
    *,
    questions: QuestionTrial | None = None,
    answerer: AnswerMaker | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> FastAPI:
    """The application; `rate` is that of one address, and of one token.

    `questions` are read elsewhere, or in this process if None; and likewise answered.
    """
    reader = questions or OwnReader(service, pool)
    endpoints = Endpoints(Api(service, rate), pool, reader, answerer)
    app = FastAPI(
        title="Voile", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.state.bodies = BodyReader(
        wire.BODY_BYTES,
        together=TOGETHER * wire.BODY_BYTES,
        seconds=SECONDS,
        too_large="send one question, in fewer words",
        too_slow="send one question",
    )
    for operation in OPERATIONS:
        add(app, operation, getattr(endpoints, operation.name))
    document = json.dumps(describe(app, service.setting)).encode()
    serve_bytes(app, "/openapi.json", document, "application/json")
    for path, content, kind in pages():
        serve_bytes(app, path, content, kind)
    app.add_api_route("/health", endpoints.health, methods=["HEAD"], include_in_schema=False)
    errors = ErrorAnswers(note)
    app.add_middleware(QueryRoute, endpoints=endpoints, bodies=app.state.bodies, errors=errors)
    for error in (VoileError, HTTPException, RequestValidationError):
        app.add_exception_handler(error, errors.answer_error)
    app.add_middleware(
        Guard, buckets=RateLimiter(rate), note=note, what=WHAT, free=("/health",), tokens=True
    )
    app.add_middleware(SecurityHeaders)
    return app


BEARER_LINE = re.compile(rb"Bearer ([!-~]{1,500})")


class QueryRoute:
    """Takes plain requests for /query past the routing that all others go through.

    A request that is in any way unusual goes there too, and is answered or refused there.
    """

    def __init__(
        self, app: ASGIApp, *, endpoints: Endpoints, bodies: BodyReader, errors: ErrorAnswers
    ) -> None:
        self._app, self._endpoints, self._bodies, self._errors = app, endpoints, bodies, errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = plain_caller(scope)
        if caller is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._endpoints.query(
                caller, await self._bodies.read(request), request
            )
        except VoileError as error:
            response = await self._errors.answer_error(request, error)
        await response(scope, receive, send)


def plain_caller(scope: Scope) -> Caller | None:
    """Who sends a question, if the request is as clients send them; else None."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/query":
        return None
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1 or scope["query_string"] or not (found := BEARER_LINE.fullmatch(given[0])):
        return None
    client = scope.get("client")
    return Caller(found[1].decode("ascii"), client[0] if client else "")


def add(app: FastAPI, operation: Operation, endpoint: Callable[..., Any]) -> None:
    """Route the operation's address to its endpoint."""
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
    """Serve a fixed page at `path`."""

    async def page() -> Response:
        return Response(content, media_type=kind)

    app.add_api_route(path, page, methods=["GET"], include_in_schema=False)


def pages() -> list[tuple[str, bytes, str]]:
    """The pages and what they load, from here and from `voile.web`: address, bytes, kind."""
    named = {file: path for path, file in PAGES.items()}
    places = {folder: files("voile.serve") / folder for folder in ("pages", "reference")}
    found = []
    for folder, place in {**places, "static": files("voile.web") / "static"}.items():
        for file in place.iterdir():
            suffix = file.name[file.name.rfind(".") :]
            if suffix in KINDS:
                path = named.get(f"{folder}/{file.name}", f"/{file.name}")
                found.append((path, file.read_bytes(), KINDS[suffix]))
    return found


class ErrorAnswers:
    """Answers errors; an error of the ledger is noted for the steward, at most once a minute."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._rate = RateLimiter(Rate(1 / 60, 1))

    async def answer_error(self, request: Request, error: Exception) -> Response:
        """The response to a request that raised `error`."""
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
    """The refusal that stands for an error; an unknown error is the server's own fault."""
    match error:
        case VoileError():
            return refusal_of(error, usage=HTTPStatus.BAD_REQUEST)
        case RequestValidationError():  # a parameter of the address
            first = error.errors()[0]
            text, why = f"{first['loc'][-1]}={str(first['input'])[:20]!r}", first["msg"].lower()
            return RefusalError(HTTPStatus.BAD_REQUEST, f"{text}: {why}", hint="see /docs")
        case HTTPException():  # a path or method that is not there
            status = HTTPStatus(error.status_code)
            hint = HINTS.get(status, "ask as /docs says")
            return RefusalError(status, status.phrase.lower(), hint=hint)
        case _:
            return fault(WHAT)
