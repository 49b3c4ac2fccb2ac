"""The settings of one session: SET, RESET and SHOW."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from voile.dbapi.results import Field, ResultSet, nothing, rows_result
from voile.errors import QueryError, UsageError, did_you_mean
from voile.estimate import checked_confidence

ASSIGNED = re.compile(
    r"(?:(?P<span>SESSION|LOCAL|GLOBAL)\s+)?(?P<name>\"?[\w.]+\"?)\s*(?:=|\s+TO\b|:=)\s*(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)
TAKEN = re.compile(
    r"(?:(?:SESSION|LOCAL)\s+)?(?:TRANSACTION|CHARACTERISTICS|SESSION\s+AUTHORIZATION|ROLE|"
    r"SESSION\s+CHARACTERISTICS)\b.*",
    re.IGNORECASE | re.DOTALL,
)
"""What a session takes and forgets: it only reads."""
ZONE = re.compile(
    r"(?:(?:SESSION|LOCAL)\s+)?TIME\s+ZONE\s+(?P<value>.*)", re.IGNORECASE | re.DOTALL
)
NAMES = re.compile(r"NAMES\s+(?P<value>.*)", re.IGNORECASE | re.DOTALL)
RESETTABLE = re.compile(r"[\w.]+(?: [\w.]+)*")
ON, OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")
INTERVALS, CHARGE, CONFIDENCE = "voile.intervals", "voile.charge", "voile.confidence"
OWN = (INTERVALS, CHARGE, CONFIDENCE)
KNOWN = {
    "server_version": "16.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "standard_conforming_strings": "on",
    "integer_datetimes": "on",
    "is_superuser": "off",
    "session_authorization": "voile",
    "application_name": "",
    "search_path": "public",
    "transaction_isolation": "repeatable read",
    "default_transaction_isolation": "repeatable read",
    "transaction_read_only": "on",
    "default_transaction_read_only": "on",
    "statement_timeout": "0",
    "extra_float_digits": "1",
    "max_identifier_length": "1000",
    "lc_collate": "C",
    "bytea_output": "hex",
}
"""What clients ask for before all else."""
MOST, LONGEST = 100, 1000
SPELLED = {"time zone": "timezone", "transaction isolation level": "transaction_isolation",
           "session authorization": "session_authorization"}  # fmt: skip


class SessionSettings:
    """Named texts; those that begin with voile. mean something."""

    def __init__(self, *, intervals: bool, charge: bool, confidence: float) -> None:
        checked_confidence(confidence)
        self._first = dict(KNOWN) | {
            INTERVALS: "on" if intervals else "off",
            CHARGE: "on" if charge else "off",
            CONFIDENCE: f"{confidence:.12g}",
        }
        self.values = dict(self._first)
        self._begun: dict[str, str] | None = None
        """What the values were when the transaction began, if there is one."""

    def begin(self) -> None:
        """A transaction begins."""
        if self._begun is None:
            self._begun = dict(self.values)

    def end(self, *, undo: bool) -> None:
        """It ends; where it is undone, so is what was set in it."""
        if undo and self._begun is not None:
            self.values = self._begun
        self._begun = None

    @property
    def intervals(self) -> bool:
        """Whether every estimate has columns for its error."""
        return self.values[INTERVALS] == "on"

    @property
    def charge(self) -> bool:
        """Whether questions may be charged to a budget."""
        return self.values[CHARGE] == "on"

    @property
    def confidence(self) -> float:
        """At which intervals hold."""
        return float(self.values[CONFIDENCE])

    def set(self, text: str) -> ResultSet:
        """SET name = value, and the other forms that it has."""
        if TAKEN.fullmatch(text):
            return nothing("SET")
        if found := ZONE.fullmatch(text):
            self._keep("timezone", unquoted(found["value"]))
        elif found := NAMES.fullmatch(text):
            self._keep("client_encoding", unquoted(found["value"]))
        elif found := ASSIGNED.fullmatch(text):
            name = found["name"].strip('"').lower()
            check_span(name, found["span"])
            self._keep(name, unquoted(found["value"]))
        else:
            raise QueryError(
                f"SET {text[:60]} is not understood", hint="write SET voile.intervals = on"
            )
        return nothing("SET")

    def _keep(self, name: str, value: str) -> None:
        if value.upper() == "DEFAULT":
            self.reset(name)
        elif name.startswith("voile."):
            self.values[name] = own_value(name, value)
        elif len(value) > LONGEST or (name not in self.values and len(self.values) > MOST):
            raise QueryError(f"the setting {name!r} is too much to keep", hint="leave it out")
        else:
            self.values[name] = value

    def reset(self, name: str) -> ResultSet:
        """RESET name, or ALL."""
        name = " ".join(name.split()).strip('"').lower()
        if not RESETTABLE.fullmatch(name):  # silence would leave the caller's setting as it is
            raise QueryError(
                f"RESET {name[:60]} is not understood", hint="write RESET ALL, or name one setting"
            )
        if name == "all":
            self.values = dict(self._first)
            if self._begun is not None:  # and no ROLLBACK brings back what was on before
                self._begun = dict(self._first)
        elif name in self._first:
            self.values[name] = self._first[name]
        elif name.startswith("voile."):
            raise unknown(name)
        else:
            self.values.pop(name, None)
        return nothing("RESET")

    def show(self, name: str) -> ResultSet:
        """SHOW name, or ALL."""
        name = " ".join(name.split()).strip('"').lower()
        if name == "all":
            fields = [Field(n, pa.string()) for n in ("name", "setting", "description")]
            return rows_result(fields, list(self._described()), tag="SHOW")
        name = SPELLED.get(name, name)
        if name not in self.values:
            raise unknown(name)
        spelled = "TimeZone" if name == "timezone" else name
        return rows_result([Field(spelled, pa.string())], [(self.values[name],)], tag="SHOW")

    def _described(self) -> Iterator[tuple[str, str, str]]:
        for name, value in sorted(self.values.items()):
            yield name, value, DESCRIBED.get(name, "")


DESCRIBED = {
    INTERVALS: "columns NAME_stderr, NAME_low and NAME_high beside each estimate",
    CHARGE: "whether questions may be charged to a server's budget",
    CONFIDENCE: "at which the intervals hold",
}


def check_span(name: str, span: str | None) -> None:
    """Refuse a setting of Voile's for one transaction, or for other sessions."""
    if name.startswith("voile.") and (span or "").upper() in ("LOCAL", "GLOBAL"):
        raise QueryError(
            f"{name[:60]} holds for a session: SET {str(span).upper()} is refused",
            hint=f"write SET {name[:60]} = …, and RESET {name[:60]} when you are done",
        )


def unquoted(text: str) -> str:
    """A value without its quotes."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def own_value(name: str, value: str) -> str:
    """A value of a setting of Voile's, checked."""
    if name not in OWN:
        raise unknown(name)
    if name == CONFIDENCE:
        try:
            return f"{checked_confidence(float(value)):.12g}"
        except (ValueError, UsageError):
            raise QueryError(
                f"{name} is {value[:60]!r}, not a chance between 0 and 1",
                hint=f"write SET {name} = 0.95",
            ) from None
    if value.lower() not in (*ON, *OFF):
        raise QueryError(f"{name} is {value[:60]!r}", hint=f"write SET {name} = on, or off")
    return "on" if value.lower() in ON else "off"


def unknown(name: str) -> QueryError:
    """The error for a setting that there is not."""
    return QueryError(
        f"there is no setting {name[:60]!r}", hint=did_you_mean(name, [*OWN, *sorted(KNOWN)])
    )
