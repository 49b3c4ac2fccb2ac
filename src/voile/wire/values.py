"""Values as PostgreSQL's clients know them: types by number, as texts and as bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from voile.wire.messages import WireError

EPOCH = date(2000, 1, 1)
START = datetime(2000, 1, 1)  # of timestamps without a zone
Encoder = Callable[[Any], bytes]


@dataclass(frozen=True)
class WireType:
    """A type: its number, how many bytes its values have (-1: any number), and its name."""

    oid: int
    size: int
    name: str
    array: int = 0
    """The number of the type of lists of it."""


BOOL = WireType(16, 1, "bool", 1000)
BYTEA = WireType(17, -1, "bytea", 1001)
INT8 = WireType(20, 8, "int8", 1016)
INT2 = WireType(21, 2, "int2", 1005)
INT4 = WireType(23, 4, "int4", 1007)
TEXT = WireType(25, -1, "text", 1009)
OID = WireType(26, 4, "oid", 1028)
FLOAT4 = WireType(700, 4, "float4", 1021)
FLOAT8 = WireType(701, 8, "float8", 1022)
DATE = WireType(1082, 4, "date", 1182)
TIME = WireType(1083, 8, "time", 1183)
TIMESTAMP = WireType(1114, 8, "timestamp", 1115)
TIMESTAMPTZ = WireType(1184, 8, "timestamptz", 1185)
INTERVAL = WireType(1186, 16, "interval", 1187)
NUMERIC = WireType(1700, -1, "numeric", 1231)
TYPES = (
    BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, FLOAT4, FLOAT8, DATE, TIME, TIMESTAMP, TIMESTAMPTZ,
    INTERVAL, NUMERIC,
)  # fmt: skip
BY_OID = {one.oid: one for one in TYPES}
TEXTS = {0, 18, 19, 25, 705, 1042, 1043}
"""Types whose values are texts: also those that clients leave open."""
ARRAYS = {one.array: one for one in TYPES}


def wire_type(found: pa.DataType) -> WireType:
    """The type in which values of an Arrow type are sent."""
    if pa.types.is_dictionary(found):
        return wire_type(found.value_type)
    for test, one in SENT:
        if test(found):
            return one
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        inner = wire_type(found.value_type)
        return WireType(inner.array or TEXT.array, -1, f"_{inner.name}")
    return TEXT


SENT: tuple[tuple[Callable[[pa.DataType], bool], WireType], ...] = (
    (pa.types.is_boolean, BOOL),
    (pa.types.is_int64, INT8),
    (pa.types.is_int32, INT4),
    (pa.types.is_uint32, OID),
    (lambda one: pa.types.is_int8(one) or pa.types.is_int16(one) or pa.types.is_uint8(one), INT2),
    (pa.types.is_uint16, INT4),
    (pa.types.is_uint64, NUMERIC),
    (pa.types.is_float64, FLOAT8),
    (pa.types.is_floating, FLOAT4),
    (pa.types.is_decimal, NUMERIC),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (lambda one: pa.types.is_timestamp(one) and one.tz is not None, TIMESTAMPTZ),
    (pa.types.is_timestamp, TIMESTAMP),
    (lambda one: pa.types.is_duration(one) or pa.types.is_interval(one), INTERVAL),
    (lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one), BYTEA),
)


# ---------------------------------------------------------------------- as texts


def as_text(value: Any) -> str:
    """A value as PostgreSQL writes it."""
    return next((write(value) for kind, write in WRITERS if isinstance(value, kind)), str(value))


def float_text(value: float) -> str:
    """A number; whole ones without a point, as PostgreSQL shows them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else repr(float(value))


def element(value: Any) -> str:
    """A value within a list."""
    if value is None:
        return "NULL"
    found = as_text(value)
    if isinstance(value, list | tuple):
        return found
    plain = found and found.upper() != "NULL" and not set(found) & set('{}",\\ \t\n\r\v\f')
    escaped = found.replace("\\", "\\\\").replace('"', '\\"')
    return found if plain else f'"{escaped}"'


def interval_text(value: timedelta) -> str:
    """Days and seconds."""
    return f"{value.days} days {value.seconds}.{value.microseconds:06d} seconds"


WRITERS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (bool, lambda value: "t" if value else "f"),
    (float, float_text),
    (datetime, lambda value: value.isoformat(" ")),
    (time, lambda value: value.isoformat()),
    (bytes, lambda value: f"\\x{value.hex()}"),
    ((list, tuple), lambda value: f"{{{','.join(map(element, value))}}}"),
    (timedelta, interval_text),
)


# ---------------------------------------------------------------------- as bytes


def numeric_bytes(value: Any) -> bytes:
    """A decimal number in digits to the base 10,000."""
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xF000 if number < 0 else 0xD000
        return struct.pack("!hhHh", 0, 0, sign, 0)
    whole, _, part = f"{abs(number):f}".partition(".")
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    part_digits = part.ljust(-(-len(part) // 4) * 4, "0")
    digits = [int((whole + part_digits)[at : at + 4]) for at in
              range(0, len(whole) + len(part_digits), 4)]  # fmt: skip
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits.pop(0)
        weight -= 1
    while digits and digits[-1] == 0:
        digits.pop()
    sign = 0x4000 if number < 0 else 0
    head = (len(digits), weight if digits else 0, sign, len(part))
    return struct.pack(f"!hhHh{len(digits)}h", *head, *digits)


def timestamp_bytes(value: datetime) -> bytes:
    """Microseconds since 2000."""
    if value.tzinfo is not None:
        value = (value - (value.utcoffset() or timedelta())).replace(tzinfo=None)
    return struct.pack("!q", (value - START) // timedelta(microseconds=1))


def time_bytes(value: time) -> bytes:
    """Microseconds since midnight."""
    minutes = value.hour * 60 + value.minute
    return struct.pack("!q", (minutes * 60 + value.second) * 1_000_000 + value.microsecond)


def interval_bytes(value: timedelta) -> bytes:
    """Microseconds, days, months."""
    return struct.pack("!qii", value.seconds * 1_000_000 + value.microseconds, value.days, 0)


BYTES: dict[int, Encoder] = {
    BOOL.oid: lambda value: b"\1" if value else b"\0",
    BYTEA.oid: bytes,
    INT2.oid: lambda value: struct.pack("!h", int(value)),
    INT4.oid: lambda value: struct.pack("!i", int(value)),
    INT8.oid: lambda value: struct.pack("!q", int(value)),
    OID.oid: lambda value: struct.pack("!I", int(value)),
    FLOAT4.oid: lambda value: struct.pack("!f", value),
    FLOAT8.oid: lambda value: struct.pack("!d", value),
    DATE.oid: lambda value: struct.pack("!i", (value - EPOCH).days),
    TIME.oid: time_bytes,
    TIMESTAMP.oid: timestamp_bytes,
    TIMESTAMPTZ.oid: timestamp_bytes,
    INTERVAL.oid: interval_bytes,
    NUMERIC.oid: numeric_bytes,
}


def array_bytes(inner: WireType, values: Any) -> bytes:
    """A list: one dimension, counted from 1."""
    encode = encoder(inner.oid, 1)
    parts = [None if one is None else encode(one) for one in values]
    head = struct.pack("!iiI", int(bool(parts)), int(None in parts), inner.oid)
    if not parts:
        return head
    body = b"".join(
        struct.pack("!i", -1) if one is None else struct.pack("!i", len(one)) + one for one in parts
    )
    return head + struct.pack("!ii", len(parts), 1) + body


def encoder(oid: int, form: int) -> Encoder:
    """How values of a type are sent: as texts (0) or bytes (1)."""
    if form == 1:
        if oid in ARRAYS:
            return lambda value: array_bytes(ARRAYS[oid], value)
        if oid in BYTES:
            return BYTES[oid]
    if oid in (DATE.oid, TIMESTAMP.oid):
        return day_text if oid == DATE.oid else lambda value: as_text(value).encode()
    return lambda value: as_text(value).encode(errors="replace")


def day_text(value: Any) -> bytes:
    """A day, also of a value that has a time."""
    day = value.date() if isinstance(value, datetime) else value
    return str(day).encode()


# ---------------------------------------------------------------------- parameters

UNPACKED = {
    BOOL.oid: "?", INT2.oid: "h", INT4.oid: "i", INT8.oid: "q", OID.oid: "I", FLOAT4.oid: "f",
    FLOAT8.oid: "d", DATE.oid: "i", TIMESTAMP.oid: "q", TIMESTAMPTZ.oid: "q", TIME.oid: "q",
}  # fmt: skip


def parameter_value(oid: int, form: int, data: bytes | None) -> Any:
    """The value of a parameter that a client sent, of a type that it named or that was guessed."""
    if data is None:
        return None
    try:
        return from_bytes(oid, data) if form == 1 else from_text(oid, data.decode())
    except (ValueError, OverflowError, InvalidOperation, struct.error):
        name = BY_OID[oid].name if oid in BY_OID else oid
        raise WireError(
            "22P02" if form == 0 else "22P03", f"a parameter is no value of type {name}",
            hint="give the value in the form of PostgreSQL",
        ) from None  # fmt: skip


def from_text(oid: int, words: str) -> Any:
    """A value from its text."""
    if "\0" in words:
        raise ValueError
    if oid in ARRAYS:
        return list_from_text(ARRAYS[oid], words)
    return READ[oid](words) if oid in READ else words


def truth(words: str) -> bool:
    """True or false, in one of PostgreSQL's words."""
    word = words.strip().lower()
    if word in ("t", "true", "1", "on", "yes", "y"):
        return True
    if word in ("f", "false", "0", "off", "no", "n"):
        return False
    raise ValueError


READ: dict[int, Callable[[str], Any]] = {
    BOOL.oid: truth, INT2.oid: int, INT4.oid: int, INT8.oid: int, OID.oid: int,
    FLOAT4.oid: float, FLOAT8.oid: float, NUMERIC.oid: Decimal, DATE.oid: date.fromisoformat,
    TIMESTAMP.oid: datetime.fromisoformat, TIMESTAMPTZ.oid: datetime.fromisoformat,
}  # fmt: skip


def list_from_text(inner: WireType, words: str) -> list[Any]:
    """A list of plain values: {1,2}."""
    if not (words.startswith("{") and words.endswith("}")) or "{" in words[1:]:
        raise ValueError
    import csv  # noqa: PLC0415  (few send lists)

    parts = next(csv.reader([words[1:-1]], doublequote=False, escapechar="\\"), [])
    return [None if one == "NULL" else from_text(inner.oid, one) for one in parts]


def from_bytes(oid: int, data: bytes) -> Any:
    """A value from its bytes."""
    if oid in TEXTS:
        return from_text(TEXT.oid, data.decode())
    if oid in ARRAYS:
        return list_from_bytes(data)
    if oid == NUMERIC.oid:
        return numeric_from_bytes(data)
    if oid not in UNPACKED:
        raise WireError(
            "0A000", f"parameters of type {oid} are not read as bytes", hint="send it as a text"
        )
    (found,) = struct.unpack(f"!{UNPACKED[oid]}", data)
    return COUNTED[oid](found) if oid in COUNTED else found


COUNTED: dict[int, Callable[[int], Any]] = {
    DATE.oid: lambda days: EPOCH + timedelta(days=days),
    TIMESTAMP.oid: lambda micros: START + timedelta(microseconds=micros),
    TIMESTAMPTZ.oid: lambda micros: START + timedelta(microseconds=micros),
    TIME.oid: lambda micros: (START + timedelta(microseconds=micros)).time(),
}
"""What numbers stand for that count from the year 2000, or midnight."""


def numeric_from_bytes(data: bytes) -> Decimal:
    """A decimal number from digits to the base 10,000."""
    count, weight, sign, scale = struct.unpack("!hhHh", data[:8])
    if sign == 0xC000:
        return Decimal("NaN")
    if sign not in (0, 0x4000) or count < 0 or abs(weight) > 200 or not 0 <= scale <= 800:
        raise ValueError
    digits = struct.unpack(f"!{count}h", data[8:])
    if any(not 0 <= one < 10_000 for one in digits):
        raise ValueError
    found = sum((Decimal(one).scaleb(4 * (weight - at)) for at, one in enumerate(digits)),
                Decimal(0))  # fmt: skip
    return -found if sign else found


def list_from_bytes(data: bytes) -> list[Any]:
    """A list of one dimension."""
    dimensions, _, inner = struct.unpack("!iiI", data[:12])
    if dimensions == 0:
        return []
    count, _ = struct.unpack("!ii", data[12:20])
    if dimensions != 1 or not 0 <= count <= 10_000:
        raise ValueError
    at, found = 20, []
    for _ in range(count):
        (size,) = struct.unpack("!i", data[at : at + 4])
        at += 4
        if size < -1 or at + max(size, 0) > len(data):
            raise ValueError
        found.append(None if size == -1 else from_bytes(inner, data[at : at + size]))
        at += max(size, 0)
    return found
