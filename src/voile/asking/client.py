"""A server of noisy counts, asked from Python.

with voile.connect("http://127.0.0.1:8420", token) as server:
    print(server.ask("select count(*) from adult where sex = 'Female'"))
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voile.asking.connection import Address, Connections, ServerError
from voile.asking.reply import Cost, Reply, not_ours
from voile.errors import QueryError, UsageError
from voile.estimate import checked_confidence

__all__ = ["VARIABLE", "Cost", "Reply", "Server", "ServerError", "connect", "read_subset"]

VARIABLE = "VOILE_TOKEN"
"""Where a token is looked for that is not given."""

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
        address = Address.read(url, insecure=insecure)
        authority = None if ca is None else Path(ca)
        self._lines = Connections(address, token, ca=authority, timeout=timeout)

    @property
    def url(self) -> str:
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
        asked = {
            "sql": sql,
            "subset": read_subset(subset),
            "confidence": checked_confidence(confidence),
        }
        try:
            return self._lines.post("/query", asked | {"dry_run": dry_run})
        except QueryError as error:
            if error.message.startswith("there is no subset "):
                raise QueryError(error.message, hint=f"{error.hint}; a half is half:SEED") from None
            raise

    def close(self) -> None:
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


def read_subset(told: Subset) -> str | dict[str, str]:
    """Which rows are counted: all, a public half as half:SEED, or a declared subset's name."""
    if isinstance(told, Mapping):
        if set(told) != {"half"} or not isinstance(told["half"], str) or not told["half"]:
            raise wrong_subset(dict(told))
        return {"half": told["half"]}
    if not isinstance(told, str) or not told:
        raise wrong_subset(told)
    word, colon, seed = told.partition(":")
    if not colon or word != "half":
        return told
    if not seed:
        raise wrong_subset(told)
    return {"half": seed}


def wrong_subset(told: Any) -> UsageError:
    return UsageError(
        f"subset {told!r} is not known", hint="all, half:SEED, or the name of a declared subset"
    )
