"""Who is let in: by a token as password, or anybody on this machine where that was asked for.

A token is checked by SCRAM-SHA-256 where its verifier is known, so that it never crosses the
network; a server of noisy counts keeps digests alone, and is told the token itself, over TLS or
within this machine.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from voile.errors import UsageError, spelled
from voile.units import counted

MECHANISM = b"SCRAM-SHA-256"
ROUNDS = 4096
"""Of PBKDF2, as PostgreSQL's own. Tokens are long and random: more would protect nobody."""
SHORTEST, MOST_TOKENS = 16, 100
NO_TOKEN = "the password is no valid token"  # noqa: S105  (a message)
HINT = "give a token as password; any user and database name will do"


class WireGuard(Protocol):
    """Decides who is let in."""

    @property
    def scram(self) -> ScramVerifier | None:
        """Checks tokens that it does not see; None where it must be told them."""
        ...

    @property
    def asks(self) -> bool:
        """Whether a password is asked for."""
        ...

    def admits(self, token: str) -> bool:
        """Whether the token is valid now; may take as long as a ledger's patience."""
        ...


class OpenGuard:
    """Anybody who reaches this address is let in."""

    scram = None
    asks = False

    def admits(self, token: str) -> bool:  # noqa: ARG002
        """Whoever it is."""
        return True


class TokenList:
    """Lets in whoever has one of these tokens."""

    asks = True

    def __init__(self, tokens: Sequence[str]) -> None:
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]
        self.scram = ScramVerifier(tokens)

    def admits(self, token: str) -> bool:
        """Whether it is one of them; takes as long whichever it is."""
        digest = hashlib.sha256(token.encode()).digest()
        return sum(hmac.compare_digest(digest, one) for one in self._digests) > 0


def read_tokens(path: Path) -> TokenList:
    """The tokens of a file: one a line, words after # aside."""
    named = spelled("token_file", str(path))
    try:
        if path.stat().st_size > 2**16:
            raise UsageError(f"{named} is no list of tokens", hint="one token a line")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{named} cannot be read: {why}", hint="one token a line") from None
    tokens = [found for line in text.splitlines() if (found := line.partition("#")[0].strip())]
    if not tokens:
        raise UsageError(
            f"{named} holds no token",
            hint="write one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    for number, token in enumerate(tokens, start=1):
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise UsageError(f"{named}: token {number} has characters that tokens do not have",
                             hint="letters, digits, - and _")  # fmt: skip
        if len(token) < SHORTEST:
            length = counted(len(token), "character")
            raise UsageError(
                f"{named}: token {number} has {length}: it can be guessed",
                hint=f"at least {SHORTEST}: python -c "
                "'import secrets; print(secrets.token_urlsafe(32))'",
            )
    if len(tokens) > MOST_TOKENS:
        raise UsageError(
            f"{named} holds {len(tokens):,} tokens; at most {MOST_TOKENS}",
            hint="let a server keep them: voile serve token",
        )
    return TokenList(tokens)


# ---------------------------------------------------------------------- SCRAM
# RFC 5802 and 7677, without channel binding. One salt for all tokens: whichever the client has, its
# proof fits that one's keys. The user's name is not looked at, as PostgreSQL's clients send none.


class ScramError(Exception):
    """What came is no message of SCRAM, or its proof fits no token."""


@dataclass(frozen=True)
class ScramKeys:
    """What is known of a token: enough to check a proof, not to make one."""

    stored: bytes
    server: bytes


class ScramVerifier:
    """Checks who knows one of some tokens."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.salt = secrets.token_bytes(16)
        self.keys = [scram_keys(token, self.salt) for token in tokens]

    def begin(self, first: bytes) -> ScramExchange:
        """The exchange that a client's first message begins."""
        return ScramExchange(self, first)


def scram_keys(token: str, salt: bytes) -> ScramKeys:
    """The keys of a token."""
    salted = hashlib.pbkdf2_hmac("sha256", token.encode(), salt, ROUNDS)
    client = mac(salted, b"Client Key")
    return ScramKeys(hashlib.sha256(client).digest(), mac(salted, b"Server Key"))


def mac(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.digest(key, data, "sha256")


class ScramExchange:
    """From a client's first message to its proof."""

    def __init__(self, verifier: ScramVerifier, first: bytes) -> None:
        self._verifier = verifier
        binding, _, rest = first.partition(b",")
        name, _, self._bare = rest.partition(b",")
        # Only n: a client that could bind to the channel and was offered it would say y or p.
        if binding not in (b"n", b"y") or name[:2] not in (b"", b"a="):
            raise ScramError
        self._header = binding + b"," + name + b","
        given = attributes(self._bare)
        if "n" not in given or not given.get("r"):
            raise ScramError
        self._nonce = given["r"] + base64.b64encode(secrets.token_bytes(18))
        salt = base64.b64encode(verifier.salt)
        self.challenge = b"r=" + self._nonce + b",s=" + salt + b",i=" + str(ROUNDS).encode()

    def finish(self, last: bytes) -> bytes:
        """The server's proof, if the client's fits a token."""
        without, mark, proof_text = last.rpartition(b",p=")
        given = attributes(without)
        if not mark or given.get("r") != self._nonce:
            raise ScramError
        proof = from_base64(proof_text)
        if len(proof) != 32 or from_base64(given.get("c", b"")) != self._header:
            raise ScramError
        signed = b",".join([self._bare, self.challenge, without])
        fitting = [keys for keys in self._verifier.keys if fits(keys, signed, proof)]
        if not fitting:
            raise ScramError
        return b"v=" + base64.b64encode(mac(fitting[0].server, signed))


def fits(keys: ScramKeys, signed: bytes, proof: bytes) -> bool:
    """Whether a proof was made with the token of these keys."""
    signature = mac(keys.stored, signed)
    client = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    return hmac.compare_digest(hashlib.sha256(client).digest(), keys.stored)


def attributes(data: bytes) -> dict[str, bytes]:
    """The attributes of a message: letter=value, with commas between."""
    found: dict[str, bytes] = {}
    for part in data.split(b","):
        name, equals, value = part.partition(b"=")
        if not equals or len(name) != 1 or not name.isalpha() or name.decode() in found:
            raise ScramError
        found[name.decode()] = value
    return found


def from_base64(data: bytes) -> bytes:
    """Bytes that were sent as text."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError from None
