"""Options by name, as `publish` and the other functions take them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from voile.errors import UsageError, did_you_mean


def check_options(wish: type, options: dict[str, Any]) -> None:
    """Refuse what a wish of this kind, a dataclass, has no field for."""
    known = [field.name for field in fields(wish)]
    for name in options:
        if name not in known:
            raise UsageError(f"there is no option {name!r}", hint=did_you_mean(name, known))
