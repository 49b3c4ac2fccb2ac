"""Settings of a connection, as PostgreSQL's clients read and change them."""

from __future__ import annotations

from collections.abc import Iterator

from voile.wire.messages import WireError

VERSION = "15.0"
"""Of PostgreSQL: what clients believe this to be able to."""
DEFAULTS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "extra_float_digits": "1",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": VERSION,
    "server_version_num": "150000",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
}
REPORTED = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
"""What clients are told of by themselves, and how it is spelled then."""
FIXED = frozenset(
    ["server_version", "server_version_num", "server_encoding", "is_superuser", "lc_collate",
     "integer_datetimes", "max_identifier_length", "max_index_keys", "in_hot_standby", "lc_ctype"]
)  # fmt: skip
WORDS = {
    "transaction isolation level": "transaction_isolation",
    "time zone": "timezone",
    "session authorization": "session_authorization",
    "names": "client_encoding",
}
MOST, LONGEST = 200, 1000
"""Settings of one connection, and characters of one."""


class Settings:
    """What a client set, over the defaults."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def items(self) -> list[tuple[str, str]]:
        """All of them."""
        return list((DEFAULTS | self._values).items())

    def __iter__(self) -> Iterator[str]:
        return iter(DEFAULTS | self._values)

    def get(self, name: str) -> str | None:
        """What a setting is; None where there is none."""
        name = WORDS.get(name, name)
        return self._values.get(name, DEFAULTS.get(name))

    def set(self, name: str, value: str | None) -> None:
        """Change one, or give it its default again; how values are sent stays as it is."""
        if name == "all":
            self._values.clear()
            return
        if value is None:
            self._values.pop(name, None)
            return
        value = checked(name, value)
        if name not in self._values and len(self._values) >= MOST:
            raise WireError("53400", f"there are {MOST} settings", hint="RESET ALL")
        self._values[name] = value

    @property
    def hears_notices(self) -> bool:
        """Whether the client wants to be told what should be known besides."""
        level = (self.get("client_min_messages") or "").lower()
        return level not in ("warning", "error", "fatal", "panic")

    @property
    def milliseconds(self) -> int:
        """How long a statement may take, as the client wants it; 0 for as long as it is let."""
        return read_milliseconds(self.get("statement_timeout") or "0")


def checked(name: str, value: str) -> str:
    """The value as it is kept; a WireError where it is impossible here."""
    if len(value) > LONGEST or len(name) > LONGEST:
        raise WireError("22023", f"the setting {name[:60]!r} is too long", hint="set less")
    if name in FIXED:
        raise WireError("55P02", f"{name} cannot be changed", hint=f"SHOW {name} says what it is")
    if name == "client_encoding":
        plain = value.strip("'\"").upper().replace("-", "").replace("_", "")
        if plain not in ("UTF8", "UNICODE"):
            raise WireError(
                "22023", f"texts are UTF-8 here, not {value[:40]!r}",
                hint="SET client_encoding = 'UTF8'",
            )  # fmt: skip
        return "UTF8"
    if name == "datestyle":
        if "ISO" not in value.upper():
            raise WireError("22023", f"days are written 2026-01-31 here, not as {value[:40]!r}",
                            hint="SET datestyle = 'ISO'")  # fmt: skip
        return DEFAULTS[name]
    if name == "standard_conforming_strings" and value.lower() not in ("on", "true", "1", "yes"):
        raise WireError("22023", "backslashes in texts mean themselves here",
                        hint="SET standard_conforming_strings = on")  # fmt: skip
    if name == "statement_timeout":
        read_milliseconds(value)
    return value


UNITS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "": 1}


def read_milliseconds(value: str) -> int:
    """A time, as 5000, 5s or 1min."""
    digits = value.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = value.strip()[len(digits) :].strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and unit in UNITS):
        raise WireError("22023", f"{value[:40]!r} is no time", hint="such as 5000, 5s or 1min")
    return int(digits) * UNITS[unit]
