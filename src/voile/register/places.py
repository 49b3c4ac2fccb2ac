"""Where the register is: a file or a PostgreSQL, named by the caller, the environment, or neither.

Nothing here is written; folders and files are made where an entry is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError, spelled
from voile.system import here as system

REGISTER, KEY = "VOILE_REGISTER", "VOILE_REGISTER_KEY"
"""Variables of the environment that name the register, and the file of its key."""
ADDRESSES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class RegisterPlace:
    """A file, or the address of a PostgreSQL; and where the key lies."""

    file: Path | None
    address: str | None
    key: Path

    def __str__(self) -> str:
        if self.file is not None:
            return str(self.file)
        from voile.web.postgres import place  # noqa: PLC0415  (for addresses alone)

        return place(str(self.address))

    @property
    def full(self) -> str:
        """The same, from whatever folder one looks."""
        return str(self) if self.file is None else str(self.file.absolute())


def register_place(given: str | Path | None = None) -> RegisterPlace:
    """The register that is named, or the one of VOILE_REGISTER, or the user's own."""
    text = str(given) if given is not None else os.environ.get(REGISTER, "")
    named = os.environ.get(KEY, "")
    if text.startswith(ADDRESSES):
        key = Path(named) if named else data_folder() / "register-postgresql.key"
        return RegisterPlace(None, text, key)
    if "://" in text:
        raise UsageError(
            f"the register cannot be at {text.partition('://')[0]}://…",
            hint="name a file, or postgresql://user@host/database",
        )
    file = Path(text) if text else data_folder() / "register.db"
    return RegisterPlace(file, None, Path(named) if named else file.with_name(f"{file.name}.key"))


def data_folder() -> Path:
    """Where programs keep this user's data: as the system has it."""
    if given := os.environ.get("XDG_DATA_HOME", ""):
        return Path(given) / "voile"
    try:
        home = Path.home()
    except RuntimeError:
        raise UsageError(
            "the register has no place: this user has no home folder",
            hint=f"name it with {spelled('register', 'PATH')} or the variable {REGISTER}",
        ) from None
    return system.data_folder(home) / "voile"
