"""One client's connection, from its first byte: TLS, who it is, and message after message."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from voile.errors import VoileError
from voile.wire import messages
from voile.wire.admission import MECHANISM, ScramError
from voile.wire.conversation import Conversation, FieldLike, WireOutcome
from voile.wire.messages import WireColumn, WireError, violation
from voile.wire.parameters import known_types
from voile.wire.refusals import as_wire_error
from voile.wire.settings import REPORTED
from voile.wire.statements import StatementKind, WireStatement, deallocated, statements_of
from voile.wire.values import encoder, parameter_value, wire_type

if TYPE_CHECKING:
    from voile.wire.server import WireServer

Result = TypeVar("Result")

ADMISSION_SECONDS = 10.0
"""From the first byte until a client is let in."""
MESSAGE_SECONDS = 30.0
"""For the rest of a message whose first byte came."""
IDLE_SECONDS = 8 * 3600.0
"""For the next message."""
SENDING_SECONDS = 120.0
"""For a client to take what it asked for."""
AT_ONCE = 500
"""Rows that are encoded before others have their turn."""
MOST_STATEMENTS, MOST_PORTALS = 500, 50
"""Prepared, of one connection."""
KEPT_TEXT = 4 * 2**20
"""Characters of all prepared statements of one connection."""


class Gone(Exception):  # noqa: N818  (no error: the client left)
    """The client left, or is sent away."""


@dataclass
class Prepared:
    """A statement that is kept, and what is known of it."""

    statement: WireStatement
    types: tuple[int, ...]
    fields: tuple[FieldLike, ...] | None = None
    """The columns as they were told to the client."""


@dataclass
class Portal:
    """A statement with values, and as much of its result as was not sent yet."""

    prepared: Prepared
    values: tuple[Any, ...]
    formats: tuple[int, ...]
    fields: tuple[FieldLike, ...] | None = None
    outcome: WireOutcome | None = None
    at: int = 0


class Line:
    """Bytes from and to a client, with a time for everything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def exactly(self, count: int, seconds: float) -> bytes:
        """So many bytes, in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.readexactly(count)
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            raise Gone from None

    async def message(self, most: int, first: float, rest: float) -> tuple[bytes, bytes]:
        """The kind and the body of the next message."""
        kind = await self.exactly(1, first)
        (size,) = struct.unpack("!i", await self.exactly(4, rest))
        if not 4 <= size <= most + 4:
            raise violation(f"a message announces {size:,} bytes; at most {most:,}")
        return kind, await self.exactly(size - 4, rest)

    def write(self, *parts: bytes) -> None:
        """Send soon."""
        self._writer.writelines(parts)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was sent."""
        try:
            async with asyncio.timeout(SENDING_SECONDS):
                await self._writer.drain()
        except (TimeoutError, OSError):
            self._writer.transport.abort()
            raise Gone from None

    async def close(self) -> None:
        """Send what is left, and close."""
        with suppress(OSError, TimeoutError, ssl.SSLError):
            async with asyncio.timeout(2):
                self._writer.close()
                await self._writer.wait_closed()
        self._writer.transport.abort()


@dataclass
class Client:
    """One connection that a server accepted."""

    server: WireServer
    line: Line
    address: str
    encrypted: bool
    process: int
    secret: int = field(default_factory=lambda: secrets.randbits(31))
    admitted: bool = False
    _cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    _running: bool = False
    _lagging: asyncio.Future[Any] | None = None
    """Work that was given up and goes on in its thread."""
    _statements: dict[str, Prepared] = field(default_factory=dict)
    _portals: dict[str, Portal] = field(default_factory=dict)
    _skipping: bool = False
    """After an error, until Sync."""

    def cancel(self) -> None:
        """Give up the statement that is running, if one is."""
        if self._running:
            self._cancelled.set()

    # ------------------------------------------------------------------ who it is

    async def serve(self, version: int, body: bytes) -> None:
        """Let the client in, or not, and answer until it leaves."""
        try:
            async with asyncio.timeout(ADMISSION_SECONDS):
                await self._admit(version, body)
        except WireError as error:
            await self._send_away(error)
        except TimeoutError:
            raise Gone from None
        self.admitted = True
        self._greet()
        try:
            await self._answer()
        finally:
            self.conversation.session.close()

    async def _send_away(self, error: WireError) -> NoReturn:
        error.fatal = True
        self.line.write(messages.error(error))
        await self.line.drain()
        raise Gone

    async def _admit(self, version: int, body: bytes) -> None:
        startup = messages.Startup.read(version, body)
        if version >> 16 != 3:
            raise WireError("0A000", f"version {version >> 16} of the protocol is not spoken here",
                            hint="use a client that speaks version 3")  # fmt: skip
        if not startup.parameters.get("user"):
            raise WireError("28000", "the client names no user", hint="any name will do")
        if "replication" in startup.parameters and startup.parameters["replication"] not in (
            "false", "off", "no", "0",
        ):  # fmt: skip
            raise WireError("0A000", "there is nothing to replicate", hint="ask with SELECT")
        if version != messages.PROTOCOL or startup.unknown:
            self.line.write(messages.negotiated(startup.unknown))
        self.server.check_encrypted(self)
        token = await self._authenticate()
        user = startup.parameters["user"]
        database = startup.parameters.get("database") or user
        self.conversation: Conversation = await self.server.conversation(
            user, database, token, self.process
        )
        try:
            for name, value in startup.settings:
                begin = partial(self.conversation.begin_with, name, value)
                await self.server.work(begin, self.address)
        except VoileError as error:
            self.conversation.session.close()
            raise as_wire_error(error) from error
        self.line.write(messages.AUTHENTICATED)

    async def _authenticate(self) -> str:
        """The token that the client has; empty where none is needed, or it stays unseen."""
        guard = self.server.guard
        if not guard.asks:
            return ""
        self.server.check_guesses(self.address)
        if guard.scram is not None:
            await self._prove()
            return ""
        self.line.write(messages.ASK_PASSWORD)
        token = messages.MessageReading(await self._password()).text()
        admitted = bool(token) and await self.server.work(
            partial(guard.admits, token), self.address
        )
        if not admitted:
            raise self.server.wrong_token(self.address)
        return token

    async def _password(self) -> bytes:
        await self.line.drain()
        kind, body = await self.line.message(
            messages.PASSWORD_BYTES, ADMISSION_SECONDS, ADMISSION_SECONDS
        )
        if kind != b"p":
            raise violation("a password was asked for, and something else came")
        return body

    async def _prove(self) -> None:
        """SCRAM: the client proves that it has a token."""
        scram = self.server.guard.scram
        assert scram is not None  # noqa: S101  (asked for by the caller)
        self.line.write(messages.sasl(10, MECHANISM + b"\0\0"))
        first = messages.MessageReading(await self._password())
        if first.text().encode() != MECHANISM:
            raise violation("the client knows no SCRAM-SHA-256")
        try:
            exchange = scram.begin(first.sized() or b"")
            self.line.write(messages.sasl(11, exchange.challenge))
            proof = exchange.finish(await self._password())
        except ScramError:
            raise self.server.wrong_token(self.address) from None
        self.line.write(messages.sasl(12, proof))

    def _greet(self) -> None:
        settings = dict(self.conversation.settings.items())
        settings["session_authorization"] = self.conversation.caller.user
        self.line.write(
            *(messages.parameter(REPORTED[name], settings[name]) for name in REPORTED),
            messages.key_data(self.process, self.secret),
            messages.ready("I"),
        )

    # ------------------------------------------------------------------ messages

    async def _answer(self) -> None:
        """Message after message."""
        while True:
            await self.line.drain()
            try:
                kind, body = await self.line.message(
                    messages.MESSAGE_BYTES, IDLE_SECONDS, MESSAGE_SECONDS
                )
                found = messages.read_message(kind, body)
            except WireError as error:
                if error.fatal:
                    await self._send_away(error)
                self._failed(error)  # a text that is not UTF-8: the next message can be read
                if kind == b"Q":
                    self._ready()
                else:
                    self._skipping = True
                continue
            if isinstance(found, messages.Terminate):
                return
            if self._skipping and not isinstance(found, messages.Sync | messages.Simple):
                continue
            await self._handle(found)

    async def _handle(self, found: messages.Message) -> None:
        match found:
            case messages.Simple():
                self._skipping = False
                await self._simple(found.sql)
            case messages.Sync():
                self._skipping = False
                self._portals.pop("", None)
                self._ready()
            case messages.Flush() | messages.Copying():
                pass
            case messages.FunctionCall():
                self._failed(WireError("0A000", "functions are not called so", hint="SELECT f(…)"))
                self._ready()
            case _:
                try:
                    await self._extended(found)
                except VoileError as error:
                    self._failed(as_wire_error(error))
                    self._skipping = True

    def _ready(self) -> None:
        if self.conversation.status == "I":
            self._portals.clear()
        self.line.write(messages.ready(self.conversation.status))

    def _failed(self, error: WireError) -> None:
        self.conversation.failed()
        self.line.write(messages.error(error))

    # ------------------------------------------------------------------ simple queries

    async def _simple(self, sql: str) -> None:
        """All statements of a text, up to the first that fails."""
        try:
            found = statements_of(sql)
            if not found:
                self.line.write(messages.EMPTY)
            for statement in found:
                outcome = await self._run(statement, ())
                self._say(outcome)
                if outcome.fields:
                    columns = described(outcome.fields, ())
                    self.line.write(messages.row_description(columns))
                    await self._send(outcome, columns, 0, outcome.count)
                self.line.write(messages.complete(outcome.tag))
        except VoileError as error:
            self._failed(as_wire_error(error))
        self._ready()

    def _say(self, outcome: WireOutcome) -> None:
        """What clients are told besides rows."""
        if self.conversation.settings.hears_notices:
            self.line.write(*map(messages.notice, outcome.notices))
        self.line.write(*(messages.parameter(name, value) for name, value in outcome.changed))

    async def _send(
        self, outcome: WireOutcome, columns: Sequence[WireColumn], start: int, stop: int
    ) -> None:
        """Some of the rows, a few at a time."""
        encoders = [encoder(one.oid, one.format) for one in columns]
        for at in range(start, stop, AT_ONCE):
            for row in outcome.slice(at, min(stop, at + AT_ONCE)):
                self.line.write(messages.data_row(encoded(encoders, row, columns)))
            await self.line.drain()
            await asyncio.sleep(0)

    # ------------------------------------------------------------------ extended queries

    async def _extended(self, found: messages.Message) -> None:
        match found:
            case messages.Parse():
                await self._parse(found)
            case messages.Bind():
                await self._bind(found)
            case messages.Describe():
                await self._describe(found)
            case messages.Execute():
                await self._execute(found)
            case messages.Close():
                if found.kind == "S":
                    self._statements.pop(found.name, None)
                else:
                    self._portals.pop(found.name, None)
                    self.conversation.forget_cursor(found.name)
                self.line.write(messages.CLOSED)

    async def _parse(self, found: messages.Parse) -> None:
        if found.name and found.name in self._statements:
            raise WireError("42P05", f"there is a statement {found.name[:60]!r} already",
                            hint="close it first")  # fmt: skip
        kept = sum(len(one.statement.sql) for one in self._statements.values())
        if len(self._statements) >= MOST_STATEMENTS or kept + len(found.sql) > KEPT_TEXT:
            raise WireError("53400", f"{len(self._statements)} statements are prepared",
                            hint="close some: DEALLOCATE ALL")  # fmt: skip
        split = statements_of(found.sql)
        if len(split) > 1:
            raise WireError("42601", "several statements cannot be prepared as one",
                            hint="send one at a time")  # fmt: skip
        statement = split[0] if split else WireStatement(StatementKind.EMPTY, "")
        tables = self.conversation.session.tables
        types = await self._work(partial(known_types, statement, found.types, tables))
        self._statements[found.name] = Prepared(statement, types)
        self.line.write(messages.PARSED)

    def _deallocate(self, statement: WireStatement) -> None:
        """Forget what DEALLOCATE or DISCARD ALL says: drivers that keep many begin again so."""
        name = deallocated(statement)
        if name == "all":
            self._statements.clear()
        elif name:
            self._prepared(name)  # or there is none of that name
            del self._statements[name]

    def _prepared(self, name: str) -> Prepared:
        if name not in self._statements:
            raise WireError("26000", f"there is no statement {name[:60]!r}", hint="prepare it")
        return self._statements[name]

    async def _bind(self, found: messages.Bind) -> None:
        prepared = self._prepared(found.statement)
        if len(found.values) != len(prepared.types):
            raise WireError(
                "08P01", f"{len(found.values)} values for {len(prepared.types)} parameters",
                hint="give one value for each parameter",
            )  # fmt: skip
        if found.portal and (found.portal in self._portals or len(self._portals) >= MOST_PORTALS):
            raise WireError("42P03", f"the portal {found.portal[:60]!r} cannot be opened",
                            hint="close others first")  # fmt: skip
        forms = found.formats if len(found.formats) > 1 else found.formats * len(found.values)
        forms = forms or (0,) * len(found.values)
        values = tuple(
            parameter_value(oid, form, value)
            for oid, form, value in zip(prepared.types, forms, found.values, strict=True)
        )
        self._portals[found.portal] = Portal(prepared, values, found.results, prepared.fields)
        self.line.write(messages.BOUND)

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise WireError("34000", f"there is no portal {name[:60]!r}", hint="bind one first")
        return self._portals[name]

    async def _describe(self, found: messages.Describe) -> None:
        if found.kind == "S":
            prepared = self._prepared(found.name)
            self.conversation.check(prepared.statement)
            if prepared.fields is None:
                prepared.fields = await self._fields(prepared, sample_values(prepared.types))
            self.line.write(messages.parameter_description(prepared.types))
            self._describe_rows(prepared.fields, ())
            return
        if (fields := self.conversation.cursor_fields(found.name)) is not None:
            self._describe_rows(fields, ())
            return
        portal = self._portal(found.name)
        if portal.fields is None:
            self.conversation.check(portal.prepared.statement)
            portal.fields = await self._fields(portal.prepared, portal.values)
        self._describe_rows(portal.fields, portal.formats)

    async def _fields(self, prepared: Prepared, values: tuple[Any, ...]) -> tuple[FieldLike, ...]:
        return await self._work(partial(self.conversation.fields, prepared.statement, values))

    def _describe_rows(self, fields: tuple[FieldLike, ...], formats: tuple[int, ...]) -> None:
        columns = described(fields, formats)
        self.line.write(messages.row_description(columns) if columns else messages.NO_DATA)

    async def _execute(self, found: messages.Execute) -> None:
        portal = self._portal(found.portal)
        statement = portal.prepared.statement
        if statement.kind is StatementKind.EMPTY:
            self.line.write(messages.EMPTY)
            return
        if portal.outcome is None:
            portal.outcome = await self._run(statement, portal.values)
            self._say(portal.outcome)
        outcome = portal.outcome
        fields = portal.fields if portal.fields is not None else outcome.fields
        if len(fields) != len(outcome.fields):
            raise WireError("0A000", "the result has other columns than were announced",
                            hint="prepare the statement again")  # fmt: skip
        start, count = portal.at, outcome.count if outcome.fields else 0
        portal.at = min(count, start + found.most) if found.most else count
        await self._send(outcome, described(fields, portal.formats), start, portal.at)
        if portal.at < count:
            self.line.write(messages.SUSPENDED)
            return
        tag = outcome.tag
        if tag.startswith("SELECT ") and start:
            tag = f"SELECT {count - start}"
        self.line.write(messages.complete(tag))

    # ------------------------------------------------------------------ work

    async def _run(self, statement: WireStatement, values: tuple[Any, ...]) -> WireOutcome:
        """What a statement gave; those that were prepared are this connection's own."""
        outcome = await self._work(partial(self.conversation.run, statement, values))
        self._deallocate(statement)
        return outcome

    async def _work(self, work: Callable[[], Result]) -> Result:
        """What work in a thread gives; given up when it is cancelled or takes too long.

        A thread cannot be ended. What was given up goes on, and the client's next statement waits
        for it: nobody has more than one at work.
        """
        self._running, seconds = True, self.server.seconds_for(self.conversation.settings)
        try:
            async with asyncio.timeout(seconds):
                if self._lagging is not None:
                    await self._or_cancelled(asyncio.wait([self._lagging]))
                    self._lagging = None
                future = asyncio.ensure_future(self.server.work(work, str(self.process)))
                self._lagging = future
                await self._or_cancelled(asyncio.wait([future]))
                self._lagging = None
                return future.result()
        except TimeoutError:
            self.conversation.session.interrupt()
            raise WireError("57014", f"the statement took longer than {seconds:g} seconds",
                            hint="ask for less at once") from None  # fmt: skip
        finally:
            self._running = False
            self._cancelled.clear()

    async def _or_cancelled(self, wait: Awaitable[Any]) -> None:
        """Wait for something, unless the client cancels it."""
        waiting = asyncio.ensure_future(wait)
        cancelled = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait([waiting, cancelled], return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                self.conversation.session.interrupt()
                raise WireError("57014", "the statement was cancelled by its client")
        finally:
            waiting.cancel()
            cancelled.cancel()


# ---------------------------------------------------------------------- rows


def described(fields: Sequence[FieldLike], formats: Sequence[int]) -> list[WireColumn]:
    """The columns as clients know them, in the formats that they asked for."""
    if len(formats) not in (0, 1, len(fields)):
        raise WireError("08P01", f"{len(formats)} formats for {len(fields)} columns",
                        hint="give one for each")  # fmt: skip
    forms = list(formats) if len(formats) == len(fields) else [*(formats or [0])] * len(fields)
    columns = []
    for one, form in zip(fields, forms, strict=True):
        found = wire_type(one.type)
        columns.append(WireColumn(one.name, found.oid, found.size, form))
    return columns


def encoded(
    encoders: Sequence[Callable[[Any], bytes]], row: Sequence[Any], columns: Sequence[WireColumn]
) -> Iterator[bytes | None]:
    """The values of a row as they are sent."""
    for place, value in enumerate(row):
        try:
            yield None if value is None else encoders[place](value)
        except (TypeError, ValueError, OverflowError, AttributeError, struct.error):
            raise WireError(
                "22003", f"a value of {columns[place].name!r} is not of the announced type",
                hint="CAST the column to text",
            ) from None  # fmt: skip


def sample_values(types: Sequence[int]) -> tuple[Any, ...]:
    """Values of these types, to learn what columns a statement will have."""
    return tuple(SAMPLES.get(oid, "") for oid in types)


SAMPLES: dict[int, Any] = {
    16: True, 20: 1, 21: 1, 23: 1, 26: 1, 700: 1.0, 701: 1.0, 1700: 1,
}  # fmt: skip
