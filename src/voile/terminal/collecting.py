"""What people see of a collector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import key_values, table_of
from voile.terminal.perturbing import promise_line
from voile.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from voile.collect.releasing import CollectedRelease
    from voile.collect.serving import CollectorStatus


def listening_data(found: CollectorStatus, store: Path) -> dict[str, Any]:
    """`url` is what a server's line has, too; `listening` is its older name here."""
    return {
        "url": found.url, "listening": found.url, "store": str(store), "rows": found.rows,
        "spec": found.spec,
    }  # fmt: skip


def listening_view(found: CollectorStatus, store: Path) -> Any:
    from rich.markup import escape

    return key_values(
        {
            "listening": f"{found.url}/v1/rows",
            "store": f"{escape(str(store))}, {counted(found.rows, 'row')} so far",
            "spec": f"{found.spec[:16]}… at {found.url}/v1/spec",
            "to stop": "Ctrl-C; nothing that was acknowledged is lost",
        }
    )


def collected_view(done: CollectedRelease) -> Any:
    from rich.markup import escape

    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{done.rows:,}, as they were perturbed by those who sent them"],
        ["from", escape(str(done.store))],
        ["spec", f"{done.spec[:16]}…"],
        ["promise", promise_line(done.release.manifest)],
        *[["note", escape(note)] for note in done.notes],
    ]
    return table_of(["", ""], rows, show_header=False)
