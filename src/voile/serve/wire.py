"""What goes over the wire between a server and its clients: the models behind /openapi.json.

A model's title is its name in that document.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from voile.client.strict import read_json
from voile.errors import UsageError

BODY_BYTES = 64 * 1024
SQL_LENGTH = 10_000
NAME = 100
Name = Annotated[str, Field(min_length=1, max_length=NAME)]
Count = Annotated[int, Field(ge=0)]
Budgeted = Annotated[int, Field(ge=0, le=2**53)]
Scope = Literal["query", "budget", "admin"]
AnalystRole = Literal["analyst", "admin"]


class RequestBody(BaseModel):
    """What a request may hold, and no key besides."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Half(RequestBody):
    """A public pseudo-random half of the rows."""

    half: Annotated[str, Field(min_length=1, max_length=200)]
    """The seed that chooses it: the same half for everybody who names it."""


class QuestionBody(RequestBody, title="Question"):
    """A question, and which rows it is about."""

    sql: Annotated[str, Field(min_length=1, max_length=SQL_LENGTH)]
    subset: Name | Half = "all"
    """all, the name of a declared subset, or a half."""
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    dry_run: bool = False
    """Only say what the question would cost."""

    def rows(self) -> str | dict[str, str]:
        """Which rows are asked about."""
        if isinstance(self.subset, Half):
            return {"half": self.subset.half}
        word, colon, seed = self.subset.partition(":")
        if colon and word == "half":
            said = json.dumps({"half": seed or "SEED"}, ensure_ascii=False)
            raise UsageError(
                f"the body: there is no subset {self.subset!r}", hint=f"a half is {said}"
            )
        return self.subset


class TokenBody(RequestBody, title="NewToken"):
    """Whom to make a token for, and what it allows."""

    analyst: Name
    queries: Budgeted | None = None
    """The analyst's budget; it stays as it is if none is given."""
    group: Name | None = None
    role: AnalystRole = "analyst"
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] | None = None
    """What the token may be used for; all that the role allows if none is given."""
    expires: Annotated[str, Field(max_length=20)] | None = None
    """After how long: 12h, 30d, 52w; never if none is given."""


class RevocationBody(RequestBody, title="Revocation"):
    """One of the two."""

    token: Name | None = None
    """A token's public id."""
    analyst: Name | None = None
    """Revokes all tokens of this analyst."""


class GroupBody(RequestBody, title="Group"):
    """A group and its budget."""

    name: Name
    queries: Budgeted


# ---------------------------------------------------------------------- answers


class ResponseBody(BaseModel):
    """What an answer holds."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class RefusalResponse(ResponseBody, title="Refused"):
    """Why a request was refused."""

    error: str
    """What is wrong."""
    hint: str
    """What to do about it."""


class HealthResponse(ResponseBody, title="Health"):
    """The server answers questions."""

    status: Literal["ok"]


class AnswerResponse(ResponseBody, title="Answered"):
    """The noisy answer to a question, and what it cost."""

    answer: float | None
    """The estimate, where one was asked for."""
    stderr: float | None
    low: float | None
    high: float | None
    charged: Count
    remaining: Count
    rows: list[dict[str, Any]]
    """Of each column a key of its group, or an estimate with stderr, low and high."""
    columns: list[str]
    """Their names."""
    confidence: float
    covers: str
    notes: list[str]
    subset: str | dict[str, Any]
    subset_rows: float | None
    numbers: list[int]
    """Of the ledger's entries that the answer was made from."""


class CostResponse(ResponseBody, title="Cost"):
    """What a question would cost; nothing was charged."""

    cost: Count
    remaining: Count
    new: Count
    """Totals that would be charged."""
    known: Count
    """Totals that were answered before, and are free."""
    affordable: bool
    groups: Count
    stderr: dict[str, float | None]
    """Of each column, where it is known before."""
    notes: list[str]
    """What should be known before anything is spent."""


class BudgetState(ResponseBody, title="BudgetLeft"):
    """How much of a budget is used."""

    queries: Count
    used: Count
    remaining: Count


class BudgetResponse(ResponseBody, title="Budget"):
    """The budgets that bind the token's owner."""

    analyst: str
    queries: Count | None
    """The analyst's own; null if only those of the group and of everyone bind."""
    used: Count | None
    remaining: Count
    """What the tightest of all budgets leaves."""
    group: BudgetState | None
    everyone: BudgetState
    role: AnalystRole
    scopes: list[Scope]
    """What this token may be used for."""


class HistoryEntry(ResponseBody, title="Asked"):
    """A question that was charged, with its answer."""

    number: int
    at: float
    question: Any
    answer: Any


class RepeatEntry(ResponseBody, title="Repeated"):
    """A question that was answered before, and was free."""

    number: int
    """Of its line in the log."""
    at: float
    question: Any
    entries: list[int]
    """Where the totals it is made of stand in the ledger."""


class HistoryResponse(ResponseBody, title="History"):
    """The questions of the token's owner."""

    history: list[HistoryEntry]
    """What was charged, newest first."""
    repeats: list[RepeatEntry]
    """What was free because it was answered before, newest first; of the newest ones."""


class SchemaResponse(ResponseBody, title="About"):
    """What may be asked, and what everyone in the table is promised."""

    id: str
    name: str
    people: Count
    rows: Count
    """At most: exactly, where everybody has one."""
    declared: bool
    """Whether the values of all columns were declared; else some were read off the table."""
    queries: Count
    delta: float
    eta: float
    epsilon: float | None = None
    """Of (ε, δ)-differential privacy, where that is promised; then `delta` and `eta` follow."""
    epsilon_delta: float | None = None
    noise: str
    variance: float
    """Of the noise of a count that one person changes by 1."""
    stderr: float
    """Of a count, which one person changes by `per_person`."""
    per_person: int
    id_column: str | None
    subsets: list[dict[str, Any]]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    promise: dict[str, Any]


class PeopleResponse(ResponseBody, title="People"):
    """All analysts with their tokens."""

    people: list[dict[str, Any]]


class GroupsResponse(ResponseBody, title="Groups"):
    """All groups with their budgets."""

    groups: list[dict[str, Any]]


class LogEntry(ResponseBody, title="LogLine"):
    """A line of the audit log."""

    number: int
    at: float
    who: str
    what: str
    detail: dict[str, Any]


class LogResponse(ResponseBody, title="Log"):
    """Lines of the audit log."""

    log: list[LogEntry]
    """Newest first."""


class AuditResponse(ResponseBody, title="Audited"):
    """What the answers so far disclosed about a person at most, from the questions alone."""

    server: str
    id: str
    queries: Count
    answers: Count
    lost: Count
    delta: float
    eta: float
    planned: dict[str, Any]
    """By all answers that there will ever be."""
    worst: dict[str, Any]
    """By those so far, about whoever every question counts."""
    people: dict[str, Any]


class TokenResponse(ResponseBody, title="Issued"):
    """A new token."""

    token: str
    """Shown once, kept nowhere."""
    id: str
    analyst: str
    role: AnalystRole
    scopes: list[Scope]
    expires: float | None
    """In seconds since 1970; null if never."""


class RevocationResponse(ResponseBody, title="Revoked"):
    """What was revoked."""

    revoked: Count
    """How many tokens."""


Model = TypeVar("Model", bound=RequestBody)
AS_DOCUMENTED = "send JSON as /docs says"
WHICH_ROWS = 'subset is "all", {"half": "SEED"}, or the name of a declared subset'


def read(model: type[Model], body: bytes) -> Model:
    """What a body says, if it is strict JSON of this model; a UsageError says where it is not."""
    try:
        return model.model_validate(read_json(body, "the body", BODY_BYTES))
    except UsageError as error:
        raise UsageError(error.message, hint=AS_DOCUMENTED) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["loc"][:1] == ("subset",):
            raise UsageError("the body: subset is of no known form", hint=WHICH_ROWS) from None
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"the body: {where}: {first['msg'].lower()}" if where else "the body is no object",
            hint=AS_DOCUMENTED,
        ) from None
