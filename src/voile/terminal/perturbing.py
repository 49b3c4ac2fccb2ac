"""What people see of rows that were perturbed one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.evaluate.exposure import Exposure
    from voile.kinds.perturbed.combining import Combination
    from voile.kinds.perturbed.manifest import LocalManifest
    from voile.kinds.perturbed.perturbing import Perturbation

MOST_COLUMNS = 30


def perturbation_view(done: Perturbation) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of

    manifest = done.release.manifest
    rows = [
        ["release", escape(str(done.release.path))],
        ["rows", f"{manifest.rows:,}"
                 + (f" ({done.rows_dropped:,} left out)" if done.rows_dropped else "")],
        ["promise", promise_line(manifest)],
        *[["disclosed", escape(d.what)] for d in manifest.disclosed],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return Group(table_of(["", ""], rows, show_header=False), columns_view(manifest))


def promise_line(manifest: LocalManifest) -> str:
    epsilon = manifest.guarantee.epsilon
    if epsilon is None:
        return "no local ε: see voile describe"
    what = "the perturbed columns of a row" if manifest.mechanism.tells_columns else "a row"
    return f"local ε = {epsilon:.4g} for {what}"


def columns_view(manifest: LocalManifest) -> Any:
    from rich.markup import escape

    from voile.terminal import table_of

    parts = manifest.parameters.columns
    if not parts:
        return f"whole rows are kept with chance {manifest.parameters.joint:g}"
    shown = [
        [
            escape(name),
            kept_text(part.retention),
            "" if part.retention == 1 else part.replace,
            epsilon_text(manifest.guarantee.columns[name], public=part.retention == 1),
        ]
        for name, part in list(parts.items())[:MOST_COLUMNS]
    ]
    return table_of(["column", "kept", "replaced by", "local ε"], shown)


def kept_text(retention: float) -> str:
    return "public" if retention == 1 else f"{retention:.12g}"


def epsilon_text(epsilon: float | None, *, public: bool) -> str:
    if public:
        return ""
    return "none" if epsilon is None else f"{epsilon:.3g}"


def spec_view(data: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of

    head = [
        ["spec", escape(data["spec"])],
        ["digest", data["digest"]],
        ["promise", f"local ε = {data['epsilon']:.4g} for a row"],
        *([["whole rows", f"kept with chance {data['joint']:.12g}"]] if data["joint"] else []),
    ]
    if data["joint"]:
        return table_of(["", ""], head, show_header=False)
    columns = [
        [escape(name), kept_text(entry["retention"]),
         epsilon_text(entry["epsilon"], public=entry["retention"] == 1)]
        for name, entry in list(data["columns"].items())[:MOST_COLUMNS]
    ]  # fmt: skip
    return Group(
        table_of(["", ""], head, show_header=False),
        table_of(["column", "kept", "local ε"], columns),
    )


def combination_view(done: Combination) -> Any:
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of

    manifest = done.release.manifest
    how = f"joined by {done.joined_by}" if done.joined_by else "stacked"
    rows = [
        ["release", escape(str(done.release.path))],
        ["parts", f"{len(done.rows_in)}, {escape(how)}"],
        ["rows", f"{' + '.join(f'{n:,}' for n in done.rows_in)} in, {manifest.rows:,} out"],
        ["promise", promise_line(manifest)],
        *[["note", escape(note)] for note in done.notes],
    ]
    return Group(table_of(["", ""], rows, show_header=False), columns_view(manifest))


def exposure_view(found: Exposure) -> Any:
    """What seeing a cell or a value tells, from the release alone."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of
    from voile.terminal.narrow import whole_numbers
    from voile.terminal.planning import set_row

    judged = any(one.exact_retention is not None for one in found.sets)
    headings = ["columns", "largest\ns", "median\ns", "cell", "before", "after"]
    headings += ["largest\nretention"] if judged else []
    sets = [set_row(one)[: len(headings)] for one in found.sets]
    parts: list[Any] = [whole_numbers(headings, sets, numeric={1, 2, 4, 5, 6})]
    if found.values:
        values = [
            [escape(one.column), escape(one.value), f"{one.before:.3g}", f"{one.after:.3g}"]
            for one in found.values
        ]
        parts.append(table_of(["column", "telling value", "before", "where it is seen"], values))
    if found.left_out:
        parts.append(f"[dim]nothing is promised about {escape(', '.join(found.left_out))}[/dim]")
    return Group(*parts)
