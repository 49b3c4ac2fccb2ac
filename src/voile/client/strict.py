"""Reading what came over a wire: JSON that says one thing only, and values of the right kind.

Everything wrong is a `UsageError` that says where. No error repeats a value that may be
somebody's answer: errors are written to logs and sent to strangers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

from voile.errors import UsageError

AS_THE_FORMAT_SAYS = "write it as docs/reference/wire-format.md says"
EXACT = 2**53
"""Whole numbers up to this one are the same in every language that reads JSON."""


def read_json(data: bytes, what: str, most_bytes: int) -> Any:
    """The JSON value that `data` holds: UTF-8, no key twice, no NaN or Infinity."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError(
            f"{what} is read from bytes, not {type(data).__name__}",
            hint="give the bytes as they came; text.encode() makes some",
        )
    if len(data) > most_bytes:
        raise UsageError(
            f"{what} has {len(data)} bytes; at most {most_bytes} are read", hint="send less at once"
        )
    try:
        return json.loads(
            bytes(data).decode("utf-8"),
            object_pairs_hook=without_repetition,
            parse_constant=refuse_constant,
        )
    except UsageError as error:
        raise UsageError(f"{what}: {error.message}", hint=error.hint) from None
    except RecursionError:
        raise UsageError(f"{what} is nested too deeply", hint=AS_THE_FORMAT_SAYS) from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not UTF-8 at byte {error.start}", hint="send JSON in UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{what} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            hint=AS_THE_FORMAT_SAYS,
        ) from None
    except ValueError:
        # Python refuses to read whole numbers of thousands of digits.
        raise UsageError(
            f"{what} holds a number that is too long to read", hint="17 digits say all there is"
        ) from None


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys all differ; of two equal ones, readers would choose differently."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UsageError("a key stands twice in one object", hint="write each key once")
    return made


def refuse_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which Python's reader would accept."""
    raise UsageError(f"{name} is not a JSON number", hint="JSON has finite numbers only")


def an_object(
    value: Any, where: str, required: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """An object with all the required keys and no unknown one."""
    if type(value) is not dict:
        raise UsageError(f"{where} is not a JSON object", hint=AS_THE_FORMAT_SAYS)
    for key in required:
        if key not in value:
            raise UsageError(f"{where} has no {key!r}", hint=f"required: {', '.join(required)}")
    for key in value:
        if key not in required and key not in optional:
            raise UsageError(
                f"{where}: unknown key {readable(key)}",
                hint=f"known: {', '.join([*required, *optional])}",
            )
    return value


def a_list(value: Any, where: str, at_most: int) -> list[Any]:
    """A list with one entry at least."""
    if type(value) is not list:
        raise UsageError(f"{where} is not a list", hint="write it in [brackets]")
    if not value:
        raise UsageError(f"{where} is empty", hint="give one entry at least")
    if len(value) > at_most:
        raise UsageError(
            f"{where} has {len(value)} entries; at most {at_most} are allowed", hint="give fewer"
        )
    return value


def a_text(value: Any, where: str, at_most: int) -> str:
    """Text that can be written as UTF-8 (no half of a surrogate pair)."""
    if type(value) is not str:
        raise UsageError(f"{where} is {readable(value)}, not text", hint="put it in quotes")
    if len(value) > at_most:
        raise UsageError(
            f"{where} has {len(value)} characters; at most {at_most} are allowed",
            hint="make it shorter",
        )
    if not is_unicode(value):
        raise UsageError(
            f"{where} holds half of a surrogate pair, which is no character",
            hint="write whole characters",
        )
    return value


def is_unicode(text: str) -> bool:
    """Whether text holds whole characters only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def a_flag(value: Any, where: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise UsageError(
            f"{where} is {readable(value)}, not true or false", hint="write it without quotes"
        )
    return value


def a_number(value: Any, where: str) -> float:
    """A finite number; JSON has one kind of number, so that 3 and 3.0 are the same."""
    if type(value) not in (int, float):
        raise UsageError(
            f"{where} is {readable(value)}, not a number", hint="write it without quotes"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UsageError(
            f"{where} is {readable(value)}, not a finite number", hint="at most 1.7e308"
        )
    return number


def a_whole(value: Any, where: str, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    number = a_number(value, where)
    if not number.is_integer() or not low <= number <= high:
        raise UsageError(
            f"{where} is {readable(value)}", hint=f"give a whole number from {low} to {high}"
        )
    return int(number)


def readable(value: Any) -> str:
    """A short spelling of a *public* value for an error."""
    if type(value) is int and abs(value) > EXACT:
        return "a whole number that is too large"
    shown = repr(value) if type(value) in (int, float, str, bool, type(None)) else "no plain value"
    return shown if len(shown) <= 60 else shown[:59] + "…"
