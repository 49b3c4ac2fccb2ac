"""Tables before they are published, and releases when they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.inspection import Inspection
    from voile.kinds.views.steps import Publication
from voile.terminal import table_of
from voile.units import counted


def inspection_view(found: Inspection) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.inspection import bars, example
    from voile.terminal.narrow import is_narrow

    rows = [
        [
            escape(p.name) + (" [red]identifier?[/red]" if p.looks_like_identifier else ""),
            p.kind or f"[red]{escape(p.sql_type)}[/red]",
            values_text(p.distinct, size),
            f"{p.nulls:,}" if p.nulls else "",
            escape(str(example(p)) if example(p) is not None else ""),
            bars(p.histogram),
        ]
        for p, size in zip(found.profiles, found.sizes, strict=True)
    ]
    headings = ["attribute", "kind", "values", "NULLs", "most frequent", ""]
    shown = len(headings) - is_narrow()  # names before pictures, where there is no room for both
    table = table_of(headings[:shown], [row[:shown] for row in rows], title=escape(found.name))
    for column in table.columns:
        column.overflow = "fold"
        column.no_wrap = column.header in ("kind", "")  # a picture cannot go on in the next line
    return Group(table, *facts(found))


def values_text(distinct: int, size: int | None) -> str:
    """How many values occur, and how many the domain has where that differs."""
    if size is None or size == distinct:
        return f"{distinct:,}"
    return f"{distinct:,} of {size:,}" if size > distinct else f"{distinct:,} in {size:,} bins"


def facts(found: Inspection) -> list[str]:
    from rich.markup import escape

    from voile.kinds.domain import columns_option
    from voile.schema.schema import large

    data = found.to_dict()
    feasible = data["feasible"]
    lines = [
        f"n = {counted(found.rows, 'row')}, {found.duplicates:,} of them repeat another row"
        + (f"; {found.complete_rows:,} are without NULLs" * (found.complete_rows < found.rows)),
        f"m = {large(found.domain_size)} possible tuples, n/m = {data['density']:.3g}",
    ]
    if found.identifiers:
        lines.append(
            f"[yellow]leave out {escape(', '.join(found.identifiers))}[/yellow]: nearly every row "
            f"has its own value. Then m = {large(found.publishable_size)} and "
            f"{counted(found.publishable_duplicates, 'row', 'repeat')} another: "
            f"--columns {escape(columns_option(found.publishable))}"
        )
    if "boundary" in feasible:
        lines.append(found.boundary.in_words())
    if feasible["possible"]:
        lines.append(
            f"feasible: --prior-factor 10 --posterior 0.2 (d = {feasible['prior']:.3g}) takes "
            f"about {feasible['expected_rows']:,.0f} rows; standard error of a count at most "
            f"{feasible['largest_stderr']:,.0f}; any prior factor below "
            f"{feasible['largest_prior_factor']:.4g}"
        )
    else:
        lines.append(
            f"[red]not feasible[/red]: {escape(feasible['why'])} ({escape(feasible['hint'])})"
        )
    return lines


def publication_view(done: Publication) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.schema.schema import large

    manifest = done.release.manifest
    g, p = manifest.guarantee, manifest.parameters
    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{done.rows_in:,} in, {manifest.rows:,} out"
                 + (f" ({done.rows_dropped:,} left out)" if done.rows_dropped else "")],
        ["domain", f"{large(int(manifest.domain_size))} tuples"],
        ["promise", f"beliefs up to {g.prior:.3g} stay below {g.posterior:.3g} "
                    f"({g.adversary} adversaries, {p.form})"],
        ["parameters", f"retention {p.retention:.6g}, noise {p.noise:.6g}"],
        *([["series", series_line(done.series)]] if done.series else []),
        *[["disclosed", escape(d.what)] for d in manifest.disclosed],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return Group(table_of(["", ""], rows, show_header=False))


def series_line(series: dict[str, Any]) -> str:
    told = "the identical view again, nothing spent" if series["identical"] else "a new view"
    return f"{series['name']}: view {series['view']} of at most {series['views']}, {told}"


def refinement_view(data: dict[str, Any]) -> Any:
    """What was fitted, and how the size of the model was chosen."""
    from rich.console import Group

    rows = [
        [str(t["components"]), f"{t['held_out']:.5f}", f"{t['gain']:+.5f} ± {t['gain_error']:.5f}"]
        for t in data["trials"]
    ]
    told = f"{data['components']} components, fitted in {data['seconds']:.0f} s"
    told += f", kept in {data['path']}" if data["path"] else ""
    return Group(table_of(["components", "held-out log density", "gain"], rows), told)
