"""Messages of PostgreSQL's protocol: read from bytes of anybody's, and written.

Reading checks every length against what is there: nothing is taken on the word of a client.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from voile.errors import VoileError

PROTOCOL = 196_608
"""Version 3.0."""
CANCEL, TLS, GSS = 80_877_102, 80_877_103, 80_877_104
STARTUP_BYTES = 4096
"""Of the first packet, which anybody may send; drivers send about a hundred."""
PASSWORD_BYTES = 2048
MESSAGE_BYTES = 2**20
"""Of one message of a client that is let in."""
MOST_PARAMETERS = 1000
"""Of one statement."""


class WireError(VoileError):
    """A refusal with the SQLSTATE that clients know it by; a fatal one ends the connection."""

    def __init__(
        self,
        state: str,
        message: str,
        *,
        hint: str = "",
        position: int | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.state, self.position, self.fatal = state, position, fatal


def violation(message: str) -> WireError:
    """The end of a connection whose bytes are not of this protocol."""
    return WireError(
        "08P01", message, hint="is the client one of PostgreSQL, version 7.4 or later?", fatal=True
    )


# ---------------------------------------------------------------------- reading


class MessageReading:
    """The body of one message, from its beginning to its end."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, count: int) -> bytes:
        """So many bytes, which must be there."""
        if count < 0 or count > len(self._body) - self._at:
            raise violation("a message ends before what it announces")
        found = self._body[self._at : self._at + count]
        self._at += count
        return found

    def number(self, kind: str) -> int:
        """A number in the order of bytes of networks: h, i, H or I."""
        found: int = struct.unpack(f"!{kind}", self.take(struct.calcsize(kind)))[0]
        return found

    def count(self, most: int, what: str) -> int:
        """How many things follow."""
        found = self.number("h")
        if not 0 <= found <= most:
            raise violation(f"a message announces {found:,} {what}; at most {most:,}")
        return found

    def text(self) -> str:
        """A text up to its end at a zero byte, in UTF-8."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise violation("a text in a message has no end")
        found = self.take(end - self._at)
        self._at += 1
        return decoded(found)

    def sized(self) -> bytes | None:
        """Bytes after their number; None for NULL."""
        size = self.number("i")
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        """Refuse what stands after the end."""
        if self._at != len(self._body):
            raise violation("a message is longer than what it says")


def decoded(data: bytes) -> str:
    """A text of a client's."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise WireError(
            "22021", "a text is not UTF-8", hint="set client_encoding to UTF8"
        ) from None


@dataclass(frozen=True)
class Startup:
    """What a client says of itself first."""

    version: int
    parameters: Mapping[str, str]

    @classmethod
    def read(cls, version: int, body: bytes) -> Startup:
        """The parameters after the version; each once."""
        reading = MessageReading(body)
        found: dict[str, str] = {}
        while name := reading.text():
            if name in found or len(found) >= 64:
                raise violation("the first message repeats itself")
            found[name] = reading.text()
        reading.end()
        return cls(version, found)

    @property
    def unknown(self) -> list[str]:
        """Options of the protocol that are not of version 3.0."""
        return [name for name in self.parameters if name.startswith("_pq_.")]

    @property
    def settings(self) -> list[tuple[str, str]]:
        """What the client sets as it comes, by itself and on its command line."""
        apart = ("user", "database", "options", "replication")
        named = [
            (name.lower(), value)
            for name, value in self.parameters.items()
            if name not in apart and "_pq_." not in name
        ]
        return named + options_of(self.parameters.get("options", ""))


def options_of(text: str) -> list[tuple[str, str]]:
    """Settings of a client's command line: -c name=value or --name=value."""
    found = []
    words = text.replace("\\ ", "\0").split()
    for word in (one.replace("\0", " ") for one in words):
        name, equals, value = word.removeprefix("-c").removeprefix("--").partition("=")
        if equals and name:
            found.append((name.lower(), value))
    return found


@dataclass(frozen=True)
class Simple:
    """Statements to run, as one text."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """A statement to keep under a name."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """A portal: a statement with the values of its parameters."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Named:
    """A message about a statement (S) or a portal (P): Describe or Close."""

    kind: str
    name: str


@dataclass(frozen=True)
class Describe(Named):
    """What has it?"""


@dataclass(frozen=True)
class Close(Named):
    """Forget it."""


@dataclass(frozen=True)
class Execute:
    """The next rows of a portal: so many at most, or all if 0."""

    portal: str
    most: int


@dataclass(frozen=True)
class Sync:
    """The end of a series of messages."""


@dataclass(frozen=True)
class Flush:
    """Send what there is."""


@dataclass(frozen=True)
class Terminate:
    """The client leaves."""


@dataclass(frozen=True)
class Copying:
    """Data of a COPY that was refused: passed over, as PostgreSQL does."""


@dataclass(frozen=True)
class FunctionCall:
    """The protocol's old way to call a function."""


Message = (
    Simple | Parse | Bind | Describe | Close | Execute | Sync | Flush | Terminate | Copying
    | FunctionCall
)  # fmt: skip


Reader = Callable[[MessageReading], Message]


def read_message(kind: bytes, body: bytes) -> Message:
    """A message of a client that is let in."""
    reading = MessageReading(body)
    match kind:
        case b"F":
            return FunctionCall()
        case b"d" | b"c" | b"f":
            return Copying()
        case _ if kind in READERS:
            found = READERS[kind](reading)
            reading.end()
            return found
    raise violation(f"there is no message {kind!r}")


def _read_parse(reading: MessageReading) -> Parse:
    name, sql = reading.text(), reading.text()
    count = reading.count(MOST_PARAMETERS, "parameters")
    return Parse(name, sql, tuple(reading.number("I") for _ in range(count)))


def _read_bind(reading: MessageReading) -> Bind:
    portal, statement = reading.text(), reading.text()
    formats = _formats(reading)
    values = tuple(reading.sized() for _ in range(reading.count(MOST_PARAMETERS, "parameters")))
    if len(formats) not in (0, 1, len(values)):
        raise violation(f"{len(formats)} formats for {len(values)} parameters")
    return Bind(portal, statement, formats, values, _formats(reading))


def _formats(reading: MessageReading) -> tuple[int, ...]:
    found = tuple(reading.number("h") for _ in range(reading.count(2**15 - 1, "formats")))
    if wrong := set(found) - {0, 1}:
        raise violation(f"there is no format {min(wrong)}")
    return found


def _read_named(kind: type[Describe] | type[Close]) -> Reader:
    def read(reading: MessageReading) -> Describe | Close:
        what = reading.take(1)
        if what not in (b"S", b"P"):
            raise violation(f"{what!r} is neither a statement nor a portal")
        return kind(what.decode(), reading.text())

    return read


def _read_execute(reading: MessageReading) -> Execute:
    portal, most = reading.text(), reading.number("i")
    return Execute(portal, max(0, most))


READERS: dict[bytes, Reader] = {
    b"Q": lambda reading: Simple(reading.text()),
    b"P": _read_parse,
    b"B": _read_bind,
    b"D": _read_named(Describe),
    b"C": _read_named(Close),
    b"E": _read_execute,
    b"S": lambda _: Sync(),
    b"H": lambda _: Flush(),
    b"X": lambda _: Terminate(),
}


# ---------------------------------------------------------------------- writing


def message(kind: bytes, *parts: bytes) -> bytes:
    """A message of the server's."""
    body = b"".join(parts)
    return kind + struct.pack("!i", len(body) + 4) + body


def text(words: str) -> bytes:
    """A text as messages hold it: a zero byte would end it."""
    return words.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace") + b"\0"


AUTHENTICATED = message(b"R", struct.pack("!i", 0))
ASK_PASSWORD = message(b"R", struct.pack("!i", 3))
PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY, SUSPENDED = message(b"n"), message(b"I"), message(b"s")


def sasl(step: int, data: bytes) -> bytes:
    """A step of SASL: 10 names the mechanisms, 11 goes on, 12 ends."""
    return message(b"R", struct.pack("!i", step), data)


def parameter(name: str, value: str) -> bytes:
    """What a setting is."""
    return message(b"S", text(name), text(value))


def key_data(process: int, secret: int) -> bytes:
    """With what a client may cancel its statements."""
    return message(b"K", struct.pack("!iI", process, secret))


def negotiated(unknown: Sequence[str]) -> bytes:
    """Version 3.0, and without these options."""
    return message(b"v", struct.pack("!ii", 0, len(unknown)), *map(text, unknown))


def ready(status: str) -> bytes:
    """The next message may come; I: no transaction, T: in one, E: in one that failed."""
    return message(b"Z", status.encode())


def complete(tag: str) -> bytes:
    """A statement was run."""
    return message(b"C", text(tag))


@dataclass(frozen=True)
class WireColumn:
    """A column of a result, as clients know it."""

    name: str
    oid: int
    size: int
    format: int = 0
    """0 for texts, 1 for bytes."""


def row_description(columns: Sequence[WireColumn]) -> bytes:
    """The columns of the rows that follow."""
    parts = [struct.pack("!h", len(columns))]
    for one in columns:
        parts += [
            text(one.name),
            struct.pack("!ihIhih", 0, 0, one.oid, one.size, -1, one.format),
        ]
    return message(b"T", *parts)


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", struct.pack(f"!h{len(types)}I", len(types), *types))


def data_row(values: Iterable[bytes | None]) -> bytes:
    """One row."""
    parts, count = [], 0
    for value in values:
        count += 1
        parts.append(NULL if value is None else struct.pack("!i", len(value)) + value)
    return message(b"D", struct.pack("!h", count), *parts)


NULL = struct.pack("!i", -1)


def error(refusal: WireError) -> bytes:
    """An error, where it is in the SQL, and what to do."""
    severity = "FATAL" if refusal.fatal else "ERROR"
    place = {} if refusal.position is None else {"P": str(refusal.position + 1)}
    return message(b"E", _fields(severity, refusal.state, refusal.message, refusal.hint, place))


def notice(words: str) -> bytes:
    """What a person should know, besides the rows."""
    return message(b"N", _fields("NOTICE", "00000", words, "", {}))


def _fields(severity: str, state: str, words: str, hint: str, more: Mapping[str, str]) -> bytes:
    said = {"S": severity, "V": severity, "C": state, "M": words or "refused"}
    said |= {"H": hint} if hint else {}
    said |= more
    return b"".join(key.encode() + text(value) for key, value in said.items()) + b"\0"
