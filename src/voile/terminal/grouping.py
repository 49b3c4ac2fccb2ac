"""What a steward is shown of a table with coarser values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.kinds.classes.generalizing import Generalized


def generalized_view(done: Generalized, output: str) -> Any:
    from rich.markup import escape

    rows = [
        ["table", escape(output)],
        ["rows", f"{done.rows_in:,} in, {done.table.num_rows:,} out"],
        ["classes", f"{done.classes:,}"],
        *[["promise", f"{escape(name)}: the worst class has {value:.4g}"]
          for name, value in done.requirements.items()],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    return table_of(["", ""], rows, show_header=False)
