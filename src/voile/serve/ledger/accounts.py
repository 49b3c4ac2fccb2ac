"""Analysts, their groups and their tokens, of which only a hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any, cast, get_args

from voile.errors import UsageError, did_you_mean
from voile.serve.ledger.base import Identity, Role
from voile.serve.ledger.entries import used_by, used_by_group
from voile.serve.ledger.store import Run

MOST_CHARACTERS = 200
"""Characters of a token that are read; ours have 56."""
NOBODYS = "0" * 64
"""Compared with when there is no such token, so that this takes as long; the token is refused
afterwards whatever the comparison gives."""


@dataclass(frozen=True)
class TokenSecret:
    """A new token, to be shown once, and what is kept of it."""

    token: str
    id: str
    digest: str


def make_token() -> TokenSecret:
    """A new random token."""
    public = secrets.token_hex(6)
    token = f"{public}.{secrets.token_urlsafe(32)}"
    return TokenSecret(token, public, digest_of(token))


def digest_of(token: str) -> str:
    """Tokens are random, so one plain hash is enough: there is nothing to guess from it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def id_of(token: str) -> str:
    """The public id of a token; empty if it has not the form of one."""
    public, _, secret = token[:MOST_CHARACTERS].partition(".")
    return public if secret and public.isascii() and public.isalnum() else ""


def matches(token: str, kept: str | None) -> bool:
    """Whether this digest is the token's, in the same time for every token."""
    same = hmac.compare_digest(digest_of(token[: MOST_CHARACTERS + 1]), kept or NOBODYS)
    return same and kept is not None


# ---------------------------------------------------------------------- people
# Analysts, their groups and their tokens. All inside one transaction.


SCOPES: dict[Role, frozenset[str]] = {
    "analyst": frozenset({"query", "budget"}),
    "admin": frozenset({"query", "budget", "admin"}),
}
"""What a token of each role may do, unless it is given less."""
LONGEST_NAME = 100


@dataclass(frozen=True)
class TokenOptions:
    """The options of `issue`; refuses what makes no sense."""

    analyst: str
    queries: int | None
    group: str | None
    role: Role
    scopes: frozenset[str]
    seconds: float | None

    @classmethod
    def of(
        cls,
        analyst: str,
        queries: int | None,
        group: str | None,
        role: Role,
        scopes: frozenset[str] | None,
        seconds: float | None,
    ) -> TokenOptions:
        """The options with their defaults filled in, if they make sense together."""
        check_name("analyst", analyst)
        if queries is not None:
            check_queries(queries)
        if role not in get_args(Role):
            raise UsageError(f"{role!r} is no role", hint="there is 'analyst', 'admin'")
        if seconds is not None and not 0 < seconds < float("inf"):
            raise UsageError(
                f"a token cannot expire after {seconds} seconds",
                hint="give a positive time, or none for a token that does not expire",
            )
        chosen = SCOPES[role] if scopes is None else frozenset(scopes)
        if wrong := sorted(chosen - SCOPES[role]):
            raise UsageError(
                f"a token of an {role} cannot have the scope {wrong[0]!r}",
                hint=did_you_mean(wrong[0], sorted(SCOPES[role])),
            )
        if not chosen:
            raise UsageError("a token without scopes is of no use", hint="give it one")
        return cls(analyst, queries, group, role, chosen, seconds)


def check_name(what: str, name: str) -> None:
    """Refuse a name that is too long, not printable, or has spaces around it."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise UsageError(
            f"{name[:LONGEST_NAME]!r} is no name for {'an' if what == 'analyst' else 'a'} {what}",
            hint=f"1 to {LONGEST_NAME} printable characters, without spaces around them",
        )


def check_queries(queries: int) -> None:
    """Refuse a budget that is not a whole number from 0 to 2⁵³."""
    if isinstance(queries, bool) or not isinstance(queries, int) or not 0 <= queries < 2**53:
        raise UsageError(
            f"{queries!r} is no budget", hint="give a whole number, 0 or more and below 2⁵³"
        )


def check_group(run: Run, name: str) -> None:
    """Refuse a group that does not exist."""
    known = [row[0] for row in run("SELECT name FROM groups ORDER BY name")]
    if name not in known:
        near = did_you_mean(name, known) if known else "there is none yet"
        raise UsageError(
            f"there is no group {name!r}", hint=f"{near}; make one with voile serve group"
        )


def issue_token(run: Run, options: TokenOptions, made: TokenSecret, now: float) -> Identity:
    """Write the token's digest, and the analyst's group and budget where they are given."""
    if options.group is not None:
        check_group(run, options.group)
    run(
        "INSERT INTO analysts (name, group_name, queries) VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET "
        "group_name = coalesce(excluded.group_name, analysts.group_name), "
        "queries = coalesce(excluded.queries, analysts.queries)",
        options.analyst, options.group, options.queries,
    )  # fmt: skip
    expires = None if options.seconds is None else now + options.seconds
    run(
        "INSERT INTO tokens (id, analyst, digest, role, scopes, created, expires) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        made.id, options.analyst, made.digest, options.role, " ".join(sorted(options.scopes)), now,
        expires,
    )  # fmt: skip
    return Identity(made.id, options.analyst, options.role, options.scopes, expires)


@dataclass(frozen=True)
class TokenLookup:
    """What a token turned out to be."""

    identity: Identity
    expired: bool
    revoked: bool


def look_up(run: Run, token: str, now: float) -> TokenLookup | None:
    """The owner of a token, valid or not; one query and one comparison whether it exists or not."""
    found = run(
        "SELECT id, analyst, role, scopes, expires, revoked, digest FROM tokens WHERE id = ?",
        id_of(token),
    )
    row = found[0] if found else None
    if not matches(token, row[-1] if row else None) or row is None:
        return None
    public, analyst, role, scopes, expires, revoked, _ = row
    identity = Identity(public, analyst, cast("Role", role), frozenset(scopes.split()), expires)
    return TokenLookup(identity, expires is not None and now >= expires, revoked is not None)


def revoke_tokens(run: Run, token: str | None, analyst: str | None, now: float) -> list[str]:
    """The ids of the tokens that were valid and are no more."""
    if (token is None) == (analyst is None):
        raise UsageError("revoke either one token or those of an analyst", hint="name one of them")
    column, value = ("id", token) if analyst is None else ("analyst", analyst)
    if not run(f"SELECT 1 FROM tokens WHERE {column} = ?", value):
        known = [row[0] for row in run(f"SELECT DISTINCT {column} FROM tokens ORDER BY {column}")]
        what = f"token with the id {value!r}" if analyst is None else f"token of {value!r}"
        raise UsageError(
            f"there is no {what}",
            hint=did_you_mean(str(value), known) if known else "no token was issued yet",
        )
    valid = run(f"SELECT id FROM tokens WHERE {column} = ? AND revoked IS NULL", value)
    run(f"UPDATE tokens SET revoked = ? WHERE {column} = ? AND revoked IS NULL", now, value)
    return [row[0] for row in valid]


def revoke_all(run: Run, now: float) -> int:
    """Revoke all tokens: an old copy of a ledger does not know what was revoked since."""
    valid = run("SELECT count(*) FROM tokens WHERE revoked IS NULL")[0][0]
    run("UPDATE tokens SET revoked = ? WHERE revoked IS NULL", now)
    return int(valid)


def write_group(run: Run, name: str, queries: int) -> None:
    """Make a group, or change its budget."""
    check_name("group", name)
    check_queries(queries)
    run(
        "INSERT INTO groups (name, queries) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET queries = excluded.queries",
        name, queries,
    )  # fmt: skip


def read_people(run: Run, now: float) -> list[dict[str, Any]]:
    """Analysts by name, each with all tokens there ever were."""
    tokens: dict[str, list[dict[str, Any]]] = {}
    for public, analyst, role, scopes, created, expires, revoked in run(
        "SELECT id, analyst, role, scopes, created, expires, revoked FROM tokens "
        "ORDER BY created, id"
    ):
        tokens.setdefault(analyst, []).append(
            {
                "id": public, "role": role, "scopes": scopes.split(), "created": created,
                "expires": expires, "revoked": revoked,
                "valid": revoked is None and (expires is None or now < expires),
            }
        )  # fmt: skip
    return [
        {
            "name": name, "role": role_of(tokens.get(name, [])), "group": group,
            "queries": queries, "used": used_by(run, name), "tokens": tokens.get(name, []),
        }
        for name, group, queries in run(
            "SELECT name, group_name, queries FROM analysts ORDER BY name"
        )
    ]  # fmt: skip


def role_of(tokens: list[dict[str, Any]]) -> Role:
    """Admin, if one of the valid tokens is; else analyst."""
    return "admin" if any(t["valid"] and t["role"] == "admin" for t in tokens) else "analyst"


def read_groups(run: Run) -> list[dict[str, Any]]:
    """Groups by name, with their budgets."""
    return [
        {"name": name, "queries": queries, "used": used_by_group(run, name)}
        for name, queries in run("SELECT name, queries FROM groups ORDER BY name")
    ]
