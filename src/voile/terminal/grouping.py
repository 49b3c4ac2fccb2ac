"""What a steward is shown of classes of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.kinds.classes.generalizing import Generalized
    from voile.kinds.classes.grouping import Grouped


def grouped_view(done: Grouped) -> Any:
    from rich.markup import escape

    manifest = done.release.manifest
    p = manifest.parameters
    kept = zip(manifest.guarantee.requirements, manifest.requirements, strict=True)
    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{done.rows_in:,} in, {manifest.rows:,} out"],
        ["classes", f"{p.classes:,} ({manifest.method}, {p.recode}), of "
                    f"{manifest.rows / p.classes:,.1f} rows on average"],
        *[["promise", f"{r.spelling}{of(entry.attribute)}: the worst class has "
                      f"{entry.measured:.4g}"] for entry, r in kept],
        *([["levels", ", ".join(f"{escape(n)} {level}" for n, level in p.levels.items())]]
          if p.levels else []),
        *[["disclosed", escape(d.what)] for d in manifest.disclosed],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return table_of(["", ""], rows, show_header=False)


def of(attribute: str | None) -> str:
    from rich.markup import escape

    return "" if attribute is None else f" of {escape(attribute)}"


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
