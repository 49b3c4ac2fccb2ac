"""The keys that rows are fingerprinted under: in a file that only its owner may read.

A register has one key of its own; those of registers that were merged into it stand behind it.
Without the key a fingerprint says nothing about rows, so it never lies in the database.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError, spelled
from voile.files import sync
from voile.system import here as system

SECRET = 32
"""Bytes of a key."""


@dataclass(frozen=True)
class FingerprintKey:
    """One secret, known by its public id."""

    secret: bytes

    @property
    def id(self) -> str:
        """By which the database names it; says nothing about the secret."""
        return self.derive("id")[:8].hex()

    def derive(self, purpose: str) -> bytes:
        """32 bytes for a purpose."""
        return hmac.new(self.secret, f"voile register {purpose}".encode(), "sha256").digest()

    def __repr__(self) -> str:
        return f"FingerprintKey({self.id})"


@dataclass(frozen=True)
class KeyFile:
    """Where keys are kept, one in a line: the register's own first."""

    path: Path

    def read(self) -> tuple[FingerprintKey, ...]:
        """The keys; none where there is no file."""
        try:
            handle = system.open_file(self.path)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise UsageError(
                f"cannot read the register's key {str(self.path)!r}: {error.strerror}",
                hint="give its owner the right to read it",
            ) from None
        with os.fdopen(handle, "rb") as file:
            self._check_rights(file.fileno())
            return self._parsed(file.read(2**20))

    def _check_rights(self, handle: int) -> None:
        if not system.is_private(os.fstat(handle)):
            raise UsageError(
                f"others may read the register's key {str(self.path)!r}",
                hint=f"chmod 600 {self.path}",
            )

    def _parsed(self, content: bytes) -> tuple[FingerprintKey, ...]:
        try:
            found = json.loads(content)["keys"]
            keys = tuple(FingerprintKey(bytes.fromhex(text)) for text in found)
        except (ValueError, KeyError, TypeError):
            keys = ()
        if not keys or any(len(key.secret) != SECRET for key in keys):
            raise UsageError(
                f"{str(self.path)!r} is not the key of a register",
                hint="restore it from a backup: without it rows are not recognised",
            )
        return keys

    def begin(self) -> tuple[FingerprintKey, ...]:
        """The keys; a new one where there is no file. Of two who begin at once, one wins."""
        if known := self.read():
            return known
        self._put([FingerprintKey(os.urandom(SECRET))], new=True)
        return self.read()

    def add(self, keys: tuple[FingerprintKey, ...]) -> None:
        """Keep further keys behind those that are there."""
        known = self.begin()
        missing = [key for key in keys if key not in known]
        if missing:
            self._put([*known, *missing], new=False)

    def put_all(self, keys: tuple[FingerprintKey, ...]) -> None:
        """Write these keys, for a copy of a register."""
        self._put(list(keys), new=True)

    def _put(self, keys: list[FingerprintKey], *, new: bool) -> None:
        """Written beside, and given its name in one step; a new one replaces nothing."""
        content = json.dumps({"keys": [key.secret.hex() for key in keys]}).encode() + b"\n"
        beside = self.path.with_name(
            f".{self.path.name}.{hashlib.sha256(os.urandom(16)).hexdigest()[:8]}"
        )
        try:
            self.path.absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = system.open_file(beside, new=True)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                system.flush(file.fileno())
            if new:
                self._link(beside)
            else:
                system.replace(beside, self.path)
            sync(self.path.absolute().parent)
        except OSError as error:
            raise UsageError(
                f"cannot write the register's key {str(self.path)!r}: {error.strerror}",
                hint=f"name another register with {spelled('register', 'PATH')}",
            ) from None
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def _link(self, beside: Path) -> None:
        """Give it its name, unless another program was first."""
        try:
            system.place_new(beside, self.path)
        except FileExistsError:
            return
