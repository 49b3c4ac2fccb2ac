"""What the steward of a server does and sees, also while the server runs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from voile.errors import UsageError
from voile.privacy.interactive.confidence import breach
from voile.privacy.interactive.laws import Change, noise_law
from voile.privacy.interactive.promise import account
from voile.serve.ledger import (
    Event,
    Identity,
    Ledger,
    Recovery,
    open_ledger,
    recover,
)
from voile.serve.ledger.base import Role
from voile.serve.setting import Setting


@contextmanager
def token_file(path: Path) -> Iterator[TextIO]:
    """A new file that only its owner can read, for a token; gone again if none is made."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise UsageError(
            f"{str(path)!r} exists already", hint="a token is never written over: name a new file"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}", hint="name another file"
        ) from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        try:
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


def count_error(setting: Setting) -> float:
    """The standard error of a count, which one person changes by as many rows as they may have."""
    change = Change(setting.per_person, setting.per_person**2)
    return noise_law(setting.noise, setting.variance, change).sd


def as_printed(setting: Setting) -> dict[str, float]:
    """What the slides' noise, of variance T, would have promised: how often conf rises above δ."""
    return {
        "variance": float(setting.queries),
        "stderr": math.sqrt(setting.queries),
        "breach": breach(setting.delta, setting.queries, float(setting.queries)),
    }


def ledger_of(folder: Path) -> Ledger:
    """The ledger of a server's folder, to issue tokens and to read; also while the server runs."""
    return open_ledger(folder, Setting.open(folder))


def issue_token(
    folder: Path,
    analyst: str,
    *,
    queries: int | None,
    group: str | None,
    role: Role,
    scopes: Sequence[str] | None,
    seconds: float | None,
) -> tuple[str, Identity]:
    """A new token, shown once and kept nowhere."""
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


def set_group(folder: Path, name: str, queries: int) -> None:
    """Make a group, or change its budget."""
    with ledger_of(folder) as ledger:
        ledger.set_group(name, queries)


def revoke(folder: Path, *, token: str | None, analyst: str | None) -> int:
    """Revoke tokens; how many of them were valid."""
    with ledger_of(folder) as ledger:
        return ledger.revoke(token=token, analyst=analyst)


def status(folder: Path) -> dict[str, Any]:
    """Budgets and people."""
    setting = Setting.open(folder)
    with open_ledger(folder, setting) as ledger:
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


def log(folder: Path, most: int) -> list[dict[str, Any]]:
    """The newest lines of the audit log, newest first."""
    with ledger_of(folder) as ledger:
        return [line_data(number, event) for number, event in ledger.events(most=most)]


def line_data(number: int, event: Event) -> dict[str, Any]:
    """A line of the audit log, as JSON."""
    return {
        "number": number,
        "at": event.at,
        "who": event.who,
        "what": event.what,
        "detail": dict(event.detail),
    }


def recovered(folder: Path, *, ledger_is_whole: bool) -> Recovery:
    """Accept the ledger as it is, after charging what may be missing."""
    return recover(folder, Setting.open(folder), ledger_is_whole=ledger_is_whole)
