"""A client of a server of noisy counts: questions, their costs and the replies."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voile.errors import QueryError, UsageError
from voile.estimate import Answer, Estimate, checked_confidence
from voile.records import Record
from voile.remote.connection import Connections, ServerAddress, ServerError, plain


@dataclass(frozen=True)
class Cost(Record):
    """What a question would cost, before it is asked."""

    json_keys = (
        "cost", "remaining", "new", "known", "affordable", "groups", "stderr", "notes",
    )  # fmt: skip

    cost: int
    """How many answers the server would have to give that it has not given yet."""
    remaining: int
    new: int
    known: int
    """How many of its totals were answered before, and are free."""
    stderr: Mapping[str, float | None] = field(default_factory=dict)
    """Of each column, where it does not depend on the answer."""
    groups: int = 1
    notes: tuple[str, ...] = ()

    @property
    def affordable(self) -> bool:
        """Whether the budget suffices."""
        return self.cost <= self.remaining

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Cost:
        """The cost that a server's JSON states."""
        try:
            cost, left, new, known, groups = (
                int(found[key]) for key in ("cost", "remaining", "new", "known", "groups")
            )
            stderr = {plain(name): real(value) for name, value in found["stderr"].items()}
            return cls(cost, left, new, known, stderr, groups, notes(found))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise not_ours("cost") from None


@dataclass(frozen=True)
class Reply(Record):
    """The answer to a question.

    `answer`, `stderr`, `low` and `high` are those of the only estimate, None if there are several;
    `rows` has one row for each group, in which an estimate is an object with the same four keys.
    """

    json_keys = (
        "answer", "stderr", "low", "high", "charged", "remaining", "rows", "columns=column_names",
        "confidence", "covers", "notes", "subset", "subset_rows", "numbers",
    )  # fmt: skip

    answer: float | None
    stderr: float | None
    low: float | None
    high: float | None
    charged: int
    """What this question took from the budget: nothing, if all of it had been answered before."""
    remaining: int
    rows: tuple[dict[str, Any], ...]
    columns: Mapping[str, bool]
    """The names of the columns, and which hold estimates."""
    confidence: float
    covers: str
    notes: tuple[str, ...]
    subset: Any
    subset_rows: int | None
    numbers: tuple[int, ...]
    """Which answers of the ledger these figures are made of."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in their order."""
        return list(self.columns)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Reply:
        """The reply that a server's JSON states."""
        try:
            rows = tuple(dict(row) for row in found["rows"])
            confidence = float(found["confidence"])
            held = found.get("subset_rows")
            return cls(
                answer=real(found.get("answer")), stderr=real(found.get("stderr")),
                low=real(found.get("low")), high=real(found.get("high")),
                charged=int(found["charged"]), remaining=int(found["remaining"]),
                rows=rows, columns=columns_of(found.get("columns"), rows),
                confidence=confidence, covers=plain(found.get("covers") or ""),
                notes=notes(found), subset=found.get("subset", "all"),
                subset_rows=None if held is None else int(held),
                numbers=tuple(int(n) for n in found.get("numbers") or ()),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            raise not_ours("reply") from None

    @property
    def estimates(self) -> Answer:
        """As the answer to a query of a release: for tables, data frames and files."""
        rows = tuple({plain(k): self._value(v) for k, v in row.items()} for row in self.rows)
        columns = {plain(name): estimates for name, estimates in self.columns.items()}
        return Answer(rows, self.confidence, self.covers, self.notes, columns)

    def _value(self, value: Any) -> Any:
        """A group's key, or an estimate whose interval is known at one confidence only."""
        if not isinstance(value, dict):
            return plain(value) if isinstance(value, str) else value
        ends = number_of(value, "low", -math.inf), number_of(value, "high", math.inf)

        def interval(confidence: float) -> tuple[float, float]:
            if confidence != self.confidence:
                raise UsageError(
                    f"the server was asked for intervals at {self.confidence:g}, "
                    f"not {confidence:g}",
                    hint="ask the same question with that confidence: it costs nothing",
                )
            return ends

        estimate, stderr = (number_of(value, key, math.nan) for key in ("estimate", "stderr"))
        return Estimate(estimate, stderr, self.confidence, self.covers, interval)

    def __str__(self) -> str:
        return f"{self.estimates}\ncharged {self.charged:,}, {self.remaining:,} left"

    def __rich__(self) -> Any:
        return self.estimates

    def _repr_html_(self) -> str:
        charge = f"Charged {self.charged:,}; {self.remaining:,} left."
        return f"{self.estimates._repr_html_()}<p>{charge}</p>"


def columns_of(stated: Any, rows: tuple[dict[str, Any], ...]) -> dict[str, bool]:
    """The columns' names, and which hold estimates, as the server states or as the rows show."""
    if isinstance(stated, dict):
        return {name: bool(estimates) for name, estimates in stated.items()}
    first = rows[0] if rows else {}
    return {str(name): isinstance(first.get(name), dict) for name in stated or first}


def notes(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The notes of a server's reply, safe to print."""
    return tuple(plain(note) for note in found.get("notes") or ())


def real(value: Any) -> float | None:
    """A number of a reply; None where the server says null."""
    return None if value is None else float(value)


def number_of(value: Mapping[str, Any], key: str, unknown: float) -> float:
    """A number of an estimate; `unknown` where JSON has null, for nan and infinities."""
    found = value.get(key)
    return unknown if found is None else float(found)


def not_ours(what: str) -> ServerError:
    """The error for a reply that has not the form of Voile's."""
    return ServerError(
        f"the server answered something that is no {what}", hint="is it of another version?"
    )


# ---------------------------------------------------------------------- client
# A server of noisy counts, asked from Python.
#
# with voile.connect("http://127.0.0.1:8420", token) as server:
#     print(server.ask("select count(*) from adult where sex = 'Female'"))


VARIABLE = "VOILE_TOKEN"
"""The environment variable that holds the token, where none is given."""

Subset = str | Mapping[str, str]


class Server:
    """A server and the token to ask it with; threads may share it."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        ca: str | Path | None = None,
        timeout: float = 30.0,
        insecure: bool = False,
    ) -> None:
        if not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
            raise UsageError(f"timeout {timeout!r} is not a number of seconds", hint="such as 30")
        address = ServerAddress.read(url, insecure=insecure)
        authority = None if ca is None else Path(ca)
        self._lines = Connections(address, token, ca=authority, timeout=timeout)

    @property
    def url(self) -> str:
        """The address that is asked."""
        return self._lines.address.url

    def about(self) -> dict[str, Any]:
        """What may be asked, how much, and what each person in the table is promised."""
        return dict(self._lines.get("/schema"))

    def budget(self) -> dict[str, Any]:
        """How many answers the token's owner had, and may still have."""
        return dict(self._lines.get("/budget"))

    def history(self) -> list[dict[str, Any]]:
        """The owner's own questions, as the server kept them."""
        found = self._lines.get("/history").get("history")
        if not isinstance(found, list):
            raise not_ours("history")
        return [dict(one) for one in found]

    def cost(self, sql: str, subset: Subset = "all") -> Cost:
        """What the question would take from the budget; asking this takes nothing."""
        return Cost.from_dict(self._question(sql, subset, 0.95, dry_run=True))

    def ask(self, sql: str, subset: Subset = "all", confidence: float = 0.95) -> Reply:
        """The noisy answer. What was answered before, to anybody, costs nothing."""
        return Reply.from_dict(self._question(sql, subset, confidence, dry_run=False))

    def _question(
        self, sql: str, subset: Subset, confidence: float, *, dry_run: bool
    ) -> Mapping[str, Any]:
        question = {
            "sql": sql,
            "subset": read_subset(subset),
            "confidence": checked_confidence(confidence),
        }
        try:
            return self._lines.post("/query", question | {"dry_run": dry_run})
        except QueryError as error:
            if error.message.startswith("there is no subset "):
                raise QueryError(error.message, hint=f"{error.hint}; a half is half:SEED") from None
            raise

    def close(self) -> None:
        """Close the connections; the server is not asked any more."""
        self._lines.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Server({self.url!r})"


def connect(
    url: str,
    token: str | None = None,
    *,
    ca: str | Path | None = None,
    timeout: float = 30.0,
    insecure: bool = False,
) -> Server:
    """A server to ask; the token is taken from the variable VOILE_TOKEN if none is given."""
    known = os.environ.get(VARIABLE, "").strip() if token is None else token
    return Server(url, known, ca=ca, timeout=timeout, insecure=insecure)


def read_subset(subset: Subset) -> str | dict[str, str]:
    """Which rows are counted: all, a public half as half:SEED, or a declared subset's name."""
    if isinstance(subset, Mapping):
        if set(subset) != {"half"} or not isinstance(subset["half"], str) or not subset["half"]:
            raise wrong_subset(dict(subset))
        return {"half": subset["half"]}
    if not isinstance(subset, str) or not subset:
        raise wrong_subset(subset)
    word, colon, seed = subset.partition(":")
    if not colon or word != "half":
        return subset
    if not seed:
        raise wrong_subset(subset)
    return {"half": seed}


def wrong_subset(subset: Any) -> UsageError:
    """The refusal of a subset that has no known form."""
    return UsageError(
        f"subset {subset!r} is not known", hint="all, half:SEED, or the name of a declared subset"
    )
