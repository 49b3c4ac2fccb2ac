"""Results as JSON: dataclasses, arrays, fractions and infinities as plain data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Set
from enum import Enum
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np


class Record:
    """A dataclass with `to_dict`: its JSON has one key for each of `json_keys`, in that order.

    An entry is the name of a field or property, or `key=path` where the key differs from the
    attribute or lies deeper: `"prior=promise.prior"`. Without entries, the keys are the fields.
    """

    json_keys: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        entries = self.json_keys or tuple(field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]
        found = {}
        for entry in entries:
            key, _, path = entry.partition("=")
            found[key] = plain(attrgetter(path or key)(self))
        return found


def plain(value: Any) -> Any:  # noqa: PLR0911  (a case for each kind of value)
    """The value as JSON has it; numbers that are not finite are null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating | Fraction):
        number = float(value)
        return number if math.isfinite(number) else None
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Set):
        return [plain(item) for item in sorted(value)]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form: {value!r}")
