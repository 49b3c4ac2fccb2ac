"""signature.json: who vouches for a release.

What is signed is a statement: the digest of the release's manifest, its format version, whether it
is simulated, and what the signer says about themselves and the time.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from voile.signing.keys import LONGEST_NAME, PublicKey, SigningKey, printable
from voile.signing.openssh import KeyFormatError, unbase64

CONTEXT = b"voile release signature v1\0"
"""In front of what is signed, so that a signature of anything else is none of a release."""
LARGEST_FILE = 2**16
MOST_SIGNATURES = 32


class SignatureFileError(ValueError):
    """The bytes are no signatures; the message says why."""


class StrictModel(BaseModel):
    """An unknown key is an error, and so is a number where text belongs."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def checked(name: str) -> str:
    """A name that does nothing to a terminal."""
    if printable(name) != name:
        raise ValueError("it has characters that cannot be printed")
    return name


class Signature(StrictModel):
    """One person's statement about a release, and the signature under it."""

    algorithm: Literal["ed25519"] = "ed25519"
    public_key: str = Field(max_length=100, description="As OpenSSH writes it")
    fingerprint: str = Field(pattern="^SHA256:[A-Za-z0-9+/]{43}$")
    name: Annotated[str, AfterValidator(checked)] = Field(
        max_length=LONGEST_NAME, description="What the signer calls themselves"
    )
    when: str = Field(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
        description="By the signer's own clock",
    )
    digest: str = Field(pattern="^[0-9a-f]{64}$", description="That of the manifest")
    release_version: int = Field(ge=1, le=2**31, description="`version` of the manifest")
    simulated: bool = Field(description="`simulated` of the manifest")
    signature: str = Field(default="", max_length=88, description="64 bytes in base64")

    def message(self) -> bytes:
        """What is signed: the context, and all the rest in its one spelling."""
        said = self.model_dump(mode="json", exclude={"signature"})
        text = json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return CONTEXT + text.encode()

    @property
    def signer(self) -> str:
        """Whoever has the key, by name where there is one."""
        return f"{self.name} ({self.fingerprint})" if self.name else self.fingerprint

    def signed(self, key: SigningKey) -> Self:
        """The same with the signature of this key."""
        made = base64.b64encode(key.sign(self.message())).decode()
        return self.model_copy(update={"signature": made})

    def fault(self) -> str:
        """Why the signature under this statement is none; empty if it is one."""
        try:
            key, made = PublicKey.parse(self.public_key), unbase64(self.signature)
        except KeyFormatError as error:
            return str(error)
        if key.fingerprint != self.fingerprint:
            return "the fingerprint is that of another key"
        if not key.verifies(made, self.message()):
            return "the key has not signed this"
        return ""


class SignatureFile(StrictModel):
    """The content of signature.json."""

    format: Literal["voile-signatures"] = "voile-signatures"
    version: Literal[1] = 1
    signatures: Annotated[list[Signature], Field(min_length=1, max_length=MOST_SIGNATURES)]

    def content(self) -> bytes:
        """The one spelling of this file, so that any changed byte shows."""
        data = self.model_dump(mode="json")
        return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Read the file strictly; SignatureFileError if it is anything else."""
        if len(raw) > LARGEST_FILE:
            raise SignatureFileError(f"it has more than {LARGEST_FILE:,} bytes")
        try:
            data: Any = json.loads(raw)
            found = cls.model_validate(data)
            spelling = found.content()
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise SignatureFileError(f"{printable(where)}: {first['msg']}") from None
        except (ValueError, RecursionError) as error:
            raise SignatureFileError(f"it is not JSON that can be read: {error}") from None
        if spelling != raw:
            raise SignatureFileError("it is not spelt as signatures are written")
        keys = [one.fingerprint for one in found.signatures]
        if len(set(keys)) < len(keys):
            raise SignatureFileError("a key has signed twice")
        return found


def statement(
    key: SigningKey, *, digest: str, version: int, simulated: bool, when: datetime | None = None
) -> Signature:
    """A signed statement about the release with this digest."""
    public = key.public
    at = (when or datetime.now(UTC)).astimezone(UTC)
    return Signature(
        public_key=public.text,
        fingerprint=public.fingerprint,
        name=key.name,
        when=at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        digest=digest,
        release_version=version,
        simulated=simulated,
    ).signed(key)
