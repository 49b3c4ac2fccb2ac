"""The exceptions of DB-API 2.0 (PEP 249), and which of them a refusal is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from voile.dbapi.sources import ChargeError
from voile.dbapi.statements import ReadOnlyError
from voile.errors import PromiseError, QueryError, ReleaseError, UsageError, VoileError
from voile.remote.connection import ServerError


class Warning(Exception):  # noqa: N818  (the standard's name)
    """Something to be known of an answer; these are listed, and never raised."""


class Error(Exception):
    """Any error of this module. `hint` says what would work instead."""

    hint = ""


class InterfaceError(Error):
    """The module was used in a wrong way: a cursor that is closed."""


class DatabaseError(Error):
    """Something that was asked cannot be done."""


class DataError(DatabaseError):
    """A value is out of range."""


class OperationalError(DatabaseError):
    """A release or server cannot be read, or a question would be charged and must not be."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The SQL is not a question that can be answered, or its parameters do not fit."""


class NotSupportedError(DatabaseError):
    """Something that only a database that can be written does."""


MEANT: tuple[tuple[type[VoileError], type[Error]], ...] = (
    (ReadOnlyError, NotSupportedError),
    (QueryError, ProgrammingError),
    (ChargeError, OperationalError),
    (PromiseError, OperationalError),
    (ServerError, OperationalError),
    (ReleaseError, OperationalError),
    (UsageError, ProgrammingError),
)


@contextmanager
def as_standard(otherwise: type[Error] | None = None) -> Iterator[None]:
    """Refusals as exceptions of the standard; all are `otherwise` where that is given."""
    try:
        yield
    except VoileError as error:
        kind = otherwise or next((b for a, b in MEANT if isinstance(error, a)), DatabaseError)
        raised = kind(str(error))
        raised.hint = error.hint
        raise raised from error
