"""Which audit a method has, and which options belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voile.errors import UsageError, did_you_mean
from voile.evaluate.audit.answers import AnswersAudit, audit_answers
from voile.evaluate.audit.method import METHODS, MethodAudit, audit_method

ANSWERS = "answers"


def audited(
    method: str, publishing: Mapping[str, Any], answering: Mapping[str, Any], **running: Any
) -> MethodAudit | AnswersAudit:
    """Audit what publishes views, or the noise of a server; None is what was not asked for."""
    views = {name: value for name, value in publishing.items() if value is not None}
    answers = {name: value for name, value in answering.items() if value is not None}
    if method == ANSWERS:
        refuse(views, f"{ANSWERS} have no views", f"the options of {ANSWERS}", list(answering))
        return audit_answers(**answers, **running)
    if method in METHODS:
        refuse(answers, f"{method} answers no questions", f"the options of {method}",
               list(publishing))  # fmt: skip
        return audit_method(method, **views, **running)
    known = [*METHODS, ANSWERS]
    raise UsageError(f"method {method!r} is not known", hint=did_you_mean(method, known))


def refuse(given: Mapping[str, Any], why: str, whose: str, known: list[str]) -> None:
    if given:
        listed = ", ".join(f"--{name}" for name in given)
        options = ", ".join(f"--{name}" for name in known)
        raise UsageError(f"{why}: {listed}", hint=f"{whose} are {options}")
