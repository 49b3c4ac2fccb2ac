"""What a server does for its callers: permissions, rates, answers and the audit log.

Plain functions without HTTP, which `app` calls from a pool of threads. A refusal depends on the
request, the caller and the budget alone: no row is read for it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn

from voile.errors import VoileError
from voile.serve import wire
from voile.serve.ledger.base import (
    ExhaustedError,
    Identity,
    LedgerError,
    RolledBackError,
    WouldWaitError,
)
from voile.serve.self_audit import self_audit
from voile.serve.steward import count_error, issued_data, line_data
from voile.units import duration
from voile.web.limits import Rate, RateLimiter, RefusalError, too_often, unavailable

if TYPE_CHECKING:
    from voile.serve.ledger.base import Ledger
    from voile.serve.query_service import QueryReply, QueryService
    from voile.serve.question import Question

BELIEVED = 1.0
"""Seconds for which the last check of the ledger is trusted."""


class LedgerHealth:
    """Whether a question could be charged, as it was a moment ago."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._looking = threading.Lock()
        self._at = -BELIEVED
        self._wrong: LedgerError | None = None

    def is_due(self) -> bool:
        """Whether it is time to look, and nobody is looking."""
        return time.monotonic() - self._at >= BELIEVED and not self._looking.locked()

    def look(self) -> None:
        """Try the ledger, which may take as long as its patience."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._ledger.check()
            self._wrong = None
        except LedgerError as error:
            self._wrong = error
        finally:
            self._at = time.monotonic()
            self._looking.release()

    def check(self) -> None:
        """Raises what was wrong."""
        if self._wrong is not None:
            raise LedgerError(
                self._wrong.message, hint=self._wrong.hint, lasting=self._wrong.lasting
            )


# ---------------------------------------------------------------------- hiding
# The reason of a refusal, for the log, without the question's own words: what an analyst asks may
# say whom they suspect of what.


WORD = re.compile(r"[\w.]+")
SAID = re.compile(r"'[^']*'|\"[^\"]*\"|[\w.]+")
PLAIN = frozenset(
    {"a", "all", "and", "as", "avg", "between", "by", "case", "corr", "count", "distinct", "else",
     "end", "from", "group", "having", "in", "is", "like", "limit", "not", "null", "of", "on",
     "or", "order", "over", "select", "stddev", "sum", "the", "then", "to", "when", "where"}
)  # fmt: skip
"""Words of SQL that say nothing about anybody."""


def hide(sql: str, message: str) -> str:
    """The first line of a message about a question, with dots for the words of the question."""
    repeated = {word.lower() for word in WORD.findall(sql)} - PLAIN

    def hidden(found: re.Match[str]) -> str:
        quoted = found[0][0] in "'\""
        return "…" if quoted or found[0].lower() in repeated else found[0]

    return SAID.sub(hidden, message.partition("\n")[0])


# ---------------------------------------------------------------------- callers
# Permissions, rates, answers and the audit log.


GUESSES = Rate(0.5, 20)
"""Wrong tokens of one address: each further one has to wait."""
LOGGED = Rate(1.0, 100)
"""Refusals and repetitions of one analyst or address that are logged: nobody can fill the disk."""
TRIES = Rate(5.0, 100)
"""Dry runs of one analyst, whose page makes one while they type."""
PAGE = 1000
REPEATED = "repeated"
"""What the log calls an answer that was given before, and was free."""
LASTING = "the server's steward must look after it"
PASSING = "ask again: if it was answered meanwhile, the answer is kept and free"


@dataclass(frozen=True)
class Caller:
    """What a request says of who sends it."""

    token: str
    address: str


@dataclass(frozen=True)
class BegunAnswer:
    """An answer that leaves once what it is made of is on disk."""

    recorded: Future[Any] | None
    """Done when all is on disk; None where there is nothing to wait for."""
    finish: Callable[[], Mapping[str, Any]]
    """The answer, or a refusal; to be called when `recorded` is done."""
    rows: int
    """How many the answer has, or about as many."""


class Api:
    """Answers to callers, from any thread."""

    def __init__(self, service: QueryService, rate: Rate) -> None:
        self._service = service
        self._ledger = service.ledger
        self._about = service.setting.to_public() | {
            "stderr": count_error(service.setting),
            "promise": service.promise(),
        }
        self.health = LedgerHealth(service.ledger)
        self._rates = RateLimiter(rate)
        self._guesses = RateLimiter(GUESSES)
        self._logged = RateLimiter(LOGGED)
        self._tries = RateLimiter(TRIES)
        self._logged_tries = RateLimiter(LOGGED)

    # ------------------------------------------------------------------ analysts

    def admit_question(self, caller: Caller, body: bytes) -> tuple[str, wire.QuestionBody]:
        """Who asks, and what, before it is read."""
        who = self._admit(caller, "query")
        question = wire.read(wire.QuestionBody, body)
        if question.dry_run and (seconds := self._tries.wait(who.name)):
            raise too_often("to know what a question would cost", seconds)
        return who.name, question

    def at_once(self) -> AbstractContextManager[None]:
        """A block in which this thread waits for nothing: see `Ledger.at_once`."""
        return self._ledger.at_once()

    def begin(
        self, who: str, asked: wire.QuestionBody, question: Question, *, at_once: bool = False
    ) -> BegunAnswer:
        """Answer a question that was read, or say what it would cost on a dry run."""
        try:
            if asked.dry_run:
                if at_once:
                    raise WouldWaitError
                cost = self._service.cost_of(who, question)
                self._log_try(who, new=cost.new)
                return BegunAnswer(None, cost.to_dict, len(question.groups))
            pending = self._service.begin(who, question, asked.confidence, at_once=at_once)
        except VoileError as error:
            self.refuse(who, error, asked)

        def finish() -> Mapping[str, Any]:
            try:
                reply = pending.result()
            except VoileError as error:
                self.refuse(who, error, asked)
            self._log_answer(who, reply, asked)
            return reply.to_dict()

        return BegunAnswer(pending.recorded, finish, len(pending.draft.rows))

    def budget(self, caller: Caller) -> Mapping[str, Any]:
        """What the caller may still ask, by each budget that binds them."""
        who = self._admit(caller, "budget")
        found = self._ledger.budgets(who.name)
        own = found.analyst
        return {
            "analyst": who.name,
            "queries": own and own.queries,
            "used": own and own.used,
            "remaining": found.left,
            "group": found.group and found.group.to_dict(),
            "everyone": found.everyone.to_dict(),
            "role": who.role,
            "scopes": sorted(who.scopes),
        }

    def about(self, caller: Caller) -> Mapping[str, Any]:
        """What may be asked, and what everyone in the table is promised."""
        self._admit(caller, None)
        return self._about

    def history(self, caller: Caller, most: int) -> Mapping[str, Any]:
        """The newest of what the caller was charged for, and of what they asked again."""
        who = self._admit(caller, "query")
        own: list[dict[str, Any]] = []
        after = 0
        while page := self._ledger.entries(after, PAGE):
            after = page[-1].number
            own += [
                {
                    "number": kept.number,
                    "at": kept.at,
                    "question": json.loads(kept.entry.question),
                    "answer": json.loads(kept.entry.answer),
                }
                for kept in page
                if kept.analyst == who.name and not kept.lost
            ]
        again = self._ledger.events(None, most, who=who.name, what=REPEATED)
        repeats = [
            {"number": number, "at": line.at, "question": line.detail["question"],
             "entries": list(line.detail["entries"])}
            for number, line in again if "question" in line.detail
        ]  # fmt: skip
        return {"history": own[-most:][::-1], "repeats": repeats}

    # ------------------------------------------------------------------ admins

    def people(self, caller: Caller) -> Mapping[str, Any]:
        """All analysts with their tokens and budgets."""
        self._admit(caller, "admin")
        return {"people": self._ledger.people()}

    def groups(self, caller: Caller) -> Mapping[str, Any]:
        """All groups with their budgets."""
        self._admit(caller, "admin")
        return {"groups": self._ledger.groups()}

    def log(self, caller: Caller, before: int, most: int) -> Mapping[str, Any]:
        """Lines of the audit log older than number `before`, newest first."""
        self._admit(caller, "admin")
        return {"log": [line_data(*line) for line in self._ledger.events(before, most)]}

    def audit(self, caller: Caller) -> Mapping[str, Any]:
        """What all answers so far disclosed at most, from the ledger's questions alone."""
        self._admit(caller, "admin")
        return self_audit(self._service)

    def issue(self, caller: Caller, body: bytes) -> Mapping[str, Any]:
        """Make a token; the reply is the only place that shows it."""
        who = self._admit(caller, "admin")
        options = wire.read(wire.TokenBody, body)
        token, identity = self._ledger.issue(
            options.analyst,
            queries=options.queries,
            group=options.group,
            role=options.role,
            scopes=None if options.scopes is None else frozenset(options.scopes),
            seconds=None if options.expires is None else duration(options.expires),
            by=who.name,
        )
        return issued_data(token, identity)

    def revoke(self, caller: Caller, body: bytes) -> Mapping[str, Any]:
        """Revoke one token, or all tokens of an analyst."""
        who = self._admit(caller, "admin")
        target = wire.read(wire.RevocationBody, body)
        revoked = self._ledger.revoke(token=target.token, analyst=target.analyst, by=who.name)
        return {"revoked": revoked}

    def set_group(self, caller: Caller, body: bytes) -> Mapping[str, Any]:
        """Make a group, or change its budget."""
        who = self._admit(caller, "admin")
        group = wire.read(wire.GroupBody, body)
        self._ledger.set_group(group.name, group.queries, by=who.name)
        return {"name": group.name, "queries": group.queries}

    # ------------------------------------------------------------------ who may

    def _admit(self, caller: Caller, scope: str | None) -> Identity:
        """Who calls, if the token is valid, allows this, and was not used too often."""
        who = self._ledger.identify(caller.token)
        if who is None:
            # Only wrong tokens are slowed down: others may send valid ones from the same address.
            if seconds := self._guesses.wait(caller.address):
                raise too_often("with wrong tokens from this address", seconds)
            self._log(caller.address, HTTPStatus.UNAUTHORIZED, "no valid token")
            raise unauthorized()
        if seconds := self._rates.wait(f"token {who.token}"):
            raise too_often("with this token", seconds)
        if scope is not None and scope not in who.scopes:
            self._log(who.name, HTTPStatus.FORBIDDEN, f"no scope {scope}")
            raise RefusalError(
                HTTPStatus.FORBIDDEN,
                f"this token is not for that: it lacks the scope {scope!r}",
                hint="ask the server's steward for another token",
            )
        return who

    def refuse(self, who: str, error: VoileError, asked: wire.QuestionBody) -> NoReturn:
        """Log why a question was refused, without its words: they may say what one suspects."""
        refusal = refusal_of(error)
        why = hide(asked.sql, refusal.message)
        if asked.dry_run:
            self._log_try(who, status=int(refusal.status), why=why)
        else:
            self._log(who, refusal.status, why)
        raise (error if isinstance(error, LedgerError) else refusal) from None

    def _log_try(self, who: str, **detail: Any) -> None:
        """Log a dry run, which is not charged."""
        if not self._logged_tries.wait(who):
            self._ledger.note(who, "tried", **detail)

    def _log_answer(self, who: str, reply: QueryReply, asked: wire.QuestionBody) -> None:
        """Log an answer by the numbers of its entries, which hold the question.

        A repeat keeps the words of who repeats it, for their history: the entries may hold those
        of somebody else.
        """
        if reply.charged:
            self._ledger.note(who, "answered", entries=reply.numbers, charged=reply.charged)
        elif not self._logged.wait(who):
            own = {"question": {"sql": asked.sql, "subset": asked.subset}} if reply.numbers else {}
            self._ledger.note(who, REPEATED if own else "public", entries=reply.numbers, **own)

    def _log(self, who: str, status: HTTPStatus, why: str) -> None:
        if not self._logged.wait(who):
            self._ledger.note(who, "refused", status=int(status), why=why)


def unauthorized() -> RefusalError:
    """The refusal of a request without a valid token."""
    return RefusalError(
        HTTPStatus.UNAUTHORIZED,
        "no valid token came with the request",
        hint="send Authorization: Bearer TOKEN; voile serve token makes one",
    )


def refusal_of(error: VoileError, usage: HTTPStatus = HTTPStatus.FORBIDDEN) -> RefusalError:
    """The refusal that stands for an error; `usage` is the status of wrong requests."""
    match error:
        case RefusalError():
            return error
        case ExhaustedError():
            status = HTTPStatus.TOO_MANY_REQUESTS
            return RefusalError(status, error.message, hint=error.hint)
        case LedgerError():
            # Not its own words, which say where things are: those are for the steward.
            return unavailable(
                "the server's ledger does not work now, and no answer is given without it",
                hint=LASTING if error.lasting else PASSING,
                retry_after=None if error.lasting else 1,
            )
        case RolledBackError():
            return unavailable("the server's ledger is not the newest", hint=LASTING)
        case _:
            return RefusalError(usage, error.message, hint=error.hint)
