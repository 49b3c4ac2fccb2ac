"""The OpenAPI document of a server: every operation with its body, its answers and its refusals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from http import HTTPStatus
from operator import or_
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from voile.serve import wire

if TYPE_CHECKING:
    from fastapi import FastAPI

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
