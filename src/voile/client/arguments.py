"""What a caller gives, checked before anything is drawn or sent.

No error repeats an argument that may be a row: errors travel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from voile.client.spec import Spec, exceeds
from voile.errors import PromiseError, UsageError, did_you_mean


def as_spec(given: Spec | Mapping[str, Any] | str | Path) -> Spec:
    """A spec, or the one that a document or a file holds."""
    if isinstance(given, Mapping):
        return Spec.from_dict(given)
    if isinstance(given, str | Path):
        return Spec.open(given)
    check_spec(given)
    return given


def check_spec(spec: object) -> None:
    """Refuse what is not a Spec."""
    if not isinstance(spec, Spec):
        raise UsageError(
            f"the spec is of type {kind(spec)}, not Spec",
            hint="read one with Spec.open(path) or fetch_spec(url)",
        )


def check_limit(spec: Spec, at_most: float | None, public: Collection[str]) -> None:
    """Refuse a spec that reveals more about a row than the caller allows.

    A column that is sent as it is has no ε: the caller must have named it as `public`.
    """
    check_spec(spec)
    limit = math.inf if at_most is None else a_real(at_most, "at_most")
    if not limit >= 0:
        raise UsageError(f"at_most is {limit}", hint="give the largest ε that you allow")
    check_public(spec, public)
    found = spec.epsilon()
    if not exceeds(found, limit):
        return
    if math.isinf(found):
        raise PromiseError(
            f"no ε holds for this survey, and you allow {limit:g}: nothing is perturbed",
            hint="do not answer it, or leave at_most out if all you send is public",
        )
    raise PromiseError(
        f"a row of this survey has ε = {found:.6g}, more than the {limit:g} you allow",
        hint="do not answer it, or raise at_most",
    )


def check_public(spec: Spec, public: object) -> None:
    """Every column that is sent as it is has been named; one with a single value need not be."""
    if isinstance(public, str | bytes | Mapping) or not isinstance(public, Collection):
        raise UsageError(
            f"public is of type {kind(public)}, not a list of columns' names",
            hint="such as public=['region']",
        )
    known = [column.name for column in spec.columns]
    for name in public:
        if name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else "give columns' names"
            raise UsageError(f"public names {name!r}, which is no column of the spec", hint=hint)
    sent = set(spec.public)
    public_columns = [
        column.name for column in spec.columns if column.size > 1 and column.name in sent
    ]
    missing = [name for name in public_columns if name not in public]
    if missing:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise PromiseError(
            f"column {missing[0]!r} is sent as it is (retention 1){more}",
            hint=f"say public={public_columns!r} if that is what you want",
        )


def check_rows(rows: object) -> None:
    """A list of rows, and not one row alone."""
    if isinstance(rows, Mapping):
        raise UsageError("the rows are one mapping, not a list of them", hint="write [row]")
    if isinstance(rows, str | bytes | bytearray) or not isinstance(rows, Sequence):
        raise UsageError(
            f"the rows are of type {kind(rows)}, not a list",
            hint="give a list of rows, each a mapping from columns' names to values",
        )
    if not rows:
        raise UsageError("there are no rows to send", hint="give one row at least")


def check_sending(url: object, insecure: object, timeout: object, attempts: object) -> None:
    """Of the right types; whether the address is one is checked where it is taken apart."""
    if not isinstance(url, str):
        raise UsageError(
            f"the address is of type {kind(url)}, not text", hint="such as https://survey.example"
        )
    if not isinstance(insecure, bool):
        raise UsageError(f"insecure is of type {kind(insecure)}", hint="give True or False")
    if not 0 < a_real(timeout, "timeout") < math.inf:
        raise UsageError(f"timeout is {timeout}", hint="give a number of seconds above 0")
    a_count(attempts, "attempts")


def a_real(value: object, name: str) -> float:
    """A number of any kind that Python or NumPy has; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} is of type {kind(value)}, not a number", hint="such as 2.5")
    return float(value)


def a_count(value: object, name: str) -> int:
    """A whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(
            f"{name} is not a whole number above 0", hint="give one, without quotes or a point"
        )
    return value


def kind(value: object) -> str:
    """The name of a value's type, for errors."""
    return type(value).__name__
