"""The steward's register: what has left of each data set, and what all of it adds up to.

`Register.open()` is the register that commands write to; `accounts()` lists its data sets.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from voile.register.places import register_place

if TYPE_CHECKING:
    from voile.register.accounts import DataSetAccount, RegisteredDeparture, SpendingLimit
    from voile.register.register import ForeseenAccount, Register
    from voile.register.store import RegisterError

    RegisterChoice: TypeAlias = str | Path | Register | bool | None
    """A path or address, a register, None for the usual one, or False for none."""

__all__ = [
    "DataSetAccount",
    "ForeseenAccount",
    "Register",
    "RegisterError",
    "RegisteredDeparture",
    "SpendingLimit",
    "chosen_register",
    "register_place",
]

_HOMES = {
    "DataSetAccount": "accounts",
    "ForeseenAccount": "register",
    "Register": "register",
    "RegisterError": "store",
    "RegisteredDeparture": "accounts",
    "SpendingLimit": "accounts",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # loaded on first use: the command line only names it
        return getattr(importlib.import_module(f"voile.register.{_HOMES[name]}"), name)
    if name == "RegisterChoice":  # for tools that look types up while a program runs
        from voile.register.register import Register  # noqa: PLC0415

        return str | Path | Register | bool | None
    raise AttributeError(f"module 'voile.register' has no attribute {name!r}")


def chosen_register(given: RegisterChoice) -> Register | None:
    """The register that an option means; None where nothing is to be written down."""
    if given is False:
        return None
    from voile.register.register import Register  # noqa: PLC0415  (only to publish)

    if isinstance(given, Register):
        return given
    return Register.open(None if given is None or given is True else given)
