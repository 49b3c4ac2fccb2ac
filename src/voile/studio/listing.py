"""Long lists: those that hold a text, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from voile.studio.pages import Form

A_PAGE = 60
"""Columns that are shown at once."""


@dataclass(frozen=True)
class Listing:
    """A page of those that were looked for."""

    items: Sequence[Any]
    find: str
    page: int
    pages: int
    found: int
    total: int

    def at(self, page: int) -> str:
        """The end of the address of another page."""
        return urlencode({"find": self.find, "page": page})


def listing(items: Sequence[Mapping[str, Any]], form: Form) -> Listing:
    """The page that a form asks for, of the items whose name, kind or role holds its text."""
    find = form.get("find")
    wanted = find.casefold()
    found = [
        item
        for item in items
        if wanted in str(item["name"]).casefold() or wanted in (item.get("role"), item.get("kind"))
    ]
    pages = max(1, -(-len(found) // A_PAGE))
    given = form.get("page", "1")
    page = min(max(int(given) if given.isascii() and given.isdigit() else 1, 1), pages)
    shown = found[(page - 1) * A_PAGE : page * A_PAGE]
    return Listing(shown, find, page, pages, len(found), len(items))
