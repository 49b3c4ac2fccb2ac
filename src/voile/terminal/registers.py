"""What the steward is shown of the register."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of
from voile.units import counted

if TYPE_CHECKING:
    from voile.register import DataSetAccount


def accounts_view(accounts: list[DataSetAccount], place: str) -> Any:
    """Every data set in a line."""
    from rich.markup import escape

    if not accounts:
        return f"nothing has left yet, says {escape(place)}"
    rows = [
        [
            escape(", ".join([one.data_set, *one.aliases])),
            f"{len(one.left):,}",
            one.left[-1].when[:10] if one.left else "",
            escape(one.summary),
            "" if one.limit is None else escape(one.limit.words),
        ]
        for one in accounts
    ]
    return table_of(["data set", "left", "last", "adds up to", "limit"], rows)


def account_view(account: DataSetAccount) -> Any:
    """One data set: what has left, in its order, and what it adds up to."""
    from rich.console import Group
    from rich.markup import escape

    rows = [
        [
            one.when.replace("T", " ")[:16],
            escape(one.title),
            escape(one.what_is.path),
            escape(one.promise),
            one.state,
        ]
        for one in account.left
    ]
    title = f"{account.data_set}: {counted(len(account.left), 'release')}"
    limit = "none" if account.limit is None else account.limit.words
    facts = [["adds up to", escape(account.summary)], ["limit", escape(limit)]]
    if account.aliases:
        facts.insert(0, ["also called", escape(", ".join(account.aliases))])
    return Group(
        table_of(["when (UTC)", "what", "where", "promise", "state"], rows, title=escape(title)),
        table_of(["", ""], facts, show_header=False),
    )
