"""What the steward of a server does and sees, also while the server runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from voile.errors import UsageError, spelled
from voile.privacy.interactive.confidence import breach
from voile.privacy.interactive.laws import Change, noise_law
from voile.privacy.interactive.promise import account
from voile.serve.ledger import (
    Event,
    Identity,
    Ledger,
    Recovery,
    StoredEntry,
    open_ledger,
    recover,
)
from voile.serve.ledger.base import Role
from voile.serve.setting import ACCOUNTED_AT, Setting
from voile.system import here as system


@contextmanager
def token_file(path: Path) -> Iterator[TextIO]:
    """A new file that only its owner can read, for a token; gone again if none is made."""
    try:
        handle = system.open_file(path, new=True)
    except FileExistsError:
        raise UsageError(
            f"{str(path)!r} exists already", hint="a token is never written over: name a new file"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}", hint="name another file"
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def begun_data(folder: Path, setting: Setting, notes: Sequence[str]) -> dict[str, Any]:
    """What was begun: the noise, and what all answers together promise."""
    at = setting.accounted_at
    found = account(setting.noise, setting.variance, setting.queries, at=at)
    return {
        "server": str(folder),
        "id": setting.id,
        "name": setting.name,
        "people": setting.people,
        "per_person": setting.per_person,
        "queries": setting.queries,
        "delta": setting.delta,
        "eta": setting.eta,
        "anytime": setting.anytime,
        "epsilon": setting.epsilon,
        "epsilon_delta": setting.epsilon_delta,
        "noise": setting.noise,
        "variance": setting.variance,
        "stderr": count_error(setting),
        "promise": found.to_dict(),
        "as_printed": as_printed(setting),
        "registered": setting.registered,
        "notes": list(notes),
    }


def planned(
    *,
    queries: int,
    delta: float | None = None,
    eta: float = 1e-6,
    epsilon: float | None = None,
    epsilon_delta: float | None = None,
    noise: str = "binomial",
    anytime: bool = False,
    per_person: int = 1,
) -> dict[str, Any]:
    """What a server would promise and how far its counts would be off, without a table.

    The options are those of `begin`. `stderr` is the standard error of a count.
    """
    from voile.serve.creation import chosen_promise  # noqa: PLC0415  (it loads the engine)

    if per_person < 1:
        raise UsageError(
            f"{spelled('per_person', per_person)} is no number of rows", hint="1 or more"
        )
    promise = chosen_promise(
        noise, queries, delta=delta, eta=eta, anytime=anytime, epsilon=epsilon,
        epsilon_delta=epsilon_delta,
    )  # fmt: skip
    at = promise.epsilon_delta or ACCOUNTED_AT
    return {
        "queries": queries,
        "delta": promise.delta,
        "eta": eta,
        "epsilon": promise.epsilon,
        "epsilon_delta": promise.epsilon_delta,
        "noise": noise,
        "variance": promise.variance,
        "stderr": error_of(noise, promise.variance, per_person),
        "promise": account(noise, promise.variance, queries, at=at).to_dict(),
    }


def count_error(setting: Setting) -> float:
    """The standard error of a count, which one person changes by as many rows as they may have."""
    return error_of(setting.noise, setting.variance, setting.per_person)


def error_of(noise: str, variance: float, per_person: int) -> float:
    """The standard error of a count by the noise of a total that one row changes by 1."""
    return noise_law(noise, variance, Change(per_person, per_person**2)).sd


def as_printed(setting: Setting) -> dict[str, float]:
    """What the slides' noise, of variance T, would have promised: how often conf rises above δ."""
    return {
        "variance": float(setting.queries),
        "stderr": math.sqrt(setting.queries),
        "breach": breach(setting.delta, setting.queries, float(setting.queries)),
    }


def ledger_of(folder: str | Path) -> Ledger:
    """The ledger of a server's folder, to issue tokens and to read; also while the server runs."""
    return open_ledger(Path(folder), Setting.open(Path(folder)))


def issue_token(
    folder: str | Path,
    analyst: str,
    *,
    queries: int | None = None,
    group: str | None = None,
    role: Role = "analyst",
    scopes: Sequence[str] | None = None,
    seconds: float | None = None,
) -> tuple[str, Identity]:
    """A new token, shown once and kept nowhere, and whose it is.

    `queries` is the analyst's budget, as it was if not given; `seconds` how long it is valid.
    """
    chosen = None if scopes is None else frozenset(scopes)
    with ledger_of(folder) as ledger:
        return ledger.issue(
            analyst, queries=queries, group=group, role=role, scopes=chosen, seconds=seconds
        )


def beyond(folder: Path, queries: int | None) -> str:
    """A note on a budget that is larger than the server's own; else nothing."""
    most = Setting.open(folder).queries
    if queries is None or queries <= most:
        return ""
    return f"{queries:,} is more than all answers that there will ever be, {most:,}: those bind"


def issued_data(token: str, identity: Identity) -> dict[str, Any]:
    """A new token and whose it is, as JSON."""
    return {
        "token": token,
        "id": identity.token,
        "analyst": identity.name,
        "role": identity.role,
        "scopes": sorted(identity.scopes),
        "expires": identity.expires,
    }


def set_group(folder: str | Path, name: str, queries: int) -> None:
    """Make a group, or change its budget."""
    with ledger_of(folder) as ledger:
        ledger.set_group(name, queries)


def revoke(folder: str | Path, *, token: str | None = None, analyst: str | None = None) -> int:
    """Revoke one token by its id, or all of an analyst; how many of them were valid."""
    with ledger_of(folder) as ledger:
        return ledger.revoke(token=token, analyst=analyst)


def status(folder: str | Path) -> dict[str, Any]:
    """Budgets and people."""
    place = Path(folder)
    setting = Setting.open(place)
    with open_ledger(place, setting) as ledger:
        return {
            "name": setting.name,
            "people": setting.people,
            "noise": setting.noise,
            "variance": setting.variance,
            "registered": setting.registered,
            "everyone": ledger.budgets("").everyone.to_dict(),
            "groups": ledger.groups(),
            "analysts": ledger.people(),
        }


def log(folder: str | Path, most: int = 50, *, before: int | None = None) -> list[dict[str, Any]]:
    """Lines of the audit log, newest first, each with the questions that it is about.

    `before` is the number of a line: only older ones are shown.
    """
    with ledger_of(folder) as ledger:
        return [with_questions(ledger, line_data(*one)) for one in ledger.events(before, most)]


def with_questions(ledger: Ledger, line: dict[str, Any]) -> dict[str, Any]:
    """A line of the audit log with the texts of its questions, as the ledger keeps them."""
    numbers = line["detail"].get("entries") or []
    found = [kept for number in numbers for kept in ledger.entries(number - 1, 1)]
    asked = dict.fromkeys(question_text(kept) for kept in found)
    return {**line, "questions": list(asked)}


def question_text(kept: StoredEntry) -> str:
    """What was asked: the SQL, and about which rows where that is not all of them."""
    if kept.lost:
        return "lost: charged when the ledger was recovered"
    question = json.loads(kept.entry.question)
    rows = question["subset"]
    if rows == "all":
        return str(question["sql"])
    about = f"half {rows['half']!r}" if isinstance(rows, dict) else f"subset {rows!r}"
    return f"{question['sql']}  -- {about}"


def line_data(number: int, event: Event) -> dict[str, Any]:
    """A line of the audit log, as JSON: without the words of a question, which are its asker's."""
    return {
        "number": number,
        "at": event.at,
        "who": event.who,
        "what": event.what,
        "detail": {name: value for name, value in event.detail.items() if name != "question"},
    }


def recovered(folder: Path, *, ledger_is_whole: bool) -> Recovery:
    """Accept the ledger as it is, after charging what may be missing."""
    return recover(folder, Setting.open(folder), ledger_is_whole=ledger_is_whole)
