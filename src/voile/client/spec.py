"""The spec: what a survey publishes so that anyone can perturb a row for it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from voile.client.column import Column
from voile.client.promise import Promise, check_promise, column_epsilon, row_epsilon
from voile.client.reading import read_column
from voile.client.strict import a_list, a_number, a_text, a_whole, an_object, read_json
from voile.errors import UsageError

FORMAT = "voile-perturbation"
VERSION = 1
MOST_BYTES = 2**25
MOST_COLUMNS = 1000


@dataclass(frozen=True)
class Spec:
    """Columns, how they are perturbed, and the promise; identified by the bytes it came as.

    `joint` is None, or the retention of one coin for the whole row (FRAPP).
    """

    name: str
    columns: tuple[Column, ...] = field(compare=False)
    joint: float | None = field(compare=False)
    promise: Promise | None = field(compare=False)
    raw: bytes = field(repr=False)

    @classmethod
    def open(cls, path: str | Path) -> Spec:
        """Read a spec from a file."""
        if not isinstance(path, str | Path):
            raise UsageError(
                f"the path is of type {type(path).__name__}, not text or a Path",
                hint="give the name of a file; Spec.from_dict and Spec.from_bytes read the rest",
            )
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            raise UsageError(
                f"there is no spec {str(path)!r}",
                hint="`voile spec CODEBOOK --retention P -o FILE` writes one",
            ) from None
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or "it is no path"
            raise UsageError(f"{path}: {words}", hint="name a file that can be read") from None
        return cls.from_bytes(data, where=str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Spec:
        """A spec from plain data, which is written as JSON once; these bytes are its identity."""
        try:
            text = json.dumps(
                document, ensure_ascii=False, allow_nan=False, separators=(",", ":")
            ).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"the spec cannot be written as JSON: {error}",
                hint="give a dict of texts, finite numbers, lists and dicts",
            ) from None
        return cls.from_bytes(text)

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str = "the spec") -> Spec:
        """Read a spec, exactly as it was published."""
        document = an_object(
            read_json(data, where, MOST_BYTES),
            where,
            required=("format", "version", "columns"),
            optional=("name", "joint", "promise"),
        )
        check_format(document, where, FORMAT, VERSION)
        joint = read_joint(document.get("joint"), where)
        columns = tuple(
            read_column(entry, f"{where}, column {number}", joint=joint is not None)
            for number, entry in enumerate(
                a_list(document["columns"], f"{where}: 'columns'", MOST_COLUMNS)
            )
        )
        check_names(columns, where)
        promise = read_promise(document.get("promise"), where)
        if promise is not None:
            check_promise(promise, columns, joint, where)
        name = a_text(document.get("name", ""), f"{where}: 'name'", 1000)
        return cls(name, columns, joint, promise, bytes(data))

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data."""
        document: dict[str, Any] = json.loads(self.raw)
        return document

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def public(self) -> tuple[str, ...]:
        """Names of the columns that are sent as they are."""
        if self.joint is not None:
            return tuple(column.name for column in self.columns) if self.joint == 1 else ()
        return tuple(column.name for column in self.columns if column.retention == 1)

    def epsilon(self) -> float:
        """Local ε of a row: of all its columns together but those that are sent as they are.

        Rounded up; infinite where no column is perturbed.
        """
        return self._epsilon

    @cached_property
    def _epsilon(self) -> float:
        return row_epsilon(self.columns, self.joint)

    def column_epsilons(self) -> dict[str, float]:
        """Local ε of each column; infinite where it is sent as it is."""
        return {
            column.name: column_epsilon(column, self.columns, self.joint) for column in self.columns
        }


def check_format(document: dict[str, Any], where: str, wanted: str, newest: int) -> None:
    """Refuse another kind of document, and one of a newer version."""
    if document["format"] != wanted:
        raise UsageError(
            f"{where} is not of the format {wanted!r}", hint=f"write {wanted!r} as its 'format'"
        )
    version = a_whole(document["version"], f"{where}: 'version'", 1, 2**31)
    if version > newest:
        raise UsageError(
            f"{where} is of version {version}; this Voile reads up to {newest}",
            hint="install a newer Voile",
        )


def check_names(columns: tuple[Column, ...], where: str) -> None:
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.name.casefold(), column.name)
        if other is not column.name:
            raise UsageError(
                f"{where}: the columns {other!r} and {column.name!r} differ in case at most",
                hint="give them different names",
            )


def read_joint(entry: Any, where: str) -> float | None:
    if entry is None:
        return None
    an_object(entry, f"{where}: 'joint'", required=("retention",))
    retention = a_number(entry["retention"], f"{where}: the joint retention")
    if not 0 <= retention <= 1:
        raise UsageError(
            f"{where}: the joint retention is {retention:g}", hint="give a number from 0 to 1"
        )
    return retention


def read_promise(entry: Any, where: str) -> Promise | None:
    if entry is None:
        return None
    an_object(entry, f"{where}: 'promise'", required=(), optional=("epsilon", "columns"))
    columns = entry.get("columns", {})
    if type(columns) is not dict:
        raise UsageError(
            f"{where}: the promise's 'columns' is not a JSON object",
            hint="write {} with the columns' names and their ε",
        )
    epsilon = entry.get("epsilon")
    return Promise(
        None if epsilon is None else read_epsilon(epsilon, f"{where}: the promised epsilon"),
        {
            name: read_epsilon(value, f"{where}: the promised epsilon of column {name!r}")
            for name, value in columns.items()
        },
    )


def read_epsilon(value: Any, where: str) -> float:
    epsilon = a_number(value, where)
    if not 0 <= epsilon < math.inf:
        raise UsageError(f"{where} is {epsilon:g}", hint="give a number that is not negative")
    return epsilon
