"""Tokens: 256 secret bits of the operating system, of which only a hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

MOST = 200
"""Characters of a token that are looked at; ours have 56."""
NOBODYS = "0" * 64
"""Compared with when there is no such token, so that this takes as long; no hash is known to be
this, and nobody's token is refused afterwards whatever it is."""


@dataclass(frozen=True)
class TokenSecret:
    """A new token, to be shown once, and what is kept of it."""

    token: str
    id: str
    digest: str


def make() -> TokenSecret:
    public = secrets.token_hex(6)
    token = f"{public}.{secrets.token_urlsafe(32)}"
    return TokenSecret(token, public, digest_of(token))


def digest_of(token: str) -> str:
    """Tokens are random, so one plain hash is enough: there is nothing to guess from it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def id_of(token: str) -> str:
    """What names the token in public; empty if it is not one of ours."""
    public, _, secret = token[:MOST].partition(".")
    return public if secret and public.isascii() and public.isalnum() else ""


def matches(token: str, kept: str | None) -> bool:
    """Whether a token is the one of which this is kept, in the same time whatever it is."""
    same = hmac.compare_digest(digest_of(token[: MOST + 1]), kept or NOBODYS)
    return same and kept is not None
